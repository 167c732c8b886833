package caddytest

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestCheckMemory is that a document of 50 MB takes hardly more memory than a small
// one. Maxrss is in KiB.
func TestCheckMemory(t *testing.T) {
	const size = 50_000_000
	peak := func(bytes int) int64 {
		cmd := command(t.TempDir(), "sitemap", "check", "-")
		cmd.Stdin = endlessSitemap(bytes)
		output, err := cmd.CombinedOutput()
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && strings.Contains(string(output), "documents: 1, ") {
			return int64(usage.Maxrss) << 10
		}
		t.Fatalf("got %v\n%s", err, output)
		return 0
	}
	small, large := peak(1000), peak(size)
	t.Logf("%d KiB, %d KiB", small>>10, large>>10)
	most := int64(32 << 20) // of 48 MiB; the rest any command takes
	if harness.Race {
		most *= 3 // the detector has its own memory beside what the document takes
	}
	if large-small > most {
		t.Errorf("a small document takes %d bytes, one of %d bytes %d", small, size, large)
	}
}

// endlessSitemap is a document without a flaw but its length of at least so many bytes.
func endlessSitemap(bytes int) io.Reader {
	r, pipe := io.Pipe()
	go func() {
		w := bufio.NewWriterSize(pipe, 1<<20)
		n, err := io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for i := 0; n < bytes && err == nil; i++ {
			var more int
			more, err = fmt.Fprintf(w, "<url><loc>https://example.com/a/folder/page-%d.html</loc><lastmod>2024-05-0%d</lastmod></url>\n", i, 1+i%9)
			n += more
		}
		_, _ = io.WriteString(w, "</urlset>\n")
		_ = w.Flush()
		_ = pipe.Close()
	}()
	return r
}
