package sitemap

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

const (
	askTimeout   = 10 * time.Second
	askGrace     = time.Second // for a handler to heed that its request is cancelled
	maxStuck     = 100         // requests of a server that handlers hold on to
	askMaxBody   = 64 << 20    // of a list of URLs
	askPeekBody  = 64 << 10    // of a page whose head alone is of interest
	askUserAgent = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"

	// TEST-NET-1 of RFC 5737: what is open to an address of the inside is not
	// open to this one.
	strangerAddr = "192.0.2.1:49152"
)

var (
	errAborted = errors.New("the connection was aborted")
	errStuck   = errors.New("a handler goes on although its request was cancelled")
)

// asker asks a server itself, in memory, through its own routes.
type asker struct {
	server *caddyhttp.Server
	routes caddyhttp.Handler

	mu    sync.Mutex
	stuck map[string]int // asks that nobody waits for any more, by URL
}

func newAsker(server *caddyhttp.Server) *asker {
	unhandled := caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		caddyhttp.SetVar(r.Context(), unhandledVar, true)
		return nil
	})
	return &asker{server: server, routes: server.Routes.Compile(unhandled)}
}

// unhandledVar is what Caddy itself sets at the end of a terminal route. What no
// route answers is, to a visitor, an empty 200; the asker wants to know the
// difference.
const unhandledVar = "unhandled"

// upstreamPlaceholder is what reverse_proxy sets when it has chosen an upstream.
const upstreamPlaceholder = "http.reverse_proxy.upstream.address"

// question is what is asked for.
type question struct {
	method string
	base   string      // scheme, host and port
	path   string      // percent-encoded, with query
	limit  int         // most bytes of the body that are kept
	header http.Header // besides those that every ask has
	probe  *probe      // what the handler leaves a note in
	on     *runner     // whose goroutine runs it; nil: one of its own
}

// Answer is what the site answered to an ask.
type Answer struct {
	Status    int
	Header    http.Header
	Body      []byte
	Truncated bool // the body was longer than asked for
	Unhandled bool // no route answered: a visitor gets an empty 200
	Proxied   bool // an upstream was asked
}

// ask comes as a stranger: from an address of documentation, with no cookies and
// no credentials. It leaves no line in the access log. A handler's error is an
// answer with that error's status; the error here means that there was no answer.
// After errStuck the probe is the handler's, and must not be read.
func (a *asker) ask(ctx context.Context, q question) (*Answer, error) {
	if a.isStuck(q) {
		return nil, errStuck
	}
	ctx, cancel := context.WithTimeout(ctx, q.on.timeout())
	defer cancel()
	type reply struct {
		answer *Answer
		err    error
	}
	done := make(chan reply, 1)
	q.on.do(func() {
		answer, err := a.run(ctx, cancel, q)
		done <- reply{answer, err}
	})
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(askGrace)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-timer.C:
	}
	// Such as one that opens a named pipe. Nothing can end it, but neither the other
	// sites nor Stop shall wait for it.
	a.noteStuck(q, 1)
	q.on.replace()
	go func() {
		<-done
		a.noteStuck(q, -1)
	}()
	return nil, errStuck
}

// runner is a goroutine for many asks, one after another: a new one each would have to
// grow its stack anew, which takes a quarter of the time of an ask.
type runner struct {
	jobs     chan func()
	patience time.Duration // with each ask; 0: askTimeout
}

func (r *runner) timeout() time.Duration {
	if r == nil || r.patience == 0 {
		return askTimeout
	}
	return r.patience
}

func newRunner() *runner {
	r := new(runner)
	r.start()
	return r
}

func (r *runner) start() {
	jobs := make(chan func())
	r.jobs = jobs
	go func() {
		for job := range jobs {
			job()
		}
	}()
}

// do runs a job in the runner's goroutine; a nil runner's is a new one.
func (r *runner) do(job func()) {
	if r == nil {
		go job()
		return
	}
	r.jobs <- job
}

// replace leaves a goroutine to a job that does not end.
func (r *runner) replace() {
	if r != nil {
		close(r.jobs)
		r.start()
	}
}

// close ends the goroutine.
func (r *runner) close() { close(r.jobs) }

// isStuck reports whether an ask for the same is stuck, or too many are.
func (a *asker) isStuck(q question) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stuck[q.base+q.path] > 0 || len(a.stuck) >= maxStuck
}

func (a *asker) noteStuck(q question, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stuck == nil {
		a.stuck = make(map[string]int)
	}
	url := q.base + q.path
	if a.stuck[url] += n; a.stuck[url] == 0 {
		delete(a.stuck, url)
	}
}

