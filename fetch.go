package sitemap

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/recorder"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	fetchTimeout   = 10 * time.Second
	fetchGrace     = time.Second // for a handler to return once its request is canceled
	maxAbandoned   = 64          // fetches of a handler that did not return; then its crawl pauses
	workers        = 16          // goroutines that fetch
	peekBody       = 64 << 10    // bytes of a page of which only the head matters
	fetchUserAgent = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"

	// acceptAny is for robots.txt, lists and sitemaps, which no HTML should stand for.
	acceptAny = "*/*"

	// anonymousAddr is in TEST-NET-1 of RFC 5737: rules that admit private networks do not admit it.
	anonymousAddr = "192.0.2.1:49152"

	// unhandledVar is set by Caddy, too, at the end of a terminal route. A visitor gets an
	// empty 200 for a request that no route handles.
	unhandledVar = "unhandled"

	// upstreamPlaceholder is set by reverse_proxy when it has chosen an upstream.
	upstreamPlaceholder = "http.reverse_proxy.upstream.address"
)

var (
	errAborted   = errors.New("the connection was aborted")
	errAbandoned = errors.New("a handler goes on although its request was canceled")
)

// localIP is the address at which requests arrive: one in TEST-NET-2 of RFC 5737, because rules may admit loopback, or an
// address of the machine, that public visitors do not reach.
var localIP = net.IPv4(198, 51, 100, 1)

// serverFetcher makes requests to a server in memory, through its own routes.
type serverFetcher struct {
	server  *caddyhttp.Server
	routes  caddyhttp.Handler
	port    int         // at which requests arrive; 0: the scheme's default
	tls     *tls.Config // which selects the policy of a connection; nil: there is none
	workers wait.Workers
}

func newServerFetcher(ctx context.Context, server *caddyhttp.Server, port int) *serverFetcher {
	routes := server.Routes.Compile(caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		caddyhttp.SetVar(r.Context(), unhandledVar, true)
		return nil
	}))
	return &serverFetcher{server: server, routes: routes, port: port, workers: wait.NewWorkers(ctx, workers)}
}

// visitorConn is a connection of an anonymous visitor, for matchers of TLS policies.
type visitorConn struct {
	net.Conn
	port int // of the listener
}

func (visitorConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(anonymousAddr))
}

func (c visitorConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: localIP, Port: c.port} }

// needsCertificate reports whether visitors of a host cannot connect without a client certificate.
func (f *serverFetcher) needsCertificate(host string) bool {
	if f.tls == nil {
		return false
	}
	conn, other := net.Pipe() // a matcher of another module may read from it
	_ = other.Close()
	defer func() { _ = conn.Close() }()
	hello := &tls.ClientHelloInfo{ServerName: strings.Trim(host, "[]"), Conn: visitorConn{conn, f.port}}
	policy, err := f.tls.GetConfigForClient(hello)
	if err != nil || policy == nil {
		return false
	}
	return policy.ClientAuth == tls.RequireAnyClientCert || policy.ClientAuth == tls.RequireAndVerifyClientCert
}

// request is one request in memory.
type request struct {
	crawl.Request
	origin    string        // scheme, host and port under which the server knows the site
	host      string        // of the Host header; "": that of origin
	probe     *probe        // filled in by the sitemap handler; nil: it is no probe
	abandoned *atomic.Int32 // Handler.abandoned of the site
	visitor   bool          // the sitemap handler serves it as a visitor's
}

// fetch makes a GET request as an anonymous visitor, without cookies and credentials. It writes no line to the access
// log. If a handler returns an error, that is a response with the error's status; an error of fetch means that there
// was no response. After errAbandoned the request's probe must not be read: a handler may still write to it.
func (f *serverFetcher) fetch(ctx context.Context, q request) (*crawl.Response, error) {
	// Each fetch of a disk that hangs would take its grace: reload and Stop would wait for as many as follow each other.
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if q.abandoned.Load() >= maxAbandoned {
		return nil, errAbandoned
	}
	ctx, cancel := context.WithTimeout(ctx, wait.Patience(cmp.Or(q.Patience, fetchTimeout)))
	defer cancel()
	var res *crawl.Response
	var err error
	// Nothing can end a handler that, say, opens a named pipe, but neither other sites nor Stop must wait for it.
	ended := f.workers.OrLeave(ctx, fetchGrace, q.abandoned, func() { res, err = f.run(ctx, cancel, q) })
	if !ended {
		return nil, errAbandoned
	}
	return res, err
}

