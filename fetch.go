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
	maxIdleRunners = 64
	peekBody       = 64 << 10 // of a page whose head alone matters
	fetchUserAgent = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"

	// anonymousAddr is TEST-NET-1 of RFC 5737: what is open to an address of the private
	// network is not open to this one.
	anonymousAddr = "192.0.2.1:49152"
)

var (
	errAborted   = errors.New("the connection was aborted")
	errAbandoned = errors.New("a handler goes on although its request was canceled")
	errUnwanted  = errors.New("no more of this body is wanted")
)

// serverFetcher makes requests to a server in memory, through its own routes.
type serverFetcher struct {
	server *caddyhttp.Server
	routes caddyhttp.Handler

	// Goroutines that wait for the next request: a new one each would have to grow its
	// stack anew, which takes a quarter of the time of a fetch.
	idle   chan chan func()
	closed atomic.Bool
}

func newServerFetcher(server *caddyhttp.Server) *serverFetcher {
	unhandled := caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		caddyhttp.SetVar(r.Context(), unhandledVar, true)
		return nil
	})
	return &serverFetcher{server: server, routes: server.Routes.Compile(unhandled), idle: make(chan chan func(), maxIdleRunners)}
}

const (
	// unhandledVar is what Caddy itself sets at the end of a terminal route. What no route
	// handles is an empty 200 to a visitor.
	unhandledVar = "unhandled"

	// upstreamPlaceholder is what reverse_proxy sets when it has chosen an upstream.
	upstreamPlaceholder = "http.reverse_proxy.upstream.address"
)

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
	if q.abandoned != nil && q.abandoned.Load() >= maxAbandoned {
		return nil, errAbandoned
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	type result struct {
		response *response
		err      error
	}
	done := make(chan result, 1)
	runner := f.runner()
	runner <- func() {
		res, err := f.run(ctx, cancel, q)
		done <- result{res, err}
	}
	select {
	case r := <-done:
		f.release(runner)
		return r.response, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(fetchGrace)
	defer timer.Stop()
	select {
	case r := <-done:
		f.release(runner)
		return r.response, r.err
	case <-timer.C:
	}
	// Nothing can end a handler that opens a named pipe, say, but neither other sites nor
	// Stop shall wait for it.
	close(runner)
	if q.abandoned != nil {
		q.abandoned.Add(1)
		go func() {
			<-done
			q.abandoned.Add(-1)
		}()
	}
	return nil, errAbandoned
}

// runner is a goroutine that runs what it is sent.
func (f *serverFetcher) runner() chan func() {
	select {
	case runner := <-f.idle:
		return runner
	default:
	}
	runner := make(chan func(), 1)
	go func() {
		for job := range runner {
			job()
		}
	}()
	return runner
}

func (f *serverFetcher) release(runner chan func()) {
	select {
	case f.idle <- runner:
	default:
		close(runner)
	}
	if f.closed.Load() {
		f.close()
	}
}

// close ends the goroutines that wait; those of fetches under way end with these.
func (f *serverFetcher) close() {
	f.closed.Store(true)
	for {
		select {
		case runner := <-f.idle:
			close(runner)
		default:
			return
		}
	}
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
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = host
		}
		// Without HandshakeComplete Caddy takes the request for 0-RTT.
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
		r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, NegotiatedProtocol: "h2", ServerName: name}
	}
	return r, nil
}

var localAddr net.Addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}

// memoryWriter keeps a response in memory, as far as it is wanted.
type memoryWriter struct {
	request request
	stop    context.CancelFunc
	header  http.Header // as it stands; res.Header is as it was sent
	res     response
	ended   bool // no more of the body is wanted

	// The body is not wanted. A little of it is passed over all the same: so it shows where
	// an upstream breaks off.
	unwanted bool
	passed   int64
}

const maxPassed = 4096

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
	w.res.Status = status
	w.res.Header = w.Header().Clone()
	if w.request.wants != nil && w.res.Header.Get("Content-Type") != "" {
		w.unwanted = !w.request.wants(status, w.res.Header)
	}
}