// run runs the server's routes.
func (a *asker) run(ctx context.Context, cancel context.CancelFunc, q question) (ans *Answer, err error) {
	w := &answerWriter{limit: q.limit, stop: cancel, Answer: Answer{Header: make(http.Header)}}
	r, err := q.request(ctx)
	if err != nil {
		return nil, err
	}
	// net/http would catch what abort and broken upstreams throw.
	defer func() {
		switch v := recover(); {
		case v == nil:
		case w.Truncated:
			ans, err = w.answer(nil)
		case v == http.ErrAbortHandler:
			ans, err = nil, errAborted
		default:
			ans, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, a.server)
	caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true)
	err = a.routes.ServeHTTP(w, r)
	_, w.Proxied = r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Get(upstreamPlaceholder)
	if w.Truncated {
		return w.answer(nil)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	unhandled, _ := caddyhttp.GetVar(r.Context(), unhandledVar).(bool)
	w.Unhandled = unhandled && err == nil && w.Status == 0
	return w.answer(err)
}

func (q question) request(ctx context.Context) (*http.Request, error) {
	ctx = context.WithValue(ctx, probeCtxKey{}, q.probe)
	target, err := url.Parse(q.base + q.path)
	if err != nil {
		return nil, err
	}
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(local))
	r := (&http.Request{
		Method:     q.method,
		URL:        &url.URL{Path: target.Path, RawPath: target.RawPath, RawQuery: target.RawQuery},
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"User-Agent": {askUserAgent}, "Accept": {"*/*"}},
		Body:       http.NoBody,
		Host:       target.Host,
		RemoteAddr: strangerAddr,
		RequestURI: q.path,
	}).WithContext(ctx)
	for name, values := range q.header {
		r.Header[name] = values
	}
	if target.Scheme == "https" {
		// Without HandshakeComplete Caddy takes the request for 0-RTT.
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
		r.TLS = &tls.ConnectionState{
			Version:            tls.VersionTLS13,
			HandshakeComplete:  true,
			NegotiatedProtocol: "h2",
			ServerName:         target.Hostname(),
		}
	}
	return r, nil
}

// answerWriter keeps a response in memory, up to a limit.
type answerWriter struct {
	Answer
	header http.Header // as it stands; Answer.Header is as it was sent
	body   bytes.Buffer
	limit  int
	stop   context.CancelFunc
}

func (w *answerWriter) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

func (w *answerWriter) WriteHeader(status int) {
	if w.Status != 0 || status < 200 {
		return
	}
	w.Status = status
	w.Answer.Header = w.Header().Clone()
}

func (w *answerWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len() == 0 {
		w.sniff(b)
	}
	if room := w.limit - w.body.Len(); len(b) > room {
		w.body.Write(b[:room])
		w.Truncated = true
		w.stop()
		return room, errors.New("more than was asked for")
	}
	return w.body.Write(b)
}

// sniff does as net/http does where a handler sets no Content-Type.
func (w *answerWriter) sniff(b []byte) {
	h := w.Answer.Header
	if _, set := h["Content-Type"]; !set && len(b) > 0 && h.Get("Content-Encoding") == "" {
		h.Set("Content-Type", http.DetectContentType(b))
	}
}

// Flush does nothing: an answer is looked at when it is whole.
func (w *answerWriter) Flush() {}

func (w *answerWriter) answer(err error) (*Answer, error) {
	if err != nil && w.Status == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		w.Status = statusOf(err)
	}
	w.WriteHeader(http.StatusOK)
	w.Body = w.body.Bytes()
	return &w.Answer, nil
}

// statusOf is what Caddy answers where a handler returned an error, or none, and sent
// no status itself.
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

type probeCtxKey struct{}

// probeOf reports whether a request is one of the module's own, and what it carries,
// which may be nil.
func probeOf(r *http.Request) (p *probe, asked bool) {
	if r.RemoteAddr == strangerAddr {
		p, asked = r.Context().Value(probeCtxKey{}).(*probe)
	}
	return p, asked
}

// probe is carried by an ask to the handler, which notes what it sees there.
type probe struct {
	handler *Handler
	folder  string // that the handler answers for there
	robots  bool   // only whether it sees robots.txt

	reached  bool
	shadowed bool   // another handler serves the path first
	root     string // {http.vars.root}, when reached or else after the next handlers
	rooted   bool   // it was there when reached
	fs       string
	servers  []fileServer // the file servers that follow, placeholders replaced
}
