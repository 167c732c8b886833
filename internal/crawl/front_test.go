package crawl

import (
	"net/http"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
)

// TestFrontHash: all that is read of a front page's response makes it another one.
func TestFrontHash(t *testing.T) {
	front := func(change func(p *Policy)) uint64 {
		p := plain
		p.Front = &Response{Status: http.StatusOK, Header: http.Header{}, Body: []byte("a"), Made: true}
		change(&p)
		return newFrontPage(&p).hash
	}
	as := front(func(*Policy) {})
	type change = func(p *Policy)
	changes := map[string]change{
		"the path":   func(p *Policy) { p.FrontPath = "/other" },
		"the status": func(p *Policy) { p.Front.Status = http.StatusNotFound },
		"the body":   func(p *Policy) { p.Front.Body = []byte("b") },
		"Location":   func(p *Policy) { p.Front.Header.Set("Location", "/b") },
	}
	for _, name := range html.Headers {
		changes[name] = func(p *Policy) { p.Front.Header.Set(name, "b") }
		changes["a second "+name] = func(p *Policy) { p.Front.Header[name] = []string{"", "b"} }
	}
	seen := map[uint64]string{as: "the same response"}
	for name, change := range changes {
		hash := front(change)
		if other, isSeen := seen[hash]; isSeen {
			t.Errorf("%s: the hash is that of %s", name, other)
		}
		seen[hash] = name
	}
	if front(func(p *Policy) { p.Front.Header.Set("Date", "now") }) != as {
		t.Error("a header that is not read changes the hash")
	}
}
