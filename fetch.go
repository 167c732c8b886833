package sitemap

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
)

const (
	fetchTimeout   = 10 * time.Second
	fetchGrace     = time.Second // for a handler to heed that its request is canceled
	maxAbandoned   = 64          // fetches of a handler that never came back; then its crawl pauses
	runners        = 16          // goroutines that wait for fetches
	peekBody       = 64 << 10    // of a page whose head alone matters
	unwantedBody   = 4096        // of a body that is not wanted: so it shows where an upstream breaks off
	sniffedBytes   = 512         // of a body in which its type shows
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
	errUnwanted  = errors.New("no more of this body is wanted")

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
		*response
		error
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
		return r.response, r.error
	case <-ctx.Done():
	}
	if r, ok := within(fetchGrace, done); ok {
		return r.response, r.error
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
	w := &memoryWriter{request: q, stop: cancel}
	// net/http would catch what the abort handler and broken upstreams panic with.
	defer func() {
		switch v := recover(); {
		case v == nil:
		case w.ended:
			res, err = w.result(nil), nil
		case v == http.ErrAbortHandler:
			res, err = nil, errAborted
		default:
			res, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, f.server)
	caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true)
	err = f.routes.ServeHTTP(w, r)
	_, w.res.Proxied = r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Get(upstreamPlaceholder)
	if w.ended {
		return w.result(nil), nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	unhandled, _ := caddyhttp.GetVar(r.Context(), unhandledVar).(bool)
	w.res.unhandled = unhandled && err == nil && w.res.Status == 0
	return w.result(err), nil
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

// memoryWriter keeps a response in memory, as far as it is wanted.
type memoryWriter struct {
	request  request
	stop     context.CancelFunc
	header   http.Header // as it stands; res.Header is as it was sent
	res      response
	unwanted bool // the body is not wanted
	ended    bool // no more of the body is taken
}

func (w *memoryWriter) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

func (w *memoryWriter) WriteHeader(status int) {
	if w.res.Status != 0 || status < 200 {
		return
	}
	w.res.Status, w.res.Header = status, w.Header().Clone()
	w.typed()
}

// typed finds out whether the body is wanted, once its type is known.
func (w *memoryWriter) typed() {
	if w.request.wants != nil && w.res.Header.Get("Content-Type") != "" && !w.request.wants(w.res.Status, w.res.Header) {
		w.unwanted, w.request.limit = true, min(w.request.limit, unwantedBody)
	}
}

// sniff finds out the type where a handler sets none, as net/http does.
func (w *memoryWriter) sniff() {
	h := w.res.Header
	if _, set := h["Content-Type"]; !set && len(w.res.Body) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(w.res.Body))
		w.typed()
	}
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.res.Body = append(w.res.Body, b[:min(len(b), w.request.limit+1-len(w.res.Body))]...)
	return len(b), w.grown()
}

// ReadFrom spares file servers a copy and a buffer.
func (w *memoryWriter) ReadFrom(r io.Reader) (n int64, err error) {
	w.WriteHeader(http.StatusOK)
	size, unknown := strconv.Atoi(w.res.Header.Get("Content-Length"))
	if unknown != nil {
		size = sniffedBytes
	}
	// One byte more: the end is found without growing.
	w.res.Body = slices.Grow(w.res.Body, max(0, min(size, w.request.limit)-len(w.res.Body))+1)
	for err == nil {
		w.res.Body = slices.Grow(w.res.Body, 1)
		var m int
		m, err = r.Read(w.res.Body[len(w.res.Body):cap(w.res.Body)])
		w.res.Body = w.res.Body[:len(w.res.Body)+m]
		n += int64(m)
		if full := w.grown(); full != nil {
			return n, full
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// grown ends the response where no more of the body is taken than there is.
func (w *memoryWriter) grown() error {
	if len(w.res.Body) >= min(sniffedBytes, w.request.limit+1) {
		w.sniff()
	}
	if len(w.res.Body) <= w.request.limit {
		return nil
	}
	w.res.Body = w.res.Body[:w.request.limit]
	w.res.Truncated, w.ended = true, true
	w.stop()
	return errUnwanted
}

// Flush does nothing: a response is looked at when it is whole.
func (w *memoryWriter) Flush() {}

// result is the response, with the status that Caddy sends where a handler returned err.
func (w *memoryWriter) result(err error) *response {
	w.WriteHeader(statusOf(err))
	if w.sniff(); w.unwanted {
		w.res.Body, w.res.Truncated = nil, false
	}
	return &w.res
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
	if !f.handler.limiter.Wait(ctx) {
		<-ctx.Done()
	}
}

// Fetch implements crawl.Fetcher for paths of the site's URLs.
func (f *siteFetcher) Fetch(ctx context.Context, r crawl.Request) (*crawl.Response, error) {
	path := r.Path
	if rest, ok := strings.CutPrefix(path, f.prefix+"/"); ok {
		path = f.internal.prefix + "/" + rest // what a proxy in front calls the prefix, the server may not
	}
	res, err := f.server.fetch(ctx, request{
		origin: f.internal.origin, path: path, header: r.Header, limit: r.Limit, wants: r.Wants, abandoned: &f.handler.abandoned,
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
