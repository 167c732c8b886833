package urllist

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

func TestReadSitemap(t *testing.T) {
	const urlset = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
		<url><loc> https://example.com/a </loc><lastmod>2024-02-03</lastmod><priority>0.5</priority></url>
		<url><loc>https://example.com/b?x=1&amp;y=2</loc><changefreq>Daily</changefreq><lastmod>nonsense</lastmod></url>
		<url><loc>https://other.example/c</loc></url>
	</urlset>`
	const index = `<sitemapindex><sitemap><loc>https://example.com/one.xml</loc></sitemap><sitemap><loc>https://example.com/gone.xml</loc></sitemap><sitemap><loc>https://example.com/two.txt</loc></sitemap></sitemapindex>`
	documents := map[string]string{
		"https://example.com/one.xml":  gzipped(urlset),
		"https://example.com/two.txt":  "https://example.com/z\n",
		"https://example.com/self.xml": `<sitemapindex><sitemap><loc>https://example.com/self.xml</loc></sitemap></sitemapindex>`,
	}
	errGone := errors.New("gone")
	for _, test := range []struct {
		name, document string
		want           []string
		refused        int
		wantErr        string
	}{
		{"urlset", urlset, []string{"/a 2024-02-03 0.5", "/b?x=1&y=2 daily"}, 1, ""},
		{"compressed", gzipped(urlset), []string{"/a 2024-02-03 0.5", "/b?x=1&y=2 daily"}, 1, ""},
		{"byte order mark", "\uFEFF \n" + urlset, []string{"/a 2024-02-03 0.5", "/b?x=1&y=2 daily"}, 1, ""},
		{"lines", "/x lastmod=2024-01-01\nhttps://example.com/y\n", []string{"/x 2024-01-01", "/y"}, 0, ""},
		{"index", index, []string{"/a 2024-02-03 0.5", "/b?x=1&y=2 daily", "/z"}, 1, "https://example.com/gone.xml: gone"},
		{"index of itself", documents["https://example.com/self.xml"], nil, 0, "too deep"},
		{"broken", `<urlset><url><loc>https://example.com/a</loc></url><url><loc>`, []string{"/a"}, 0, "entry 2"},
		{"empty", "", nil, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			open := func(_ context.Context, url string) (io.ReadCloser, error) {
				if d, ok := documents[url]; ok {
					return io.NopCloser(strings.NewReader(d)), nil
				}
				return nil, errGone
			}
			var got []string
			refused := 0
			err := ReadSitemap(t.Context(), strings.NewReader(test.document), "https://example.com", time.Now(), open, func(p page.Page) error {
				text := p.Path
				if p.LastMod != 0 {
					text += " " + time.Unix(p.LastMod, 0).UTC().Format(time.DateOnly)
				}
				got = append(got, strings.TrimSpace(strings.Join([]string{text, p.ChangeFreq.String(), p.Priority.String()}, " ")))
				return nil
			}, func(int, string, error) { refused++ })
			for i := range got {
				got[i] = strings.Join(strings.Fields(got[i]), " ")
			}
			if !slices.Equal(got, test.want) || refused != test.refused {
				t.Errorf("got %q and %d refused, want %q and %d", got, refused, test.want, test.refused)
			}
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got error %v, want %q", err, test.wantErr)
			}
		})
	}
}

func TestReadSitemapEnds(t *testing.T) {
	stop := errors.New("stop")
	err := ReadSitemap(t.Context(), strings.NewReader("<urlset><url><loc>https://example.com/a</loc></url></urlset>"), "https://example.com", time.Now(), nil,
		func(page.Page) error { return stop }, nil)
	if !errors.Is(err, stop) {
		t.Errorf("got %v, want yield's error", err)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 66 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	_ = z.Close()
	if err := ReadSitemap(t.Context(), &bomb, "https://example.com", time.Now(), nil, func(page.Page) error { return nil }, nil); !errors.Is(err, errDocument) {
		t.Errorf("got %v for a document of 66 MiB, want %v", err, errDocument)
	}
}

func FuzzReadSitemap(f *testing.F) {
	f.Add([]byte("<urlset><url><loc>https://example.com/a</loc></url></urlset>"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, document []byte) {
		_ = ReadSitemap(t.Context(), bytes.NewReader(document), "https://example.com", time.Time{}, nil, func(p page.Page) error {
			if c, err := page.Canonical(p.Path); err != nil || c != p.Path {
				t.Errorf("%q is not in canonical form", p.Path)
			}
			return nil
		}, nil)
	})
}
