package caddytest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

var kills = flag.Int("kills", 6, "how often TestKills kills a server")

// TestKills ends a process at random moments while it refreshes files that change all the
// time. Each time, the next one serves at once what was committed last, whole, and fetches
// no page again that did not change.
func TestKills(t *testing.T) {
	const pages = 300
	s := prepare(t, nil)
	version := 0
	change := func() { // a fifth of the pages, and one more or less
		version++
		for i := range pages / 5 {
			n := (i*7 + version*13) % pages
			s.Put(fmt.Sprintf("site/%02d/%03d.html", n%30, n), harness.Whole("", fmt.Sprintf("page %d, version %d", n, version)), harness.DayOf(n+version))
		}
		extra := filepath.Join("site", "extra.html")
		if version%2 == 0 {
			s.Put(extra, harness.Whole("", "extra"), harness.DayOf(version))
		} else {
			_ = os.Remove(filepath.Join(s.Dir, extra))
		}
	}
	for range 30 {
		change()
	}
	const steady = 20 // pages of the upstream, among them
	for i := range steady {
		s.Put(fmt.Sprintf("site/app/%02d.html", i), harness.Whole("", fmt.Sprint("steady ", i)), harness.DayOf(i))
	}
	var fetched atomic.Int64 // of them
	var gate sync.RWMutex    // closed, no refresh comes further than to the front page
	app := harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			gate.RLock()
			defer gate.RUnlock()
		} else {
			fetched.Add(1)
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, harness.HTML("home"))
	})
	caddyfile := "{\n sitemap {\n state {dir}/state\n }\n}\n" + harness.Local + " {\n root * {dir}/site\n sitemap {\n refresh 1s\n shard_urls 40\n files\n crawl {\n rate 1000/s\n }\n }\n @app path / /app/*\n reverse_proxy @app " + app + "\n file_server\n}"
	c := s.Child(caddyfile)
	s.Eventually(func() bool {
		locs, err := s.TryLocs(harness.Local + "/sitemap.xml")
		return err == nil && len(locs) >= pages+steady
	}, s.SitemapLog)
	s.Eventually(func() bool {
		documents, err := tryCommitted(s.Dir)
		return err == nil && strings.Count(fmt.Sprint(documents), "/app/") == steady
	}, s.SitemapLog)
	fetched.Store(0)
	for kill := range *kills {
		change()
		wait := rand.N(1500 * time.Millisecond)
		for begun := time.Now(); time.Since(begun) < wait; {
			change()
			if kill%2 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		c.Kill()
		want := s.committed()
		gate.Lock()
		c = s.Child(caddyfile)
		s.First(c)
		listed := 0
		for name, text := range want {
			r := s.Get(harness.Local + "/" + strings.TrimSuffix(name, ".gz"))
			if r.StatusCode != http.StatusOK || r.Text != text {
				t.Errorf("kill %d, after %s: %s is %d, %s\nwant %s", kill, wait, name, r.StatusCode, r.Text, text)
			}
			if strings.Contains(text, "<urlset") {
				listed += strings.Count(text, "<loc>")
			}
		}
		// All but itself and the stylesheet.
		if index := want["sitemap.xml.gz"]; strings.Count(index, "<loc>") != len(want)-2 || listed != pages+steady && listed != pages+steady+1 {
			t.Errorf("kill %d, after %s: %d pages are listed in %d documents, by %s", kill, wait, listed, len(want), index)
		}
		locs, err := s.TryLocs(harness.Local + "/sitemap.xml")
		gate.Unlock()
		if err != nil || len(locs) != listed {
			t.Errorf("kill %d, after %s: %d pages are listed, want %d: %v", kill, wait, len(locs), listed, err)
		}
		if t.Failed() {
			break
		}
	}
	c.Kill()
	if n := fetched.Load(); n > 0 {
		t.Errorf("%d pages that did not change were fetched again", n)
	}
	if lines := s.LogLines(`"level":"warn"`, "sitemap"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}
}

// committed are the documents that the manifest names, decompressed, by their names; nil: there is none. Each must be there,
// whole.
func (s *server) committed() map[string]string {
	s.T.Helper()
	documents, err := tryCommitted(s.Dir)
	harness.Must(s.T, err)
	return documents
}

// tryCommitted is committed while the server runs: a commit may delete what the manifest before it named.
func tryCommitted(dir string) (map[string]string, error) {
	found, _ := filepath.Glob(filepath.Join(dir, "state", "sites", "*", "store", "manifest.json"))
	if len(found) != 1 {
		return nil, nil
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Documents []struct {
			Name   string
			Object struct{ Name string }
		}
	}
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	if err := json.Unmarshal(line, &manifest); err != nil {
		return nil, fmt.Errorf("the manifest is torn: %w", err)
	}
	documents := make(map[string]string)
	for _, d := range manifest.Documents {
		packed, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(found[0])), d.Object.Name))
		if err != nil {
			return nil, err
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			return nil, err
		}
		documents[d.Name] = string(plain)
	}
	return documents, nil
}
