package recorder

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestBody is what of a body is kept, whether it is written or read from.
func TestBody(t *testing.T) {
	html, other := "<!doctype html><title>a page</title>", "a text"
	for name, test := range map[string]struct {
		body, contentType string
		limit             int
		wants             bool // HTML alone
		want              string
		truncated         bool
	}{
		"all of it":         {other, "", 100, false, other, false},
		"as much as wanted": {other, "", 3, false, "a t", true},
		"HTML, told":        {html, "text/html", 100, true, html, false},
		"HTML, sniffed":     {html, "", 100, true, html, false},
		"another type":      {other, "text/css", 100, true, "", false},
		"another, sniffed":  {other, "", 100, true, "", false},
	} {
		for _, read := range []bool{false, true} {
			stopped := 0
			w := New(Options{Limit: test.limit, Stop: func() { stopped++ }, Wants: func(_ int, h http.Header) bool {
				return !test.wants || strings.HasPrefix(h.Get("Content-Type"), "text/html")
			}})
			if test.contentType != "" {
				w.Header().Set("Content-Type", test.contentType)
			}
			var err error
			if read {
				_, err = w.ReadFrom(strings.NewReader(test.body))
			} else {
				_, err = io.WriteString(w, test.body)
			}
			w.Header().Set("X-Late", "is not sent")
			header := w.Finish(http.StatusTeapot)
			if string(w.Body) != test.want || w.Truncated != test.truncated || w.Ended != test.truncated || (stopped > 0) != test.truncated {
				t.Errorf("%s: got %q, truncated %v, ended %v, stopped %d times", name, w.Body, w.Truncated, w.Ended, stopped)
			}
			if errors.Is(err, errUnwanted) != test.truncated || w.Status != http.StatusOK || header.Get("X-Late") != "" {
				t.Errorf("%s: got %v, %d, %v", name, err, w.Status, header)
			}
		}
	}
}

// TestStatus is the first status that is no informational one, else the one it is finished with.
func TestStatus(t *testing.T) {
	w := New(Options{Limit: 1})
	w.WriteHeader(http.StatusEarlyHints)
	if w.Finish(http.StatusNotFound); w.Status != http.StatusNotFound {
		t.Errorf("got %d", w.Status)
	}
	if w.Finish(http.StatusOK); w.Status != http.StatusNotFound {
		t.Errorf("got %d at last", w.Status)
	}
}
