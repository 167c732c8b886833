package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// encode writes pages as a run.
func encode(pages []page.Page) []byte {
	var w runWriter
	var out []byte
	for len(pages) > 0 {
		var block []byte
		block, pages = w.block(pages)
		out = append(out, block...)
	}
	return out
}

func decode(r io.Reader, size int) (pages []page.Page, err error) {
	reader := newRunReader(r, int64(size))
	for {
		batch, err := reader.next()
		if err == io.EOF {
			return pages, nil
		}
		if err != nil {
			return pages, err
		}
		pages = append(pages, batch...)
	}
}

func TestRun(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		pages := naive([][]page.Page{randomPages(r, r.IntN(1000))})
		run := encode(pages)
		got, err := decode(bytes.NewReader(run), len(run))
		if err != nil || !slices.Equal(got, pages) {
			t.Fatalf("got %d pages, %v, want %d", len(got), err, len(pages))
		}
	}
	long := []page.Page{{Path: "/" + strings.Repeat("a", 100_000)}, {Path: "/" + strings.Repeat("a", 100_001)}, {Path: "/b", ChangeFreq: 255, Priority: 255, LastModDay: true, Version: 1<<32 - 1}}
	run := encode(long)
	if got, err := decode(bytes.NewReader(run), len(run)); err != nil || !slices.Equal(got, long) {
		t.Errorf("long paths: got %d pages, %v", len(got), err)
	}
}

func TestRunTruncated(t *testing.T) {
	pages := naive([][]page.Page{randomPages(rand.New(rand.NewPCG(1, 2)), 600)})
	run := encode(pages)
	for n := range run {
		got, err := decode(bytes.NewReader(run[:n]), len(run))
		if err != io.ErrUnexpectedEOF || !slices.Equal(got, pages[:len(got)]) {
			t.Fatalf("%d of %d bytes: got %d pages, %v", n, len(run), len(got), err)
		}
	}
}

func TestRunCorrupt(t *testing.T) {
	for _, test := range []struct{ name, run string }{
		{"an empty block", "\x00\x00\x00\x00"},
		{"a block longer than the run", "\x05\x00\x00\x00\x00\x01/\x00"},
		{"a cut head", "\x05\x00\x00"},
		{"an empty path", "\x03\x00\x00\x00\x00\x00\x00"},
		{"shared with nothing", "\x04\x00\x00\x00\x01\x01/\x00"},
		{"a path that is too long", "\x04\x00\x00\x00\x00\x09/\x00"},
		{"unknown flags", "\x04\x00\x00\x00\x00\x01/\x40"},
		{"no flags", "\x03\x00\x00\x00\x00\x01/"},
		{"no time", "\x04\x00\x00\x00\x00\x01/\x02"},
		{"no frequency", "\x04\x00\x00\x00\x00\x01/\x04"},
		{"no priority", "\x04\x00\x00\x00\x00\x01/\x08"},
		{"no version", "\x07\x00\x00\x00\x00\x01/\x10abc"},
		{"out of order", "\x08\x00\x00\x00\x00\x01b\x00\x00\x01a\x00"},
		{"the same path", "\x07\x00\x00\x00\x00\x01b\x00\x01\x00\x00"},
		{"shares too little", "\x0a\x00\x00\x00\x00\x02ab\x00\x00\x02ac\x00"},
		{"blocks out of order", "\x04\x00\x00\x00\x00\x01b\x00\x04\x00\x00\x00\x00\x01a\x00"},
	} {
		if got, err := decode(strings.NewReader(test.run), len(test.run)); err != errCorrupt {
			t.Errorf("%s: got %v, %v", test.name, got, err)
		}
	}
}

func FuzzRun(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 3))
	f.Add([]byte{}, 0)
	f.Add([]byte("\x08\x00\x00\x00\x00\x01b\x00\x00\x01a\x00"), 1)
	f.Add(encode(naive([][]page.Page{randomPages(r, 300)})), 0)
	f.Add(encode(naive([][]page.Page{randomPages(r, 3)})), 5)
	f.Fuzz(func(t *testing.T, run []byte, missing int) {
		missing &= 0xFFFF
		pages, err := decode(bytes.NewReader(run), len(run)+missing)
		if err == nil && missing > 0 {
			t.Error("a truncated run was read")
		}
		for i := range pages {
			if pages[i].Path == "" || i > 0 && pages[i-1].Path >= pages[i].Path {
				t.Fatalf("got %q after %q", pages[i].Path, pages[max(i, 1)-1].Path)
			}
		}
		again := encode(pages)
		if got, err := decode(bytes.NewReader(again), len(again)); err != nil || !slices.Equal(got, pages) {
			t.Errorf("written anew: got %d pages, %v, want %d", len(got), err, len(pages))
		}
	})
}

