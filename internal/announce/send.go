package announce

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	maxHeader  = 64 << 10 // bytes of a response's header
	maxExcerpt = 200      // bytes of a body, or of an error, that are quoted

	tooMany = 10 * time.Minute // after a 429 without Retry-After
)

// notice is what a target is told.
type notice struct {
	Target
	Config           // with the key
	changes []Change // of pages
}

// request returns the request that tells the target.
func (n *notice) request(ctx context.Context) (*http.Request, error) {
	method := http.MethodPost
	at := n.URL
	var contentType, body string
	switch n.Kind {
	case Ping:
		method = http.MethodGet
		at = strings.ReplaceAll(at, "{sitemap}", url.QueryEscape(n.Sitemap))
	case Hub:
		contentType = "application/x-www-form-urlencoded"
		body = url.Values{"hub.mode": {"publish"}, "hub.url": {n.Feed}}.Encode()
	case IndexNow:
		contentType = "application/json; charset=utf-8"
		body = n.submission()
	}
	r, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
	if err == nil && contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r, err
}

// submission is the body of a request of IndexNow: https://www.indexnow.org/documentation
func (n *notice) submission() string {
	_, host, _ := strings.Cut(n.Origin, "://")
	var urls []string
	for _, c := range n.changes {
		urls = append(urls, n.Origin+c.Path)
	}
	body, _ := json.Marshal(map[string]any{ // of strings: there are no errors
		"host":        host,
		"key":         n.Key,
		"keyLocation": n.keyFile(),
		"urlList":     urls,
	})
	return string(body)
}

// keyPath is the path of the key file, and keyFile its URL.
func (n *notice) keyPath() string { return n.Prefix + "/" + n.Key + ".txt" }
func (n *notice) keyFile() string { return n.Origin + n.keyPath() }

// Outcome is what came of a notice.
type Outcome struct {
	Status     int           // of the response; 0: there was none
	Reason     string        // why it was not accepted, and what to do; printable. "": it was accepted
	Refused    bool          // for good: its URLs are not sent again
	RetryAfter time.Duration // the least time until the next request after one that was not accepted
}

// Client tells targets, of many sites at once. It follows no redirects.
type Client struct {
	http      *http.Client
	slots     wait.Slots
	userAgent string
}

// NewClient returns a client that makes at most so many requests at a time.
func NewClient(userAgent string, atOnce int) *Client {
	return &Client{
		http: &http.Client{
			Timeout: 30 * time.Second, // with the body
			Transport: &http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				DisableKeepAlives:      true, // the next request is minutes away
				MaxResponseHeaderBytes: maxHeader,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		slots:     wait.NewSlots(atOnce),
		userAgent: userAgent,
	}
}

// Fetch requests a path of a site, as a visitor does.
type Fetch func(ctx context.Context, path string) (status int, body []byte, err error)

// checkKeyFile requests the key file as an endpoint of IndexNow will, and says why that would refuse it.
func (n *notice) checkKeyFile(ctx context.Context, fetch Fetch) (o Outcome) {
	if n.Kind != IndexNow {
		return o
	}
	status, body, err := fetch(ctx, n.keyPath())
	isKey := status == http.StatusOK && strings.TrimSpace(string(body)) == n.Key
	begin := "nothing was sent: key file " + n.keyFile() + ": "
	switch {
	case err != nil:
		o.Reason = begin + excerpt(err.Error())
	case !isKey:
		o.Reason = fmt.Sprintf("%sit returns %d, and not the key: "+
			"let requests for it reach the sitemap directive before anything else", begin, status)
	}
	return o
}

// send tells a target, once it has its turn, for which it takes 30 seconds at most.
func (c *Client) send(ctx context.Context, n *notice) Outcome {
	if !c.slots.Take(ctx) {
		return Outcome{} // ctx has ended
	}
	defer c.slots.Release()
	r, err := n.request(ctx)
	if err != nil {
		return Outcome{Reason: excerpt(err.Error())}
	}
	r.Header.Set("User-Agent", c.userAgent)
	res, err := c.http.Do(r)
	if err != nil {
		// It may have been received.
		return Outcome{Reason: cause(err), RetryAfter: intervals[n.Kind]}
	}
	defer res.Body.Close()
	o := Outcome{Status: res.StatusCode}
	if o.Status/100 != 2 { // 202 means that the key is still to be checked
		o.Reason = n.reason(res)
		o.Refused = n.Kind == IndexNow && (o.Status == 400 || o.Status == 422)
		o.RetryAfter = wait.RetryAfter(res.Header, time.Now(), 0)
	}
	if o.Status == http.StatusTooManyRequests {
		o.RetryAfter = cmp.Or(o.RetryAfter, tooMany)
	}
	return o
}

// cause is why there is no response: without the URL, and without ports, which are never the same twice.
func cause(err error) string {
	err = errors.Unwrap(err)
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err
	}
	return excerpt(err.Error())
}

// reason says why a response does not accept a notice, and what to do.
func (n *notice) reason(res *http.Response) string {
	remedy := "it is tried again"
	switch status := res.StatusCode; {
	case status/100 == 3:
		remedy = "configure the URL to which it redirects, if that is right: " + excerpt(res.Header.Get("Location"))
	case status == 404 || status == 410:
		remedy = "correct or remove the URL"
	case n.Kind != IndexNow:
	case status == 400:
		remedy = "check that the URL is an endpoint of IndexNow, such as " + DefaultEndpoint
	case status == 403:
		remedy = "check that " + n.keyFile() + " can be reached from the internet and holds the key"
	case status == 422:
		remedy = "check that visitors know the site as " + n.Origin + ", else set base_url"
	}
	text := fmt.Sprintf("status %d: %s", res.StatusCode, remedy)
	if res.StatusCode < 400 {
		return text
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxExcerpt))
	if quoted := excerpt(string(body)); quoted != "" {
		text += "; response: " + quoted
	}
	return text
}

// excerpt makes the beginning of a stranger's text printable.
func excerpt(text string) string {
	words := strings.Fields(strings.ToValidUTF8(text[:min(len(text), maxExcerpt)], ""))
	return terminal.Clean(strings.Join(words, " "))
}
