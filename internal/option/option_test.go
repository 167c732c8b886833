package option

import (
	"strings"
	"testing"
)

// TestFind: a word that is likely misspelt names what was meant, others all there are.
func TestFind(t *testing.T) {
	for _, test := range []struct {
		known string
		words map[string]string // what was meant; "": all
	}{
		{"path base_url refresh robots_txt exclude rule crawl files urls", map[string]string{
			"refesh": "refresh", "refrehs": "refresh", "Refresh": "refresh", "apth": "path", "paths": "path", "base": "base_url", "base-url": "base_url",
			"url": "urls", "fil": "files", "robots.txt": "robots_txt", "exlude": "exclude", "crawling": "crawl",
			"gzip": "", "encode": "", "{": "", strings.Repeat("x", 1000): "",
		}},
		{"at include exclude clean_urls", map[string]string{"includes": "include", "clean": "clean_urls"}},
	} {
		var all Options
		for _, name := range strings.Fields(test.known) {
			all = append(all, Option{Name: name})
			if found, err := all.Find(name); err != nil || found.Name != name {
				t.Errorf("%s: got %v, %v", name, found.Name, err)
			}
		}
		all = append(all, Option{Name: "elsewhere", Hint: "in another place"})
		for word, meant := range test.words {
			want := "use " + strings.ReplaceAll(test.known, " ", ", ")
			if meant != "" {
				want = "did you mean '" + meant + "'?"
			}
			if _, err := all.Find(word); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%.20q: got %v, want %q", word, err, want)
			}
		}
	}
}