// one gives a page at a time.
func one(pages ...page.Page) func() []page.Page {
	return func() []page.Page {
		if len(pages) == 0 {
			return nil
		}
		p := pages[:1]
		pages = pages[1:]
		return p
	}
}

func TestSpillBound(t *testing.T) {
	s := spill{dir: t.TempDir()}
	defer s.close()
	const n = 256*3 + 100
	for i := range n {
		if err := s.write(t.Context(), one(page.Page{Path: fmt.Sprintf("/%d", i%700), LastMod: int64(i), Priority: page.Priority(i / 700)})); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.runs) != 103 {
		t.Errorf("got %d runs", len(s.runs))
	}
	for i := range 300 {
		s.runs = slices.Insert(s.runs, 3, s.runs[3+i])
	}
	if err := s.reduce(t.Context()); err != nil || len(s.runs) > maxRuns {
		t.Errorf("reduced: got %d runs, %v", len(s.runs), err)
	}
	m := merger{ctx: t.Context()}
	var got []page.Page
	m.yield = func(p page.Page) error { got = append(got, p); return nil }
	for _, next := range s.readers(func(err error) { t.Error(err) }) {
		m.add(&cursor{refill: next})
	}
	if err := m.finish(); err != nil || len(got) != 700 {
		t.Fatalf("got %d pages, %v", len(got), err)
	}
	for _, p := range got {
		var i int
		fmt.Sscanf(p.Path, "/%d", &i)
		if want := page.Priority((n - 1 - i) / 700); p.Priority != want {
			t.Errorf("%s: got priority %d, want %d", p.Path, p.Priority, want)
		}
	}
}

func TestSpillManyRuns(t *testing.T) {
	var paths []string
	for i := range 3000 {
		paths = append(paths, fmt.Sprintf("/%d", i*7919%3000))
	}
	pages, failed, err := gatherAll(t, []Input{{Pages: pathsOf(paths...)}}, Options{Memory: 1})
	if failed != nil || err != nil || len(pages) != 3000 {
		t.Errorf("got %d pages, %v, %v", len(pages), failed, err)
	}
}

func TestSpillReadFails(t *testing.T) {
	s := spill{dir: t.TempDir()}
	defer s.close()
	for _, path := range []string{"/a", "/b"} {
		if err := s.write(t.Context(), one(page.Page{Path: path})); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.file.Truncate(s.size - 1); err != nil {
		t.Fatal(err)
	}
	var errs []error
	readers := s.readers(func(err error) { errs = append(errs, err) })
	if got := readers[0](); paths(got) != "/a" || readers[0]() != nil {
		t.Errorf("the first run: got %v", got)
	}
	if got := readers[1](); got != nil {
		t.Errorf("the second run: got %v", got)
	}
	if len(errs) != 1 || errs[0].Error() != "reading spilled pages: unexpected EOF" {
		t.Errorf("got errors %v", errs)
	}
	err := s.merge(t.Context(), 0)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(s.runs) != 2 {
		t.Errorf("merging: got %v, %d runs", err, len(s.runs))
	}
}

func TestSpillCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := spill{dir: t.TempDir()}
	defer s.close()
	if err := s.write(ctx, one(page.Page{Path: "/a"})); !errors.Is(err, context.Canceled) || len(s.runs) != 0 {
		t.Errorf("got %v, %d runs", err, len(s.runs))
	}
}

// TestSpillClose is of systems that do not unlink open files.
func TestSpillClose(t *testing.T) {
	dir := t.TempDir()
	f, err := os.CreateTemp(dir, "*")
	if err != nil {
		t.Fatal(err)
	}
	s := spill{dir: dir, file: f}
	s.close()
	s.close()
	checkClean(t, dir)
}
