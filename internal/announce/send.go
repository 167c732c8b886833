package announce

import (
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
)

// notice is what a target is told.
type notice struct {
	Target
	Config          // with the key
	paths  []string // of the pages that changed
}

// request returns the request that tells the target.
func (n *notice) request(ctx context.Context) (*http.Request, error) {
	post := func(contentType, body string) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, strings.NewReader(body))
		if err == nil {
			r.Header.Set("Content-Type", contentType)
		}
		return r, err
	}
	switch n.Kind {
	case Ping:
		at := strings.ReplaceAll(n.URL, "{sitemap}", url.QueryEscape(n.Sitemap))
		return http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	case Hub:
		form := url.Values{"hub.mode": {"publish"}, "hub.url": {n.Feed}}
		return post("application/x-www-form-urlencoded", form.Encode())
	}
	// https://www.indexnow.org/documentation
	_, host, _ := strings.Cut(n.Origin, "://")
	var urls []string
	for _, path := range n.paths {
		urls = append(urls, n.Origin+path)
	}
	body, _ := json.Marshal(map[string]any{ // of strings: there are no errors
		"host":        host,
		"key":         n.Key,
		"keyLocation": n.Origin + n.keyPath(),
		"urlList":     urls,
	})
	return post("application/json; charset=utf-8", string(body))
}

// keyPath is the path of the key file.
func (n *notice) keyPath() string { return n.Prefix + "/" + n.Key + ".txt" }

// Outcome is what came of a notice. Its zero value: nobody has tried to send it.
type Outcome struct {
	Requested  bool          // the request was made, or at least begun: it may have been received
	Status     int           // of the response; 0: there was none
	RetryAfter time.Duration // what the response asks for, at most a day; 0: nothing
	Reason     string        // why it was not accepted, and what to do; printable. "": it was accepted
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

// send tells a target, for which it takes 30 seconds at most, if the key file is as it must be, and once it has its turn.
func (c *Client) send(ctx context.Context, n *notice, fetch Fetch) Outcome {
	if n.Kind == IndexNow {
		if err := n.checkKeyFile(ctx, fetch); err != nil {
			return Outcome{Reason: "nothing was sent: key file " + n.Origin + n.keyPath() + ": " + err.Error()}
		}
	}
	if !c.slots.Take(ctx) {
		return Outcome{}
	}
	defer c.slots.Release()
	r, err := n.request(ctx)
	if err != nil {
		return Outcome{Reason: excerpt(err.Error())}
	}
	r.Header.Set("User-Agent", c.userAgent)
	res, err := c.http.Do(r)
	if err != nil {
		return unanswered(err)
	}
	defer res.Body.Close()
	o := Outcome{
		Requested:  true,
		Status:     res.StatusCode,
		RetryAfter: wait.RetryAfter(res.Header, time.Now(), 0),
	}
	if o.Status/100 != 2 {
		o.Reason = n.reason(res)
	}
	return o
}

// unanswered is what came of a request without a response.
func unanswered(err error) Outcome {
	o := Outcome{Requested: true}
	err = errors.Unwrap(err) // without the URL
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		o.Requested = failed.Op != "dial"                 // else nobody can have received it
		err = fmt.Errorf("%s: %w", failed.Op, failed.Err) // without ports, which are never the same twice
	}
	o.Reason = excerpt(err.Error())
	return o
}

// checkKeyFile requests the key file as an endpoint will. The error, which is printable, is why that would refuse it.
func (n *notice) checkKeyFile(ctx context.Context, fetch Fetch) error {
	status, body, err := fetch(ctx, n.keyPath())
	if err != nil {
		return errors.New(excerpt(err.Error()))
	}
	if status != http.StatusOK || strings.TrimSpace(string(body)) != n.Key {
		return fmt.Errorf("it returns %d, and not the key: "+
			"let requests for it reach the sitemap directive before anything else", status)
	}
	return nil
}

// reason says why a response does not accept a notice, and what to do.
func (n *notice) reason(res *http.Response) string {
	status := res.StatusCode
	remedy := n.remedy(status)
	if status/100 == 3 {
		remedy = "configure the URL to which it redirects, if that is right: " + excerpt(res.Header.Get("Location"))
	}
	text := fmt.Sprintf("status %d: %s", status, remedy)
	if status == http.StatusSwitchingProtocols {
		return text // after which no timeout holds
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxExcerpt))
	if quoted := excerpt(string(body)); quoted != "" {
		text += "; response: " + quoted
	}
	return text
}

// remedy says what to do where a notice is not accepted.
func (n *notice) remedy(status int) string {
	if status == 404 || status == 410 {
		return "correct or remove the URL"
	}
	if n.Kind == IndexNow {
		switch status {
		case 400:
			return "check that the URL is an endpoint of IndexNow, such as " + DefaultEndpoint
		case 403:
			return "check that " + n.Origin + n.keyPath() + " can be reached from the internet and holds the key"
		case 422:
			return "check that visitors know the site as " + n.Origin + ", else set base_url"
		}
	}
	return "it is tried again"
}

// excerpt makes the beginning of a stranger's text printable.
func excerpt(text string) string {
	words := strings.Fields(strings.ToValidUTF8(text[:min(len(text), maxExcerpt)], ""))
	return terminal.Clean(strings.Join(words, " "))
}
