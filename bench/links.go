package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// linkRows measure a site behind a proxy whose pages only links name.
func (b *bench) linkRows(ctx context.Context) []*row {
	const directive = "sitemap {\nlinks\ncrawl {\nrate 1000/s\nconcurrency 8\n}\n}"
	what := number(b.linked) + " linked pages of a proxied site, `crawl { rate 1000/s concurrency 8 }`: start to all listed"
	r := &row{what: what, show: duration, reach: atMost(6)}
	upstream := httptest.NewServer(application(b.linked))
	defer upstream.Close()
	b.listings(ctx, r, "links", b.linked, "", []string{directive, "reverse_proxy " + upstream.Listener.Addr().String()})
	return []*row{r}
}

// application has so many pages: the front page, which leads to sections, and those to
// articles.
func application(pages int) http.Handler {
	const inSection = 40
	sections := (pages - 1 + inSection) / (inSection + 1)
	var front []string
	links := make([][]string, sections)
	bodies := make(map[string]string)
	for i := range pages - 1 {
		if i < sections {
			front = append(front, fmt.Sprintf("/section-%d/", i))
			continue
		}
		path := fmt.Sprintf("/articles/an-article-about-%d", i)
		links[i%sections] = append(links[i%sections], path)
		bodies[path] = article(path, nil)
	}
	for i, path := range front {
		bodies[path] = article(path, links[i])
	}
	bodies["/"] = article("Front page", front)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, body)
	})
}

// article is a page of about 4 KB, whose text is its own.
func article(title string, links []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html lang=en><head><title>%s</title></head><body><h1>%s</h1>", title, title)
	for i := range 40 {
		fmt.Fprintf(&b, "<p>%s, paragraph %d: the quick brown fox jumps over the lazy dog once again.</p>", title, i)
	}
	for _, link := range links {
		fmt.Fprintf(&b, "<a href=%q>%s</a>", link, link)
	}
	b.WriteString("</body></html>")
	return b.String()
}
