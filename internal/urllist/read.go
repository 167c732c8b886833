package urllist

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// MaxLine is the longest line that [Read] takes, in bytes without its line end.
const MaxLine = 64 << 10

// ErrUTF16 is [Read]'s error for a list whose byte order mark says that it is
// UTF-16: each of its lines would be refused.
var ErrUTF16 = errors.New("the list is UTF-16: it must be UTF-8")

const bom = "\uFEFF"

var errLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)

// Read reads a whole list, in UTF-8 with lines that end in LF or CR LF, and calls
// yield for each page of the site at base, in the list's order. base and now are
// as in [Line.Page]. For each line that says no page of the site, refuse is
// called with the line's number, from 1, its text in at most 200 bytes, and why;
// the lines after it are read all the same. refuse may be nil.
//
// Read holds one line at a time. It ends with yield's error, with ctx's, with
// ErrUTF16, or when r fails; a Read of r that blocks is for r to end.
func Read(ctx context.Context, r io.Reader, base string, now time.Time, yield func(page.Page) error, refuse func(line int, text string, err error)) error {
	site, err := parseBase(base)
	if err != nil {
		return err
	}
	if refuse == nil {
		refuse = func(int, string, error) {}
	}
	b := bufio.NewReaderSize(r, len(bom)+MaxLine+len("\r\n"))
	for n := 1; ; n++ {
		if n%256 == 1 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		text, err := b.ReadSlice('\n')
		long := err == bufio.ErrBufferFull
		if long {
			text = bytes.Clone(text[:2*maxShort]) // the buffer is overwritten below
		}
		for err == bufio.ErrBufferFull {
			if err := ctx.Err(); err != nil {
				return err
			}
			_, err = b.ReadSlice('\n')
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("reading line %d: %w", n, err)
		}
		end := err == io.EOF
		if n == 1 {
			if bytes.HasPrefix(text, []byte("\xFF\xFE")) || bytes.HasPrefix(text, []byte("\xFE\xFF")) {
				return ErrUTF16
			}
			text = bytes.TrimPrefix(text, []byte(bom))
		}
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
		if long || len(text) > MaxLine {
			refuse(n, short(string(text[:2*maxShort])), errLong)
		} else if err := readLine(string(text), site, len(base), now, yield); err != nil {
			refusal, ok := err.(refusedError)
			if !ok {
				return err
			}
			refuse(n, short(string(text)), refusal.error)
		}
		if end {
			return nil
		}
	}
}

// refusedError tells a line's own error from yield's.
type refusedError struct{ error }

func readLine(text string, site origin, baseLen int, now time.Time, yield func(page.Page) error) error {
	l, err := ParseLine(text)
	if err == ErrBlank {
		return nil
	}
	if err != nil {
		return refusedError{err}
	}
	p, err := l.page(site, baseLen, now)
	if err != nil {
		return refusedError{err}
	}
	return yield(p)
}