// run runs the server's routes.
func (f *serverFetcher) run(ctx context.Context, cancel context.CancelFunc, q request) (res *crawl.Response, err error) {
	r, err := q.httpRequest(ctx, f.port)
	if err != nil {
		return nil, err
	}
	w := recorder.New(recorder.Options{Limit: q.Limit, Wants: q.Wants, Stop: cancel})
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, f.server)
	caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true)
	// The abort handler and broken upstreams panic; net/http would recover that.
	defer func() {
		broken := brokenBy(ctx, recover())
		// What the directive abort does to a request is what a 403 does: a rule refuses the visitor.
		isRefused := broken == errAborted && w.Status == 0 && ctx.Err() == nil
		if isRefused {
			err = caddyhttp.Error(http.StatusForbidden, broken)
			broken = nil
		}
		// A recorder that has had enough stops the handler, which is no failure.
		if broken != nil && !w.Ended {
			err = broken
			return
		}
		res = recorded(w, r, err)
		res.Aborted = isRefused
		err = nil
	}()
	return nil, f.routes.ServeHTTP(w, r)
}

// brokenBy returns why there is no response, after a panic with a value, which may be nil.
func brokenBy(ctx context.Context, v any) error {
	if v == http.ErrAbortHandler {
		// A proxy that is canceled aborts, too.
		return cmp.Or(ctx.Err(), errAborted)
	}
	if v != nil {
		return fmt.Errorf("panic: %v", v)
	}
	return ctx.Err()
}

// httpRequest returns the request as the server has it from a visitor at a port; 0: the scheme's default.
func (q *request) httpRequest(ctx context.Context, port int) (*http.Request, error) {
	u, err := url.ParseRequestURI(q.Path)
	if err != nil {
		return nil, err
	}
	scheme, host, _ := strings.Cut(q.origin, "://")
	if !q.visitor {
		ctx = context.WithValue(ctx, probeCtxKey{}, q.probe)
	}
	isSecure := scheme == "https"
	switch {
	case port == 0 && isSecure:
		port = caddyhttp.DefaultHTTPSPort
	case port == 0:
		port = caddyhttp.DefaultHTTPPort
	}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, &net.TCPAddr{IP: localIP, Port: port})
	r := (&http.Request{
		Method:     http.MethodGet,
		URL:        u,
		Host:       cmp.Or(q.host, host),
		RequestURI: q.Path,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header: http.Header{
			"User-Agent": {fetchUserAgent},
			"Accept":     {html.AcceptPage},
			// A cache in front may have what was there a while ago, and is not to keep what a request of this module got.
			"Cache-Control": {"no-cache, no-store"},
		},
		Body:       http.NoBody,
		RemoteAddr: anonymousAddr,
	}).WithContext(ctx)
	maps.Copy(r.Header, q.Header)
	if !isSecure {
		return r, nil
	}
	r.Proto = "HTTP/2.0"
	r.ProtoMajor = 2
	r.ProtoMinor = 0
	r.TLS = &tls.ConnectionState{
		Version:            tls.VersionTLS13,
		HandshakeComplete:  true, // without it, Caddy takes the request for 0-RTT
		NegotiatedProtocol: "h2",
		ServerName:         strings.Trim(origin.HostOf(q.origin), "[]"),
	}
	return r, nil
}

// recorded returns the recorded response of a handler that returned err.
func recorded(w *recorder.Recorder, r *http.Request, err error) *crawl.Response {
	status := statusOf(err)
	isEnd, _ := caddyhttp.GetVar(r.Context(), unhandledVar).(bool)
	unhandled := isEnd && err == nil && w.Status == 0
	if unhandled {
		status = http.StatusNotFound
	}
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	_, proxied := repl.Get(upstreamPlaceholder)
	header := w.Finish(status) // which sets the recorder's status
	return &crawl.Response{
		Status:    w.Status,
		Header:    header,
		Body:      w.Body,
		Truncated: w.Truncated,
		Proxied:   proxied,
		Unhandled: unhandled,
	}
}

