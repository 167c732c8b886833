package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// send copies a body, in one of the two ways in which handlers do so.
func send(w *Recorder, body string, readFrom bool) error {
	var to io.Writer = w
	if !readFrom {
		to = struct{ io.Writer }{w}
	}
	n, err := io.Copy(to, struct{ io.Reader }{strings.NewReader(body)})
	if err == nil && n != int64(len(body)) {
		return fmt.Errorf("%d of %d bytes are sent", n, len(body))
	}
	return err
}

// TestReadFrom: all that is read counts as sent.
func TestReadFrom(t *testing.T) {
	if err := send(New(Options{Limit: 100}), "<p>", true); err != nil {
		t.Error(err)
	}
}

// TestHeader: the header is as it was sent, with the type that net/http finds out.
func TestHeader(t *testing.T) {
	const html = "text/html; charset=utf-8"
	for name, test := range map[string]struct {
		handler func(*Recorder)
		want    string // Content-Type
	}{
		"given":                {func(w *Recorder) { w.Header().Set("Content-Type", "text/plain"); _ = send(w, "<!doctype html>", false) }, "text/plain"},
		"found out":            {func(w *Recorder) { _ = send(w, "<!doctype html>", false) }, html},
		"found out where read": {func(w *Recorder) { _ = send(w, "<!doctype html>", true) }, html},
		"found out in pieces": {func(w *Recorder) {
			for _, piece := range []string{"<!doc", "type ", "html>"} {
				_ = send(w, piece, false)
			}
		}, html},
		"encoded":               {func(w *Recorder) { w.Header().Set("Content-Encoding", "gzip"); _ = send(w, "\x1f\x8b\x08", false) }, ""},
		"no body":               {func(w *Recorder) { _ = send(w, "", true) }, ""},
		"set after the header":  {func(w *Recorder) { w.WriteHeader(200); w.Header().Set("Content-Type", "a/b") }, ""},
		"suppressed by handler": {func(w *Recorder) { w.Header()["Content-Type"] = nil; _ = send(w, "<p>", false) }, ""},
	} {
		w := New(Options{Limit: 100})
		test.handler(w)
		if got := w.Finish(200).Get("Content-Type"); got != test.want || w.Status != 200 {
			t.Errorf("%s: got %q, status %d, want %q", name, got, w.Status, test.want)
		}
	}
}

// TestWants: a body that is not wanted is not read, whichever way it is sent and whether its
// type was given or found out.
func TestWants(t *testing.T) {
	long := strings.Repeat("<!doctype html>"+strings.Repeat(" ", 1000), 100)
	for _, body := range []string{long, long[:100]} {
		for _, readFrom := range []bool{false, true} {
			for _, header := range []http.Header{{}, {"Content-Type": {"text/html"}}, {"Content-Length": {fmt.Sprint(len(body))}}} {
				for _, wanted := range []bool{false, true} {
					asked := 0
					w := New(Options{Limit: 1 << 20, Header: header.Clone(), Stop: func() {}, Wants: func(status int, header http.Header) bool {
						asked++
						if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
							t.Errorf("asked of status %d, %v", status, header)
						}
						return wanted
					}})
					err := send(w, body, readFrom)
					w.Finish(200)
					if whole := string(w.Body) == body; asked != 1 || (err != nil) != (w.Ended && readFrom) || w.Ended != (!wanted && len(body) > unwantedBody) ||
						whole != wanted || w.Truncated || !wanted && len(w.Body) > 0 {
						t.Errorf("read %t, %v, wanted %t: asked %d times, got %d bytes of %d, truncated %t, %v", readFrom, header, wanted, asked, len(w.Body), len(body), w.Truncated, err)
					}
				}
			}
		}
	}
}

// TestContentLength: a Content-Length saves growing, but allocates no more than may be kept.
func TestContentLength(t *testing.T) {
	const limit = 10_000
	for _, test := range []struct {
		length string
		most   int // bytes that are allocated
	}{
		{"", 2 * sniffedBytes},
		{"100", 2 * sniffedBytes},
		{"-1", 2 * sniffedBytes},
		{"9000", limit + limit/4},
		{"10000", limit + limit/4},
		{"67108864", limit + limit/4},
		{"9223372036854775807", limit + limit/4},
		{"9223372036854775808", 2 * sniffedBytes},
	} {
		w := New(Options{Limit: limit, Header: http.Header{"Content-Length": {test.length}}})
		if err := send(w, "text", true); err != nil || string(w.Body) != "text" {
			t.Errorf("%s: got %q, %v", test.length, w.Body, err)
		}
		if cap(w.Body) > test.most {
			t.Errorf("%s: %d bytes were allocated, want at most %d", test.length, cap(w.Body), test.most)
		}
	}
}

