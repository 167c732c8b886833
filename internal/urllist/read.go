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
		text, long, err := readLine(ctx, b)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			if ctxErr := ctx.Err(); ctxErr != nil {
				return ctxErr
			}
			return fmt.Errorf("reading line %d: %w", n, err)
		}
		if n == 1 {
			if bytes.HasPrefix(text, []byte("\xFF\xFE")) || bytes.HasPrefix(text, []byte("\xFE\xFF")) {
				return ErrUTF16
			}
			text = bytes.TrimPrefix(text, []byte(bom))
		}
		p, err := page.Page{}, errLong
		if !long && len(text) <= MaxLine {
			p, err = parsePage(string(text), site, len(base), now)
		}
		switch {
		case err == nil:
			if err := yield(p); err != nil {
				return err
			}
		case !errors.Is(err, ErrBlank):
			refuse(n, short(string(text)), err)
		}
		if end {
			return nil
		}
	}
}

// readLine is the next line without its line end; the beginning of one that is
// long. With the last line comes io.EOF.
func readLine(ctx context.Context, b *bufio.Reader) (text []byte, long bool, err error) {
	text, err = b.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long = true
		text = bytes.Clone(text[:2*maxShort]) // the buffer is overwritten below
		for errors.Is(err, bufio.ErrBufferFull) && ctx.Err() == nil {
			_, err = b.ReadSlice('\n')
		}
		if ctxErr := ctx.Err(); ctxErr != nil {
			err = ctxErr
		}
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), long, err
}

func parsePage(line string, site origin, baseLen int, now time.Time) (page.Page, error) {
	l, err := ParseLine(line)
	if err != nil {
		return page.Page{}, err
	}
	return l.page(site, baseLen, now)
}
