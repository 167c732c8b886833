package check

import (
	"bytes"
	"io"
)

// list checks a text of one URL a line.
func (d *document) list() error {
	w := &d.tokens.window
	line := 0
	for {
		text, err := w.textLine()
		if err != nil {
			return err
		}
		if text == nil {
			return nil
		}
		line++
		more, err := d.listed(text, line)
		if err != nil || !more {
			return err
		}
	}
}

// textLine is the next line, without its end, which is LF, CR or both; nil at the
// document's end.
func (w *window) textLine() ([]byte, error) {
	w.begin()
	end, n := 0, 0
	for {
		rest := w.rest()
		if i := bytes.IndexAny(rest[n:], "\r\n"); i >= 0 {
			end = n + i
			break
		}
		n = len(rest)
		if !w.more() {
			return w.lastLine()
		}
	}
	size := 1
	if w.rest()[end] == '\r' && w.has(end+2) && w.rest()[end+1] == '\n' {
		size = 2
	}
	text := w.rest()[:end]
	w.pos += end + size
	return text, nil
}

func (w *window) lastLine() ([]byte, error) {
	rest := w.rest()
	w.pos = len(w.buf)
	if w.err != io.EOF {
		return nil, w.err
	}
	if len(rest) == 0 {
		return nil, nil
	}
	return rest, nil
}

// listed checks a line of a list, and reports whether to go on.
func (d *document) listed(text []byte, line int) (bool, error) {
	if err := validChars(text); err != nil {
		return false, err
	}
	loc := trimSpace(text)
	if len(loc) == 0 {
		return true, nil
	}
	if d.result.Kind == KindUnknown {
		if _, flaw := parseAddress(loc); flaw == urlAbsolute {
			d.say(Error, line, "root", "is neither XML nor a list of URLs")
			return false, nil
		}
		d.result.Kind = KindText
	}
	at := func() int { return line }
	d.counted(line)
	if len(loc) < len(text) {
		d.about(loc, Warning, line, "loc-space-around", "has white space around a URL, which some readers keep")
	}
	d.locate(loc, at)
	return true, nil
}