// resolveLocation returns the absolute URL to which a response from a URL redirects by its Location header; "": it has none
// that is valid.
func resolveLocation(from, location string) string {
	base, err := url.Parse(from)
	if err != nil || location == "" {
		return ""
	}
	to, err := base.Parse(location)
	if err != nil {
		return ""
	}
	return to.String()
}

// statusOf returns the status that Caddy sends after a handler returned err, which may be nil, and sent none itself.
func statusOf(err error) int {
	var herr caddyhttp.HandlerError
	if err == nil {
		return http.StatusOK
	}
	if errors.As(err, &herr) && herr.StatusCode != 0 {
		return herr.StatusCode
	}
	return http.StatusInternalServerError
}

// siteFetcher fetches the pages of one site.
type siteFetcher struct {
	*identity
	server  *serverFetcher
	routes  uint64 // digest of the server's routes for the site: see digestRoutes
	makes   bool   // one of them may make pages
	crawler *crawl.Crawler

	sameRoutes uint64 // the digest that the site would have if it were shared, or alone
}

// digest returns the digest of settings and routes: if it changes, the site is refreshed at once.
func (f *siteFetcher) digest() uint64 {
	return digestOf(f.handler.settings.digest, f.routes, trustsProxies(f.handler.server))
}

// request returns a request as a visitor's reaches the server.
func (f *siteFetcher) request(r crawl.Request) request {
	return request{Request: r, origin: f.internalOrigin, host: f.host, abandoned: &f.handler.abandoned}
}

// fetchData requests at an internal path what is no page: robots.txt or a sitemap, or the path of ours. p is filled in by the
// handler that the request reaches; nil: it is no probe.
func (f *siteFetcher) fetchData(ctx context.Context, path string, limit int, p *probe) (*crawl.Response, error) {
	return f.get(ctx, dataRequest(path, limit), p)
}

func dataRequest(path string, limit int) crawl.Request {
	header := http.Header{"Accept": {acceptAny}}
	return crawl.Request{Path: path, Header: header, Limit: limit}
}

// errPaused is the error of a request that was not made, as the site pauses: see [crawl.Pause].
var errPaused = errors.New("requests pause")

// get requests an internal path: see identity.internalPath. Where the response is likely to be made, the request waits for its
// turn. Others for hosts that visitors named have waited for theirs: see paceProbe.
func (f *siteFetcher) get(ctx context.Context, r crawl.Request, p *probe) (*crawl.Response, error) {
	if f.onDemand && !r.Waits {
		return f.fetch(ctx, r, p)
	}
	path := r.Path
	if p != nil {
		path += "/" // the handler may respond itself, as it does to no other request
	}
	isFront := r.Path == f.id.prefix+"/"
	single := crawl.Single{Path: path, Knocks: isFront, IsLong: r.Patience != 0, Waits: r.Waits}
	res, ok, err := f.crawler.Do(ctx, single, func() (*crawl.Response, error) { return f.fetch(ctx, r, p) })
	if !ok {
		err = cmp.Or(ctx.Err(), errPaused)
	}
	return res, err
}

// fetch requests an internal path at once.
func (f *siteFetcher) fetch(ctx context.Context, r crawl.Request, p *probe) (*crawl.Response, error) {
	q := f.request(r)
	q.probe = p
	res, err := f.server.fetch(ctx, q)
	if err != nil {
		return nil, err
	}
	isExplained := !f.makes || r.OfFile || isOfFile(res.Header) || p.isOurs()
	res.Made = res.Proxied || !isExplained || res.Status == http.StatusTooManyRequests
	return res, nil
}

// isOfFile reports whether a response has the ETag that Caddy's file server makes of a file's time and size.
func isOfFile(header http.Header) bool {
	at, size, _ := strings.Cut(strings.Trim(header.Get("Etag"), `"`), "-")
	modified, err := strconv.ParseInt(at, 36, 64)
	isTime := err == nil && modified > int64(10*365*24*time.Hour)
	_, err = strconv.ParseInt(size, 36, 64)
	return isTime && err == nil
}

// Fetch implements [crawl.Fetcher] for paths of the site's URLs.
func (f *siteFetcher) Fetch(ctx context.Context, r crawl.Request) (*crawl.Response, error) {
	r.Path = f.internalPath(r.Path)
	res, err := f.fetch(ctx, r, nil)
	a := f.handler.app
	a.counts.fetched(res)
	if a.building != nil {
		a.building.Fetched.Add(1)
	}
	return res, err
}