// pass passes over bytes of a body that is not wanted.
func (w *memoryWriter) pass(n int64) error {
	if w.passed += n; w.passed <= maxPassed {
		return nil
	}
	w.ended = true
	w.stop()
	return errUnwanted
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	if w.WriteHeader(http.StatusOK); w.unwanted || w.ended {
		return len(b), w.pass(int64(len(b)))
	}
	w.res.Body = append(w.res.Body, b[:min(len(b), w.request.limit+1-len(w.res.Body))]...)
	if w.grown(); w.ended {
		return len(b), errUnwanted
	}
	return len(b), nil
}

// ReadFrom spares file servers a copy and a buffer.
func (w *memoryWriter) ReadFrom(r io.Reader) (n int64, err error) {
	if w.WriteHeader(http.StatusOK); w.unwanted || w.ended {
		n, err := io.Copy(io.Discard, io.LimitReader(r, maxPassed+1))
		return n, cmp.Or(w.pass(n), err)
	}
	if size, err := strconv.Atoi(w.res.Header.Get("Content-Length")); err == nil && w.res.Body == nil && size > 0 {
		w.res.Body = make([]byte, 0, min(size, w.request.limit)+1) // one more: the end is found without growing
	}
	for {
		if len(w.res.Body) == cap(w.res.Body) {
			w.res.Body = slices.Grow(w.res.Body, sniffedBytes)
		}
		m, err := r.Read(w.res.Body[len(w.res.Body):cap(w.res.Body)])
		w.res.Body = w.res.Body[:len(w.res.Body)+m]
		n += int64(m)
		switch w.grown(); {
		case w.ended:
			return n, errUnwanted
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// grown ends the response where no more of the body is wanted than there is.
func (w *memoryWriter) grown() {
	excess := len(w.res.Body) > w.request.limit
	if excess || len(w.res.Body) >= sniffedBytes {
		w.sniff()
	}
	if excess && !w.ended {
		w.res.Body = w.res.Body[:w.request.limit]
		w.res.Truncated, w.ended = true, true
	}
	if w.ended {
		w.stop()
	}
}

// sniffedBytes are those of a body in which its type shows.
const sniffedBytes = 512

// sniff does as net/http does where a handler sets no Content-Type.
func (w *memoryWriter) sniff() {
	h := w.res.Header
	if _, set := h["Content-Type"]; set || len(w.res.Body) == 0 || h.Get("Content-Encoding") != "" {
		return
	}
	h.Set("Content-Type", http.DetectContentType(w.res.Body))
	if w.request.wants != nil && !w.request.wants(w.res.Status, h) {
		w.res.Body, w.ended = nil, true
	}
}

// Flush does nothing: a response is looked at when it is whole.
func (w *memoryWriter) Flush() {}

// result is the response, with the status that Caddy sends where a handler returned err.
func (w *memoryWriter) result(err error) *response {
	if err != nil && w.res.Status == 0 {
		w.WriteHeader(statusOf(err))
	}
	w.WriteHeader(http.StatusOK)
	w.sniff()
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
func (f *siteFetcher) digest() uint64 { return digestOf(f.handler.settings.digest, f.routes) }

// fetch makes a request for a path as the server knows it.
func (f *siteFetcher) fetch(ctx context.Context, path string, limit int, p *probe) (*response, error) {
	res, err := f.server.fetch(ctx, request{origin: f.internal.origin, path: path, limit: limit, probe: p, abandoned: &f.handler.abandoned})
	if err == nil && res.Proxied && f.onDemand {
		f.rateLimit(ctx)
	}
	return res, err
}

// rateLimit waits until the next request to an upstream may follow one that the crawl's
// limiter knows nothing of. Of sites on demand there may be a thousand. They wait for one
// another, so one upstream that asks for a long pause does not hold up all of them.
func (f *siteFetcher) rateLimit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for wait := f.handler.limiter.Turn(); wait > 0; wait = f.handler.limiter.Turn() {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
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
