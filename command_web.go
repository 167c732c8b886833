package sitemap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
)

// What a command takes from a server.
const (
	maxWebRedirects = 5
	maxWebHeader    = 64 << 10
	maxWebBody      = 64 << 20 // as sent; what reads it may want less of what is in it
)

var (
	errWebTooLong   = errors.New("the answer is too long")
	errWebRedirects = errors.New("too many redirects")
	errWebLoop      = errors.New("the redirects go round in a circle")
	errWebPrivate   = errors.New("the address is of a private network, and nobody named that host on the command line, as a URL or by --base-url")
	errWebEncoding  = errors.New("the answer has an unknown Content-Encoding")
	errWebOffline   = errors.New("the network is not used with --offline")
)

// web asks servers for documents and pages. What a stranger's document names is asked
// for as well, so addresses of private networks are only for hosts that are trusted:
// those that the user has named.
type web struct {
	client  *http.Client
	timeout time.Duration // of a whole answer
	offline bool
	trusted sync.Map // of host:port
}

func newWeb(timeout time.Duration) *web {
	w := &web{timeout: timeout}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // HTTP/2 holds megabytes of what was not read yet
	w.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  w.proxy,
			DialContext:            w.dial,
			Protocols:              protocols,
			DisableCompression:     true, // whether it was compressed is of interest
			MaxIdleConnsPerHost:    1,
			MaxIdleConns:           8,
			MaxResponseHeaderBytes: maxWebHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w
}

func (w *web) close() { w.client.CloseIdleConnections() }

// trust lets a URL's host be one of a private network: at its port, and at those to
// which it may be redirected for another scheme.
func (w *web) trust(rawURL string) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return
	}
	for _, port := range []string{u.Port(), "80", "443"} {
		w.trusted.Store(hostPort(&url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(u.Hostname(), port)}), true)
	}
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return strings.ToLower(net.JoinHostPort(u.Hostname(), port))
}

// proxy is the user's, of the environment.
func (w *web) proxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if u != nil {
		w.trusted.Store(hostPort(u), true)
	}
	return u, err
}

func (w *web) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{}
	if _, ok := w.trusted.Load(strings.ToLower(addr)); !ok {
		d.Control = refusePrivate
	}
	return d.DialContext(ctx, network, addr)
}

func refusePrivate(_, addr string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	if ip := to.Addr().Unmap(); !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return errWebPrivate
	}
	return nil
}

// webAnswer is what a server answered, after redirects if they were followed.
type webAnswer struct {
	URL       string     // that answered
	Redirects []redirect // on the way there
	Status    int
	Header    http.Header
	Encoded   bool      // it came with Content-Encoding: gzip
	Mislabels bool      // it says so, and yet is no gzip
	Body      io.Reader // without the Content-Encoding, but where it is that of a file named .gz
	close     func()
}

type redirect struct {
	Status int
	To     string
}

// get asks for a URL, and for those that it redirects to, up to a number of them.
// The answer is to be closed. Errors are in plain words, without the URL.
func (w *web) get(ctx context.Context, rawURL string, redirects int) (*webAnswer, error) {
	if w.offline {
		return nil, errWebOffline
	}
	var way []redirect
	seen := map[string]bool{rawURL: true}
	for {
		a, err := w.once(ctx, rawURL)
		if err != nil {
			return &webAnswer{URL: rawURL, Redirects: way}, err
		}
		a.Redirects = way
		to := redirectOf(a, rawURL)
		if to == "" || redirects == 0 {
			return a, nil
		}
		a.close()
		way = append(way, redirect{a.Status, to})
		switch {
		case seen[to]:
			return &webAnswer{URL: rawURL, Redirects: way}, errWebLoop
		case len(way) > redirects:
			return &webAnswer{URL: rawURL, Redirects: way}, errWebRedirects
		}
		seen[to] = true
		rawURL = to
	}
}

// redirectOf is the absolute URL that an answer redirects to, "" for none.
func redirectOf(a *webAnswer, from string) string {
	switch a.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return ""
	}
	base, err := url.Parse(from)
	if err != nil {
		return ""
	}
	to, err := base.Parse(a.Header.Get("Location"))
	if err != nil || a.Header.Get("Location") == "" {
		return ""
	}
	to.Fragment = ""
	return to.String()
}

// once asks for a URL. The deadline is for the body as well.
func (w *web) once(ctx context.Context, rawURL string) (*webAnswer, error) {
	if !isWebURL(rawURL) {
		return nil, errors.New("not a URL of http or https")
	}
	limited, cancel := context.WithTimeoutCause(ctx, w.timeout, fmt.Errorf("no whole answer within %v", w.timeout))
	request, err := http.NewRequestWithContext(limited, http.MethodGet, rawURL, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header = http.Header{"User-Agent": {fetchUserAgent}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip"}}
	response, err := w.client.Do(request) //nolint:bodyclose // closed by the answer's close
	if err != nil {
		err = plainWebError(limited, err)
		cancel()
		return nil, err
	}
	a := &webAnswer{URL: rawURL, Status: response.StatusCode, Header: response.Header}
	a.close = func() {
		cancel() // before it would read what is left
		_ = response.Body.Close()
	}
	if err := a.decode(&webBody{ctx: limited, r: response.Body, left: maxWebBody}); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// decode takes the Content-Encoding away.
func (a *webAnswer) decode(body io.Reader) error {
	a.Body = body
	switch encoding := strings.ToLower(strings.TrimSpace(a.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
	default:
		return fmt.Errorf("%w: %s", errWebEncoding, encoding)
	}
	a.Encoded = true
	b := bufio.NewReader(body)
	a.Body = b
	if magic, err := b.Peek(2); string(magic) != "\x1f\x8b" {
		a.Mislabels = err == nil
		return nil
	}
	if u, err := url.Parse(a.URL); err == nil && strings.HasSuffix(u.Path, ".gz") && !isPackedTwice(b) {
		return nil // the encoding is the file's own
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return fmt.Errorf("reading its gzip: %w", err)
	}
	a.Body = z
	return nil
}

// isPackedTwice reports whether there is gzip in a gzip.
func isPackedTwice(b *bufio.Reader) bool {
	head, _ := b.Peek(512)
	z, err := gzip.NewReader(bytes.NewReader(head))
	return err == nil && isGzip(bufio.NewReaderSize(z, 16))
}

// webBody is a body as it is sent, up to maxWebBody.
type webBody struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

func (b *webBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errWebTooLong
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		err = plainWebError(b.ctx, err)
	}
	return n, err
}

// plainWebError says what went wrong without naming the request once more.
func plainWebError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, errWebPrivate) {
		return errWebPrivate
	}
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// retryAfterOf reads Retry-After (RFC 9110, section 10.2.3).
func retryAfterOf(header http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now), true
	}
	return 0, false
}
