package sitemap

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/recorder"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	fetchTimeout   = 10 * time.Second
	fetchGrace     = time.Second // for a handler to heed that its request is canceled
	maxAbandoned   = 64          // fetches of a handler that never came back; then its crawl pauses
	runners        = 16          // goroutines that wait for fetches
	peekBody       = 64 << 10    // of a page whose head alone matters
	fetchUserAgent = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"

	// anonymousAddr is TEST-NET-1 of RFC 5737: what is open to an address of the private
	// network is not open to this one.
	anonymousAddr = "192.0.2.1:49152"

	// unhandledVar is what Caddy itself sets at the end of a terminal route. What no route
	// handles is an empty 200 to a visitor.
	unhandledVar = "unhandled"

	// upstreamPlaceholder is what reverse_proxy sets when it has chosen an upstream.
	upstreamPlaceholder = "http.reverse_proxy.upstream.address"
)

var (
	errAborted   = errors.New("the connection was aborted")
	errAbandoned = errors.New("a handler goes on although its request was canceled")

	localAddr net.Addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
)

// serverFetcher makes requests to a server in memory, through its own routes.
type serverFetcher struct {
	server *caddyhttp.Server
	routes caddyhttp.Handler
	jobs   chan func() // taken by goroutines that wait for them
}

func newServerFetcher(ctx context.Context, server *caddyhttp.Server) *serverFetcher {
	routes := server.Routes.Compile(caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		caddyhttp.SetVar(r.Context(), unhandledVar, true)
		return nil
	}))
	f := &serverFetcher{server, routes, make(chan func())}
	for range runners { // a new goroutine each would have to grow its stack anew, which takes a quarter of the time of a fetch
		go func() {
			for {
				select {
				case job := <-f.jobs:
					job()
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return f
}

// request is one request in memory.
type request struct {
	origin    string // scheme, host and port under which the server knows the site
	path      string // percent-encoded, with query
	header    http.Header
	limit     int
	wants     func(status int, header http.Header) bool
	probe     *probe        // what the sitemap handler notes its findings in
	abandoned *atomic.Int32 // of the handler on whose behalf it is made; nil: not counted
	visitor   bool          // the sitemap handler takes it for a visitor's
}

// response is the response to a request in memory.
type response struct {
	crawl.Response
	unhandled bool // no route handled the request: a visitor gets an empty 200
}

// fetch makes a GET request as an anonymous visitor: from an address of documentation,
// without cookies and credentials. It leaves no line in the access log. A handler's error
// is a response with that error's status; the error here means that there was none. After
// errAbandoned the request's probe belongs to the handler, and must not be read.
func (f *serverFetcher) fetch(ctx context.Context, q request) (*response, error) {
	if q.abandoned = cmp.Or(q.abandoned, new(atomic.Int32)); q.abandoned.Load() >= maxAbandoned {
		return nil, errAbandoned
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	type result struct {
		response *response
		err      error
	}
	done := make(chan result, 1)
	job := func() {
		res, err := f.run(ctx, cancel, q)
		done <- result{res, err}
	}
	select {
	case f.jobs <- job:
	default:
		go job()
	}
	select {
	case r := <-done:
		return r.response, r.err
	case <-ctx.Done():
	}
	if r, ok := wait.Within(fetchGrace, done); ok {
		return r.response, r.err
	}
	// Nothing can end a handler that opens a named pipe, say, but neither other sites nor
	// Stop shall wait for it.
	q.abandoned.Add(1)
	go func() {
		<-done
		q.abandoned.Add(-1)
	}()
	return nil, errAbandoned
}

// run runs the server's routes.
func (f *serverFetcher) run(ctx context.Context, cancel context.CancelFunc, q request) (res *response, err error) {
	r, err := q.httpRequest(ctx)
	if err != nil {
		return nil, err
	}
	w := recorder.New(recorder.Options{Limit: q.limit, Wants: q.wants, Stop: cancel})
	// net/http would catch what the abort handler and broken upstreams panic with.
	defer func() {
		switch v := recover(); {
		case v == nil:
		case w.Ended:
			res, err = recorded(w, nil), nil
		case v == http.ErrAbortHandler:
			res, err = nil, errAborted
		default:
			res, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, f.server)
	caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true)
	err = f.routes.ServeHTTP(w, r)
	_, proxied := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Get(upstreamPlaceholder)
	unhandled, _ := caddyhttp.GetVar(r.Context(), unhandledVar).(bool)
	unhandled = unhandled && err == nil && w.Status == 0
	switch {
	case w.Ended:
		err = nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	res = recorded(w, err)
	res.Proxied, res.unhandled = proxied, unhandled
	return res, nil
}

func (q *request) httpRequest(ctx context.Context) (*http.Request, error) {
	u, err := url.ParseRequestURI(q.path)
	if err != nil {
		return nil, err
	}
	scheme, host, _ := strings.Cut(q.origin, "://")
	if !q.visitor {
		ctx = context.WithValue(ctx, probeCtxKey{}, q.probe)
	}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, localAddr)
	r := (&http.Request{
		Method: http.MethodGet, URL: u, Host: host, RequestURI: q.path,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"User-Agent": {fetchUserAgent}, "Accept": {"*/*"}},
		Body:   http.NoBody, RemoteAddr: anonymousAddr,
	}).WithContext(ctx)
	for name, values := range q.header {
		r.Header[name] = values
	}
	if scheme == "https" {
		// Without HandshakeComplete Caddy takes the request for 0-RTT.
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
		r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, NegotiatedProtocol: "h2", ServerName: strings.Trim(hostOf(q.origin), "[]")}
	}
	return r, nil
}

// recorded is what was recorded as a response, with the status that Caddy sends where a
// handler returned err.
func recorded(w *recorder.Recorder, err error) *response {
	header := w.Finish(statusOf(err))
	return &response{Response: crawl.Response{Status: w.Status, Header: header, Body: w.Body, Truncated: w.Truncated}}
}

// statusOf is the status that Caddy sends where a handler returned an error, or none, and
// sent no status itself.
func statusOf(err error) int {
	var herr caddyhttp.HandlerError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &herr) && herr.StatusCode != 0:
		return herr.StatusCode
	}
	return http.StatusInternalServerError
}

