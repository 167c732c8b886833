package announce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Job is one request to a target.
type Job struct {
	Method string
	URL    string // of the request
	Type   string // Content-Type of Body; "": there is none
	Body   []byte
	URLs   int // announced
	target *target

	key, keyLocation, origin string // of IndexNow
}

// newJob returns the job for a target's noted paths.
func (q *Queue) newJob(t *target) *Job {
	job := &Job{Method: http.MethodPost, URL: t.URL, URLs: t.noted(), target: t}
	switch t.Kind {
	case Ping:
		job.Method = http.MethodGet
		job.URL = strings.ReplaceAll(t.URL, "{sitemap}", url.QueryEscape(q.config.Sitemap))
	case Hub:
		job.Type = "application/x-www-form-urlencoded"
		job.Body = []byte(url.Values{"hub.mode": {"publish"}, "hub.url": {q.config.Feed}}.Encode())
	case IndexNow:
		q.fillIndexNow(job)
	}
	return job
}

// fillIndexNow makes a job a request of IndexNow: see https://www.indexnow.org/documentation.
func (q *Queue) fillIndexNow(job *Job) {
	t := job.target
	job.key = q.state.Key
	job.origin = q.config.Origin
	job.keyLocation = job.origin + q.config.Prefix + "/" + job.key + ".txt"
	_, host, _ := strings.Cut(job.origin, "://")
	// The newest first, and added pages before others.
	urls := make([]string, 0, t.noted())
	for _, path := range slices.Backward(slices.Concat(t.Noted, t.NotedNew)) {
		urls = append(urls, job.origin+path)
	}
	job.Type = "application/json; charset=utf-8"
	job.Body, _ = json.Marshal(map[string]any{ // of strings: there are no errors
		"host":        host,
		"key":         job.key,
		"keyLocation": job.keyLocation,
		"urlList":     urls,
	})
}

// Outcome is what came of a job. Its zero value: nothing was sent, since the runner was stopped.
type Outcome struct {
	Requested  bool          // the request was made, or at least begun: it may have been received
	Status     int           // of the response; 0: there was none
	RetryAfter time.Duration // what the response asks for, at most a day; 0: nothing
	Reason     string        // why it was not accepted, and what to do; printable. "": it was accepted
}

// Client sends jobs, of many queues at once. It follows no redirects.
type Client struct {
	http      *http.Client
	slots     wait.Slots
	userAgent string
}

// NewClient returns a client that sends at most so many jobs at a time.
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

// Send sends a job, for which it takes 30 seconds at most, if the key file is as it must be, and once it has its turn.
func (c *Client) Send(ctx context.Context, job *Job, fetch Fetch) Outcome {
	if job.target.Kind == IndexNow {
		if err := job.checkKeyFile(ctx, fetch); err != nil {
			return Outcome{Reason: "nothing was sent: key file " + job.keyLocation + ": " + err.Error()}
		}
	}
	if !c.slots.Take(ctx) {
		return Outcome{}
	}
	defer c.slots.Release()
	res, err := c.do(ctx, job)
	if err != nil {
		failed, isNet := errors.AsType[*net.OpError](err)
		isUnsent := isNet && failed.Op == "dial" // nobody can have received it
		return Outcome{Requested: !isUnsent, Reason: excerpt(cause(err).Error())}
	}
	defer res.Body.Close()
	o := Outcome{
		Requested:  true,
		Status:     res.StatusCode,
		RetryAfter: wait.RetryAfter(res.Header, time.Now(), 0),
	}
	if o.Status/100 != 2 {
		o.Reason = job.reason(res)
	}
	return o
}

// checkKeyFile requests the key file as an endpoint will. The error, which is printable, is why that would refuse it.
func (j *Job) checkKeyFile(ctx context.Context, fetch Fetch) error {
	status, body, err := fetch(ctx, strings.TrimPrefix(j.keyLocation, j.origin))
	if err != nil {
		return errors.New(excerpt(err.Error()))
	}
	if status != http.StatusOK || strings.TrimSpace(string(body)) != j.key {
		return fmt.Errorf("it returns %d, and not the key: "+
			"let requests for it reach the sitemap directive before anything else", status)
	}
	return nil
}

// do makes the request of a job.
func (c *Client) do(ctx context.Context, job *Job) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, job.Method, job.URL, bytes.NewReader(job.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.userAgent)
	if job.Type != "" {
		req.Header.Set("Content-Type", job.Type)
	}
	return c.http.Do(req)
}

// cause is the part of an error of do that is worth reading.
func cause(err error) error {
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%s: %w", failed.Op, failed.Err) // without ports, which are never the same twice
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err // without the URL
	}
	return err
}

// reason says why a response does not accept a job, and what to do.
func (j *Job) reason(res *http.Response) string {
	status := res.StatusCode
	remedy := j.remedy(status)
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

// remedy says what to do where a job is not accepted.
func (j *Job) remedy(status int) string {
	if status == 404 || status == 410 {
		return "correct or remove the URL"
	}
	const later = "it is tried again"
	if j.target.Kind != IndexNow {
		return later
	}
	switch status {
	case 400:
		return "check that the URL is an endpoint of IndexNow, such as " + DefaultEndpoint
	case 403:
		return "check that " + j.keyLocation + " can be reached from the internet and holds the key"
	case 422:
		return "check that visitors know the site as " + j.origin + ", else set base_url"
	}
	return later
}

// excerpt makes the beginning of a stranger's text printable.
func excerpt(text string) string {
	words := strings.Fields(strings.ToValidUTF8(text[:min(len(text), maxExcerpt)], ""))
	return terminal.Clean(strings.Join(words, " "))
}
