package check

import (
	"bytes"
	"io"
)

const (
	firstWindow = 64 << 10
	maxToken    = 1 << 20 // bytes of one tag, text or comment
)

// window is the part of a document that is held: the token being read, and what was
// read ahead. It grows with a token that does not fit, up to maxToken.
type window struct {
	r   io.Reader
	buf []byte // what is held
	pos int    // where what is not yet read begins in buf
	err error  // what ended reading; io.EOF at the document's end

	start   int // where the token begins in buf
	lines   int // line ends before buf[counted]
	counted int // at most start
}

func newWindow(r io.Reader) window {
	return window{r: r, buf: make([]byte, 0, firstWindow)}
}

// more reads on, and reports whether there was more. What lies before pos goes.
func (w *window) more() bool {
	if w.err != nil {
		return false
	}
	if len(w.buf) == cap(w.buf) || w.pos > cap(w.buf)/2 {
		w.shift()
	}
	if len(w.buf) == cap(w.buf) {
		if cap(w.buf) >= maxToken {
			w.err = errTokenSize
			return false
		}
		grown := make([]byte, len(w.buf), 2*cap(w.buf))
		copy(grown, w.buf)
		w.buf = grown
	}
	for range 100 {
		n, err := w.r.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		w.err = err
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	w.err = io.ErrNoProgress
	return false
}

func (w *window) shift() {
	w.begin()
	w.line()
	n := copy(w.buf, w.buf[w.pos:])
	w.buf = w.buf[:n]
	w.pos, w.start, w.counted = 0, 0, 0
}

// begin begins a token.
func (w *window) begin() { w.start = w.pos }

// line is the line where the token begins, from 1.
func (w *window) line() int {
	w.lines += bytes.Count(w.buf[w.counted:w.start], newline)
	w.counted = w.start
	return w.lines + 1
}

var newline = []byte("\n")

// rest is what is held from pos on.
func (w *window) rest() []byte { return w.buf[w.pos:] }

// has reports whether n bytes follow pos, and reads them.
func (w *window) has(n int) bool {
	for len(w.buf)-w.pos < n {
		if !w.more() {
			return false
		}
	}
	return true
}

// index is where what begins after pos+from, relative to pos, or -1.
func (w *window) index(what string, from int) int {
	for {
		rest := w.buf[w.pos:]
		if from < len(rest) {
			if i := bytes.Index(rest[from:], []byte(what)); i >= 0 {
				return from + i
			}
			from = max(from, len(rest)-len(what)+1)
		}
		if !w.more() {
			return -1
		}
	}
}

// indexByte is index of one byte.
func (w *window) indexByte(what byte, from int) int {
	for {
		rest := w.buf[w.pos:]
		if from < len(rest) {
			if i := bytes.IndexByte(rest[from:], what); i >= 0 {
				return from + i
			}
			from = len(rest)
		}
		if !w.more() {
			return -1
		}
	}
}
