package check

import (
	"bytes"
	"io"
)

// list checks a text of one URL a line.
func (d *document) list() error {
	w := &d.tokens.window
	if !w.isURL() {
		d.say(Error, 1, "root", "is neither XML nor a list of URLs")
		return nil
	}
	d.result.Kind = KindText
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
		if err := d.listed(text, line); err != nil {
			return err
		}
	}
}

// textLine is the next line, without its end, which is LF, CR or both; nil at the
// document's end.
func (w *window) textLine() ([]byte, error) {
	w.begin()
	end := 0
	for {
		rest := w.rest()
		i := bytes.IndexAny(rest[end:], "\r\n")
		if i >= 0 {
			end += i
			break
		}
		end = len(rest)
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

// isURL reports whether what comes next but for white space begins as a URL does.
func (w *window) isURL() bool {
	const scheme = "https:"
	w.has(firstWindow / 2)
	head := bytes.TrimLeft(w.rest(), " \t\r\n")
	head = head[:min(len(head), len(scheme))]
	return bytes.EqualFold(head, []byte(scheme)) || len(head) > 0 && bytes.EqualFold(head[:len(head)-1], []byte("http:"))
}

// listed checks a line of a list.
func (d *document) listed(text []byte, line int) error {
	if err := validChars(text); err != nil {
		return err
	}
	loc := trimSpace(text)
	if len(loc) == 0 {
		return nil
	}
	d.counted(line)
	if len(loc) < len(text) {
		d.about(loc, Warning, line, "loc-space-around", "has white space around a URL, which some readers keep")
	}
	d.locate(loc, func() int { return line })
	return nil
}
