// Package recorder records the response of an HTTP handler in memory, up to a limit.
package recorder

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	unwantedBody = 4096 // bytes of a body that is not wanted: they show whether an upstream breaks off
	sniffedBytes = 512  // of a body, which decide its type

	// How much of a body is taken, and for how long, after what is kept of it: error pages and most images end within
	// that. Caddy's reverse_proxy logs a warning, with the whole request, for each response that it has to abort.
	maxRest  = 1 << 20 // bytes
	restTime = time.Second
)

var errUnwanted = errors.New("no more of this body is wanted")

// Options say which part of a response is recorded.
type Options struct {
	// Limit is the most bytes of the body that are kept.
	Limit int

	// Wants reports whether the body is wanted, given the status and the header, once that has a
	// Content-Type. Nil: it is.
	Wants func(status int, header http.Header) bool

	// Stop cancels the request once no more of the body is kept: a second or 1 MiB later where a handler writes the
	// body, at once where the body is read from a file. Nil: it goes on, and the rest of the body is dropped.
	Stop context.CancelFunc

	// Header is the header that handlers fill in. Nil: a new one.
	Header http.Header
}

// Recorder is an [http.ResponseWriter] that records the response. It is not safe for concurrent use.
type Recorder struct {
	Status    int // 0: none was sent yet
	Body      []byte
	Truncated bool // the body is longer
	Ended     bool // no more of the body is kept

	o        Options
	header   http.Header // as it stands
	sent     http.Header
	unwanted bool // the body is not wanted
	rest     int  // bytes taken since Ended
	restOver *time.Timer
}

// New returns a Recorder of one response.
func New(o Options) *Recorder { return &Recorder{o: o, header: o.Header} }

// Finish ends the response, with this status if the handler sent none, and returns its header.
func (w *Recorder) Finish(status int) http.Header {
	if w.restOver != nil {
		w.restOver.Stop()
	}
	w.WriteHeader(status)
	w.sniff()
	if w.unwanted {
		w.Body = nil
		w.Truncated = false
	}
	return w.sent
}

// Header implements [http.ResponseWriter].
func (w *Recorder) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader implements [http.ResponseWriter]. Informational responses are passed over.
func (w *Recorder) WriteHeader(status int) {
	if w.Status != 0 || status < 200 {
		return
	}
	w.Status = status
	w.sent = w.Header().Clone() // what a handler changes from here on is not sent
	w.typed()
}

// typed finds out whether the body is wanted, if its type is known.
func (w *Recorder) typed() {
	if w.o.Wants == nil || w.sent.Get("Content-Type") == "" {
		return
	}
	if !w.o.Wants(w.Status, w.sent) {
		w.unwanted = true
		w.o.Limit = min(w.o.Limit, unwantedBody)
	}
}

// sniff finds out the type where a handler sets none, as net/http does.
func (w *Recorder) sniff() {
	_, isSet := w.sent["Content-Type"] // perhaps to nothing, which keeps net/http from guessing, too
	if !isSet && len(w.Body) > 0 && w.sent.Get("Content-Encoding") == "" {
		w.sent.Set("Content-Type", http.DetectContentType(w.Body))
		w.typed()
	}
}

// Write implements [http.ResponseWriter].
func (w *Recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	before := len(w.Body)
	taken := min(len(b), w.o.Limit+1-before) // one byte more shows that the body is longer
	w.Body = append(w.Body, b[:taken]...)
	w.grown()
	if w.Ended && w.o.Stop != nil {
		return len(b), w.drop(len(b) - (len(w.Body) - before))
	}
	return len(b), nil
}

// drop counts bytes that are not kept, and ends the response once they are too many or too slow.
func (w *Recorder) drop(n int) error {
	if w.restOver == nil {
		w.restOver = time.AfterFunc(restTime, w.o.Stop)
	}
	w.rest += n
	if w.rest <= maxRest {
		return nil
	}
	w.o.Stop()
	return errUnwanted
}

// ReadFrom implements [io.ReaderFrom]: it spares file servers a copy and a buffer.
func (w *Recorder) ReadFrom(r io.Reader) (n int64, err error) {
	w.WriteHeader(http.StatusOK)
	size, unknown := strconv.Atoi(w.sent.Get("Content-Length"))
	if unknown != nil {
		size = sniffedBytes
	}
	// One byte more: the end is found without growing.
	w.Body = slices.Grow(w.Body, max(0, min(size, w.o.Limit)-len(w.Body))+1)
	for err == nil {
		w.Body = slices.Grow(w.Body, 1)
		var m int
		m, err = r.Read(w.Body[len(w.Body):cap(w.Body)])
		w.Body = w.Body[:len(w.Body)+m]
		n += int64(m)
		w.grown()
		if w.Ended && w.o.Stop != nil {
			// A file server logs nothing, and reading on would cost as much as the rest of the file.
			w.o.Stop()
			return n, errUnwanted
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// grown ends the recording if the body exceeds the limit.
func (w *Recorder) grown() {
	if len(w.Body) >= min(sniffedBytes, w.o.Limit+1) {
		w.sniff()
	}
	if len(w.Body) <= w.o.Limit {
		return
	}
	w.Body = w.Body[:w.o.Limit]
	w.Truncated = true
	w.Ended = true
}

// Flush implements [http.Flusher]. It does nothing: only whole responses are used.
func (w *Recorder) Flush() {}
