package caddytest

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// cache keeps responses that have a max-age, errors too, unless the request forbids it, and has requests that ask for it go to
// the next handler.
type cache struct {
	deaf func(path string) bool // reports whether it keeps a response whatever a request asks for

	mu   sync.Mutex
	kept map[string]*httptest.ResponseRecorder
}

func (c *cache) handle(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	key := r.URL.Path + " " + r.Header.Get("Accept-Encoding")
	wants := r.Header.Get("Cache-Control")
	asksAnew := strings.Contains(wants, "no-cache") && !c.deaf(r.URL.Path)
	c.mu.Lock()
	res := c.kept[key]
	c.mu.Unlock()
	if res == nil || asksAnew {
		res = httptest.NewRecorder()
		if err := next.ServeHTTP(res, r); err != nil {
			return err
		}
	}
	mayKeep := strings.Contains(res.Header().Get("Cache-Control"), "max-age") && !strings.Contains(wants, "no-store")
	if mayKeep {
		c.mu.Lock()
		c.kept[key] = res
		c.mu.Unlock()
	}
	maps.Copy(w.Header(), res.Header())
	w.WriteHeader(res.Code)
	_, err := w.Write(res.Body.Bytes())
	return err
}

// TestCacheInFront: a cache in front of the sitemap and of an application changes nothing of what is listed.
func TestCacheInFront(t *testing.T) {
	for name, deaf := range map[string]func(path string) bool{
		"that asks anew if it is told to": func(string) bool { return false },
		"that keeps pages in any case":    func(path string) bool { return !strings.Contains(path, "sitemap") },
	} {
		t.Run(name, func(t *testing.T) {
			const products = 3
			c := &cache{deaf: deaf, kept: make(map[string]*httptest.ResponseRecorder)}
			handleBy(t, "cache", c.handle)
			s := prepare(t, map[string]string{"site/assets/help.html": harness.HTML("a file that no page links to")})
			s.LoadApp(harness.Local+` {
				route {
					test_middleware cache
					sitemap {
						refresh 1s
						crawl {
							rate 1000/s
						}
					}
					handle /assets/* {
						root {dir}/site
						file_server
					}
					reverse_proxy {app}
				}
			}`, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				html, isFound := catalog(r.URL.Path, products)
				respondHTML(w, html, isFound)
			})
			// Visitors fill the cache, also with the sitemap as it is now.
			for _, url := range append(catalogURLs(products), localSitemap) {
				s.Get(url)
			}
			s.Refreshes(1)
			for range 3 {
				s.RefreshedAgain(harness.Local)
				got := s.Locs(localSitemap, "Cache-Control: no-cache")
				if len(got) != products+1 {
					t.Errorf("got %q, want %q\n%s", got, catalogURLs(products), s.SitemapLog())
				}
			}
		})
	}
}

// window lets so many requests pass in each while of wide, as rate limiters do.
type window struct {
	most int
	wide time.Duration

	mu    sync.Mutex
	began time.Time
	n     int
}

// admits returns for how long a request has to wait; 0: it may pass.
func (l *window) admits() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.began) >= l.wide {
		l.began = time.Now()
		l.n = 0
	}
	l.n++
	if l.n <= l.most {
		return 0
	}
	return l.wide - time.Since(l.began)
}

func tooMany(w http.ResponseWriter, pause time.Duration) error {
	w.Header().Set("Retry-After", strconv.Itoa(int((pause+time.Second-1)/time.Second)))
	return caddyhttp.Error(http.StatusTooManyRequests, nil)
}

// TestRateLimiterInCaddy: where Caddy itself limits requests, all pages get listed, within what the limit allows.
func TestRateLimiterInCaddy(t *testing.T) {
	const most = 40
	limiter := &window{most: most, wide: time.Second}
	var mu sync.Mutex
	refused := 0
	handleBy(t, "limiter", func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
		if !strings.HasPrefix(r.UserAgent(), "caddy-sitemap ") {
			return next.ServeHTTP(w, r)
		}
		pause := limiter.admits()
		if pause > 0 {
			mu.Lock()
			defer mu.Unlock()
			refused++
			return tooMany(w, pause)
		}
		return next.ServeHTTP(w, r)
	})
	files := make(map[string]string)
	want := []string{harness.Local + "/"}
	files["site/index.html"] = harness.HTML("home")
	for i := range 100 {
		name := fmt.Sprintf("/%03d.html", i)
		files["site"+name] = harness.HTML(name)
		want = append(want, harness.Local+name)
	}
	s := start(t, harness.Local+` {
		root {dir}/site
		sitemap {
			refresh 1s
			crawl {
				rate 1000/s
			}
		}
		test_middleware limiter
		file_server
	}`, files)
	s.WantLocs(localSitemap, want...)
	mu.Lock()
	defer mu.Unlock()
	if refused > most {
		t.Errorf("%d requests were refused, want few", refused)
	}
}

// TestPageThatIsRateLimited: a page that always returns 429, whoever sends it, is called that, and the others are listed.
func TestPageThatIsRateLimited(t *testing.T) {
	for name, routes := range map[string]string{
		"by Caddy":          "handle /product/1 {\nheader Retry-After 1\nrespond 429\n}\nreverse_proxy {app}",
		"by an application": "reverse_proxy {app}",
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			s.LoadApp(harness.Local+" {\nsitemap {\nrefresh 1s\ncrawl {\nrate 1000/s\n}\n}\n"+routes+"\n}", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/product/1" {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				html, isFound := catalog(r.URL.Path, 4)
				respondHTML(w, html, isFound)
			})
			urls := catalogURLs(4)
			s.WantLocs(localSitemap, append(urls[:2], urls[3:]...)...)
			s.WantLeftOut(map[string]int{"rate limited": 1})
		})
	}
}
