// Command upstream is an application to stand behind a proxy: a front page that leads to
// sections, and those to pages, all made up as they are asked for.
//
//	upstream ADDRESS PAGES
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// inSection is how many pages a section leads to.
const inSection = 40

func main() {
	pages := 0
	if len(os.Args) == 3 {
		pages, _ = strconv.Atoi(os.Args[2])
	}
	if pages < 1 {
		fmt.Fprintln(os.Stderr, "usage: upstream ADDRESS PAGES")
		os.Exit(2)
	}
	if err := http.ListenAndServe(os.Args[1], handler(pages)); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// handler has so many pages in all: the front page, sections, and theirs.
func handler(pages int) http.Handler {
	sections := (pages - 1 + inSection) / (inSection + 1)
	answers := make(map[string][]byte)
	for i := range pages - 1 {
		if i < sections {
			answers[sectionPath(i)] = nil
			continue
		}
		answers[articlePath(i)] = article(fmt.Sprintf("Article %d", i), nil)
	}
	var front []string
	for i := range sections {
		front = append(front, sectionPath(i))
		var links []string
		for j := sections + i; j < pages-1; j += sections {
			links = append(links, articlePath(j))
		}
		answers[sectionPath(i)] = article(fmt.Sprintf("Section %d", i), links)
	}
	answers["/"] = article("Front page", front)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
}

func sectionPath(i int) string { return fmt.Sprintf("/section-%d/", i) }

func articlePath(i int) string { return fmt.Sprintf("/articles/an-article-about-%d", i) }

// article is a page of about 4 KB, whose text is its own.
func article(title string, links []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html lang=en><head><title>%s</title></head><body><h1>%s</h1>", title, title)
	for i := range 40 {
		fmt.Fprintf(&b, "<p>%s, paragraph %d: the quick brown fox jumps over the lazy dog once again.</p>", title, i)
	}
	for _, link := range links {
		fmt.Fprintf(&b, "<a href=%q>%s</a>", link, link)
	}
	b.WriteString("</body></html>")
	return []byte(b.String())
}
