package crawl

import (
	"context"
	"net/http"
)

// Fetcher fetches pages from the server itself. It is safe for concurrent use.
type Fetcher interface {
	// Fetch makes one GET request as an anonymous visitor. An error means that there was
	// no response: it timed out, the connection was aborted, or ctx has ended. An error
	// status is a response.
	Fetch(ctx context.Context, r Request) (*Response, error)
}

// Request is a GET request for a page of the site.
type Request struct {
	// Path is the page's path with its query, as in [page.Page].
	Path string

	// Header is sent besides the Fetcher's own; nil: nothing.
	Header http.Header

	// Limit is the most bytes of the body that are taken.
	Limit int

	// Wants reports, by status and header, whether the body is wanted at all; nil: it is.
	// The response of a fetch whose body is not wanted ends there.
	Wants func(status int, header http.Header) bool
}

// Response is the response to a [Request].
type Response struct {
	Status    int
	Header    http.Header
	Body      []byte // of the caller; at most Request.Limit bytes
	Truncated bool   // the body is longer
	Proxied   bool   // an upstream answered
}
