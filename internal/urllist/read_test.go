package urllist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const base = "https://example.com"

// read gives what ReadSitemap yields and refuses, a line each.
func read(t *testing.T, r io.Reader) (got []string, err error) {
	t.Helper()
	err = ReadSitemap(t.Context(), r, base, time.Time{}, nil,
		func(p page.Page) error {
			got = append(got, p.Path)
			return nil
		},
		func(line int, text string, err error) {
			got = append(got, fmt.Sprintf("%d: %q: %v", line, text, err))
		})
	return got, err
}

func TestRead(t *testing.T) {
	long := "/" + strings.Repeat("a", maxLine)
	comment := "# " + strings.Repeat("a", maxLine-2)
	short := "/" + strings.Repeat("a", 196) + "…"
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"line ends", "/a\n/b\r\n\r\n\n/c", []string{"/a", "/b", "/c"}},
		{"no last line end", "/a\r\n/b\r", []string{"/a", "/b"}},
		{"BOM", "\uFEFF/a\n\uFEFF/b", []string{"/a", `2: "\ufeff/b": a URL begins with a slash, or with a scheme such as https://`}},
		{"BOM alone", "\uFEFF", nil},
		{"comments", "# all\n/a # one\n\t# none\n", []string{"/a"}},
		{"order and duplicates stay", "/b\n/a\n/b\n", []string{"/b", "/a", "/b"}},
		{"NUL", "/a\n/\x00\n/b\n", []string{"/a", `2: "/\x00": there is a control character in it`, "/b"}},
		{"CR inside", "/a\r/b\n", []string{`1: "/a\r/b": there is a control character in it`}},
		{"Latin-1", "/\xfc\n/b\n", []string{"1: \"/\uFFFD\": the line is not UTF-8", "/b"}},
		{"other site", "http://example.com/\n" + base + "/b", []string{`1: "http://example.com/": the scheme 'http' is not the site's, 'https'`, "/b"}},
		{"too long to list", long[:maxLine] + "\r\n/b", []string{
			fmt.Sprintf("1: %q: the URL has %d bytes, more than the 2047 that a sitemap may list", short, len(base)+maxLine), "/b"}},
		{"the longest line", "/a\n" + comment + "\r\n/b\n" + comment, []string{"/a", "/b"}},
		{"the longest line after a BOM", bom + comment + "\r\n/b", []string{"/b"}},
		{"a longer line", "/a\n" + long + "\n/b", []string{"/a", fmt.Sprintf("2: %q: the line is longer than 65536 bytes", short), "/b"}},
		{"much longer lines", strings.Repeat(long, 3) + "\n\n" + strings.Repeat(long, 3), []string{
			fmt.Sprintf("1: %q: the line is longer than 65536 bytes", short),
			fmt.Sprintf("3: %q: the line is longer than 65536 bytes", short)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for kind, r := range map[string]io.Reader{
				"whole": strings.NewReader(test.in), "byte by byte": iotest.OneByteReader(strings.NewReader(test.in)),
			} {
				got, err := read(t, r)
				if err != nil || !slices.Equal(got, test.want) {
					t.Errorf("%s: got %q, %v, want %q", kind, got, err, test.want)
				}
			}
		})
	}
}

func TestReadUTF16(t *testing.T) {
	for _, in := range []string{"\xff\xfe/\x00a\x00\n\x00", "\xfe\xff\x00/\x00a\x00\n"} {
		if got, err := read(t, strings.NewReader(in)); err != errUTF16 || got != nil {
			t.Errorf("got %q, %v, want errUTF16", got, err)
		}
	}
}

func TestReadEnds(t *testing.T) {
	errStop := errors.New("stop")
	list := func() io.Reader { return strings.NewReader(strings.Repeat("/a\n", 1000)) }

	n := 0
	err := ReadSitemap(t.Context(), list(), base, time.Time{}, nil, func(page.Page) error {
		if n++; n == 3 {
			return errStop
		}
		return nil
	}, nil)
	if err != errStop || n != 3 {
		t.Errorf("yield's error: got %v after %d pages", err, n)
	}

	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	err = ReadSitemap(ctx, list(), base, time.Time{}, nil, func(page.Page) error { n++; cancel(); return nil }, nil)
	if err != context.Canceled || n > 256 {
		t.Errorf("cancelled: got %v after %d pages", err, n)
	}

	ctx, cancel = context.WithCancel(t.Context())
	cancels := readerFunc(func(p []byte) (int, error) { // an endless line
		cancel()
		return copy(p, strings.Repeat("a", len(p))), nil
	})
	if err := ReadSitemap(ctx, cancels, base, time.Time{}, nil, nil, nil); err != context.Canceled {
		t.Errorf("cancelled in a line: got %v", err)
	}

	got, err := read(t, io.MultiReader(strings.NewReader("/a\n/b"), iotest.ErrReader(errStop)))
	if !errors.Is(err, errStop) || err.Error() != "reading line 2: stop" || !slices.Equal(got, []string{"/a"}) {
		t.Errorf("reader's error: got %q, %v", got, err)
	}

	if err := ReadSitemap(t.Context(), list(), "example.com", time.Time{}, nil, nil, nil); err == nil {
		t.Error("a bad base: got no error")
	}
	if err := ReadSitemap(t.Context(), strings.NewReader("a"), base, time.Time{}, nil, nil, nil); err != nil {
		t.Errorf("no refuse: got %v", err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestReadDropsTheFuture(t *testing.T) {
	var got []page.Page
	err := ReadSitemap(t.Context(), strings.NewReader("/a lastmod=2024-01-01\n/b lastmod=2024-01-02\n"), base, time.Unix(day2024, 0), nil,
		func(p page.Page) error { got = append(got, p); return nil }, nil)
	want := []page.Page{{Path: "/a", LastMod: day2024, LastModDay: true}, {Path: "/b"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func BenchmarkRead(b *testing.B) {
	var list bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&list, "https://example.com/some/folder/page-%d.html lastmod=2024-01-01T10:00:00+01:00\n", i)
	}
	b.SetBytes(int64(list.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if err := ReadSitemap(b.Context(), bytes.NewReader(list.Bytes()), base, time.Time{}, nil, func(page.Page) error { return nil }, nil); err != nil {
			b.Fatal(err)
		}
	}
}
