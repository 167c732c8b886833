package urllist

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line that is read, in bytes without its line end.
const maxLine = 64 << 10

const bom = "\uFEFF"

var (
	errLong = fmt.Errorf("the line is longer than %d bytes", maxLine)

	// errUTF16 is for a list whose byte order mark says so: each of its lines would be
	// refused.
	errUTF16 = errors.New("the list is UTF-16: it must be UTF-8")
)

// readLines reads a list, holding one line at a time.
func (s *reader) readLines(ctx context.Context, r io.Reader) error {
	b := bufio.NewReaderSize(r, len(bom)+maxLine+len("\r\n"))
	for n, end := 1, false; !end; n++ {
		if n%256 == 1 && ctx.Err() != nil {
			return ctx.Err()
		}
		text, err := readLine(ctx, b)
		long := errors.Is(err, errLong)
		end = errors.Is(err, io.EOF)
		if err != nil && !end && !long {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("reading line %d: %w", n, err)
		}
		if n == 1 {
			if bytes.HasPrefix(text, []byte("\xFF\xFE")) || bytes.HasPrefix(text, []byte("\xFE\xFF")) {
				return errUTF16
			}
			text = bytes.TrimPrefix(text, []byte(bom))
		}
		line := string(text)
		var l Line
		if !long {
			l, err = parseLine(line)
		}
		if err := s.take(n, line, l, err); err != nil {
			return err
		}
	}
	return nil
}

// readLine is the next line without its line end. With the last one comes io.EOF, with
// the beginning of one that is too long errLong.
func readLine(ctx context.Context, b *bufio.Reader) ([]byte, error) {
	text, err := b.ReadSlice('\n')
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if len(bytes.TrimPrefix(text, []byte(bom))) <= maxLine {
		return text, err
	}
	text = bytes.Clone(text[:2*maxShort]) // the buffer is overwritten
	for errors.Is(err, bufio.ErrBufferFull) && ctx.Err() == nil {
		_, err = b.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return text, errLong
}
