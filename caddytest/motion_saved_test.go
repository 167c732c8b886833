package caddytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// noticeEngine is a search engine that takes notices by IndexNow.
type noticeEngine struct {
	server *httptest.Server

	mu       sync.Mutex
	received func(path string)
	paths    []string
}

func newNoticeEngine(t *testing.T, origin string) *noticeEngine {
	e := new(noticeEngine)
	e.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var notice struct{ URLList []string }
		err := json.NewDecoder(r.Body).Decode(&notice)
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, url := range notice.URLList {
			path := strings.TrimPrefix(url, origin)
			e.paths = append(e.paths, path)
			e.received(path)
		}
		if err != nil {
			t.Errorf("reading a notice: %v", err)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(e.server.Close)
	t.Cleanup(e.server.CloseClientConnections)
	return e
}

func (e *noticeEngine) has(path string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.paths, path)
}

// TestSaved: a file that is saved is listed, and one that is removed is not. An edit has the time of its file as its date, once it
// was quiet for some time, and is announced only then.
func TestSaved(t *testing.T) {
	const pages = 20
	e := newNoticeEngine(t, origin)
	s := prepareRestartable(t, `http://:{port} {
		root * {dir}/site
		sitemap {
			base_url `+origin+`
			refresh 3s
			indexnow {
				endpoint `+e.server.URL+`
			}
		}
		file_server
	}`)
	r := rand.New(rand.NewPCG(1, 2))
	want := make(map[string]string)
	var texts []text
	for i := range pages {
		name := fmt.Sprintf("page-%d.html", i)
		texts = append(texts, newText(r, name))
		s.Put("site/"+name, firstTemplate.html(texts[i]), longAgo(i))
		want["/"+name] = harness.Stamp(longAgo(i))
	}
	served := func() map[string]string {
		dates, err := s.served(host, origin)
		if err != nil {
			return nil
		}
		return dates
	}
	const edited, added, removed = "/page-3.html", "/new.html", "/page-5.html"
	var wrong failures
	var date string // of the edit
	e.received = func(path string) {
		if dates := served(); path == edited && dates[path] != date {
			wrong.add("%s is announced while its date is %q, want %q", path, dates[path], date)
		}
	}
	s.start()
	s.Eventually(func() bool { return maps.Equal(served(), want) }, func() string {
		return fmt.Sprintf("at first, got %v, want %v\n%s", served(), want, s.SitemapLog())
	})

	begun := time.Now()
	s.WriteRaw("site"+added, firstTemplate.html(newText(r, "new")))
	s.Eventually(func() bool {
		_, isListed := served()[added]
		return isListed
	}, func() string { return "a page that was saved is not listed\n" + s.SitemapLog() })
	t.Logf("a saved page is listed after %s", time.Since(begun))

	file := filepath.Join(s.Dir, "site", edited)
	s.WriteRaw("site"+edited, firstTemplate.html(texts[3].corrected(r)))
	info, err := os.Stat(file)
	harness.Must(t, err)
	e.mu.Lock()
	date = harness.Stamp(info.ModTime())
	e.mu.Unlock()
	sampled(t, func() {
		dates := served()
		if got := dates[edited]; got != "" && got != date && got != want[edited] {
			wrong.add("an edit has the date %s, want %s", got, date)
		}
	})

	begun = time.Now()
	harness.Must(t, os.Remove(filepath.Join(s.Dir, "site", removed)))
	s.Eventually(func() bool {
		dates := served()
		_, isListed := dates[removed]
		return len(dates) > 0 && !isListed
	}, func() string { return "a page that was removed is listed\n" + s.SitemapLog() })
	t.Logf("a removed page is not listed any more after %s", time.Since(begun))

	s.within(datePatience, func() bool { return served()[edited] == date }, func() string {
		return fmt.Sprintf("an edit has the date %q, want %s\n%s", served()[edited], date, s.SitemapLog())
	})
	if took := time.Since(info.ModTime()); took < quiet/4-2*time.Second {
		t.Errorf("an edit is dated after %s without a change", took)
	}
	t.Logf("an edit is dated after %s", time.Since(info.ModTime()))
	s.within(datePatience, func() bool { return e.has(edited) }, func() string {
		return "an edit is not announced\n" + s.SitemapLog()
	})
	t.Logf("an edit is announced after %s", time.Since(info.ModTime()))
	wrong.report(t)
}