// siteFetcher fetches the pages of one site.
type siteFetcher struct {
	*identity
	server *serverFetcher
	routes uint64          // digest of what the server answers for the site
	count  func(*response) // counts a fetch of a page; nil: there was no response
}

// digest is of all that has a site refreshed anew when it changes.
func (f *siteFetcher) digest() uint64 {
	return digestOf(f.handler.settings.digest, f.routes, trustsProxies(f.handler.server))
}

// fetch makes a request for a path as the server knows it. Of sites on demand there may be
// a thousand: they wait for the turn of an upstream, but not for all of a long pause.
func (f *siteFetcher) fetch(ctx context.Context, path string, limit int, p *probe) (*response, error) {
	res, err := f.server.fetch(ctx, request{origin: f.internal.origin, path: path, limit: limit, probe: p, abandoned: &f.handler.abandoned})
	if err == nil && res.Proxied && f.onDemand {
		f.rateLimit(ctx)
	}
	return res, err
}

func (f *siteFetcher) rateLimit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if !f.handler.limiter.Wait(ctx, crawl.NewSlots(1)) {
		<-ctx.Done()
	}
}

// Fetch implements crawl.Fetcher for paths of the site's URLs.
func (f *siteFetcher) Fetch(ctx context.Context, r crawl.Request) (*crawl.Response, error) {
	res, err := f.server.fetch(ctx, request{
		origin: f.internal.origin, path: f.internalPath(r.Path), header: r.Header, limit: r.Limit, wants: r.Wants, abandoned: &f.handler.abandoned,
	})
	f.count(res)
	if err != nil {
		return nil, err
	}
	if res.unhandled {
		res.Status = http.StatusNotFound // as good as: a visitor gets an empty 200
	}
	return &res.Response, nil
}

var _ crawl.Fetcher = (*siteFetcher)(nil)