// TestLimit: no more than the limit is kept, and the request is stopped where that is wanted: at once where a body
// is read, as from a file.
func TestLimit(t *testing.T) {
	for _, readFrom := range []bool{false, true} {
		for n, truncated := range map[int]bool{99: false, 100: false, 101: true, 100_000: true} {
			body, stopped := strings.Repeat("x", n), 0
			w := New(Options{Limit: 100, Stop: func() { stopped++ }})
			err := send(w, body, readFrom)
			w.Finish(200)
			stops := truncated && readFrom
			if len(w.Body) != min(n, 100) || w.Truncated != truncated || errors.Is(err, errUnwanted) != stops || (stopped > 0) != stops {
				t.Errorf("%d bytes, read %t: got %d bytes, truncated %t, stopped %d times, %v", n, readFrom, len(w.Body), w.Truncated, stopped, err)
			}
			w = New(Options{Limit: 100})
			if err := send(w, body, readFrom); len(w.Body) != min(n, 100) || w.Truncated != truncated || err != nil {
				t.Errorf("%d bytes, read %t, not stopped: got %d bytes, truncated %t, %v", n, readFrom, len(w.Body), w.Truncated, err)
			}
		}
	}
}

// TestRest: what follows the end of what is kept is taken without an error, so that a proxy does not log that it
// aborts the response, but only so much of it, and only for so long.
func TestRest(t *testing.T) {
	const piece = 32 << 10 // as reverse_proxy copies them
	for _, test := range []struct {
		name     string
		unwanted bool
		size     int
		pause    time.Duration // between pieces
		stops    bool
	}{
		{"to the limit", false, 100, 0, false},
		{"past the limit", false, 101, 0, false},
		{"long", false, 100 + maxRest, 0, false},
		{"too long", false, 101 + maxRest, 0, true},
		{"unwanted", true, unwantedBody, 0, false},
		{"unwanted, past what is looked at", true, unwantedBody + 1, 0, false},
		{"unwanted and long", true, unwantedBody + maxRest, 0, false},
		{"unwanted and too long", true, unwantedBody + maxRest + 1, 0, true},
		{"endless", true, 1 << 30, 0, true},
		{"slow", true, 10 * piece, restTime / 20, false},
		{"too slow", true, 10 * piece, restTime / 5, true},
		{"slow within the limit", false, 100, time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun, stopped := time.Now(), time.Duration(-1)
			ctx, cancel := context.WithCancel(t.Context())
			stop := func() {
				stopped = time.Since(begun)
				cancel()
			}
			limit := 100
			if test.unwanted {
				limit = 1 << 20
			}
			w := New(Options{Limit: limit, Stop: stop, Wants: func(int, http.Header) bool { return !test.unwanted }})
			w.Header().Set("Content-Type", "text/html")
			buf := make([]byte, piece)
			var err error
			written := 0
			for written < test.size && err == nil && ctx.Err() == nil {
				n := min(piece, test.size-written)
				_, err = w.Write(buf[:n])
				written += n
				time.Sleep(test.pause)
			}
			if header := w.Finish(404); header.Get("Content-Type") != "text/html" || w.Status != 200 {
				t.Errorf("%s: got status %d, %v", test.name, w.Status, header)
			}
			time.Sleep(time.Hour) // nothing goes on
			synctest.Wait()
			if stops := stopped >= 0; stops != test.stops || errors.Is(err, errUnwanted) != (test.stops && test.pause == 0) {
				t.Errorf("%s: stopped %t after %d bytes, want %t, %v", test.name, stops, written, test.stops, err)
			}
			if stopped > restTime || written > maxRest+unwantedBody+piece {
				t.Errorf("%s: it took %d bytes and %s", test.name, written, stopped)
			}
			if isLong := test.size > 100; w.Ended != (isLong && (!test.unwanted || test.size > unwantedBody)) {
				t.Errorf("%s: ended %t", test.name, w.Ended)
			}
		})
	}
}
