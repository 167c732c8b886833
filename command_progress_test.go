package sitemap

import (
	"strings"
	"testing"
	"time"
)

// TestProgressLines: where there is no terminal, lines tell how far a build is.
func TestProgressLines(t *testing.T) {
	var out strings.Builder
	b := newBuilding()
	begun := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &progress{w: &out, building: b, begun: begun}
	p.show(begun.Add(time.Second))
	b.now("crawling")
	for range 500 {
		b.response()
	}
	p.show(begun.Add(2 * time.Second))
	b.crawled(507, 7)
	p.show(begun.Add(2 * time.Second))
	p.clear()
	want := "probing: 0 fetched, 0/s\ncrawling: 500 fetched, 250/s\ncrawling: 500 fetched, 250/s, 507 pages known, 7 left\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProgressBar: on a terminal there is one line, which is empty in the end.
func TestProgressBar(t *testing.T) {
	var out strings.Builder
	b := newBuilding()
	begun := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &progress{w: &out, building: b, begun: begun, bar: true}
	for i := range 2 * barWidth {
		p.show(begun.Add(time.Duration(i+1) * barEvery))
	}
	p.clear()
	lines := strings.Split(out.String(), "\r")
	if first, want := lines[0], "\x1b[2K[="+strings.Repeat(" ", barWidth-1)+"] probing: 0 fetched, 0/s"; first != want {
		t.Errorf("got %q, want %q", first, want)
	}
	if middle := lines[barWidth]; !strings.Contains(middle, "=] ") {
		t.Errorf("got %q", middle)
	}
	if last := lines[len(lines)-1]; len(lines) != 2*barWidth+1 || last != "\x1b[2K" || strings.Contains(out.String(), "\n") {
		t.Errorf("got %d parts, the last one %q", len(lines), last)
	}
}

// TestServerHasNoBuilding: what a build counts, a server does not.
func TestServerHasNoBuilding(*testing.T) {
	var b *building
	b.response()
	b.crawled(1, 1)
}

// TestSiteFolder: a site's folder tells its host, its port and the folder of its URLs.
func TestSiteFolder(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com":              "example.com",
		"http://example.com:8080":          "example.com_8080",
		"https://example.com/docs":         "example.com/docs",
		"http://[::1]:8080/a%20b":          "__1_8080/a b",
		"https://xn--bcher-kva.example/ok": "xn--bcher-kva.example/ok",
	} {
		if got := siteFolder(url); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
