// Package sitemaps reads sitemaps for tests and benchmarks, by the standard library alone.
package sitemaps

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/lint"
)

// Entry is one of a urlset or a sitemapindex, as it is written.
type Entry struct {
	Loc        string `xml:"loc"`
	LastMod    string `xml:"lastmod"`
	ChangeFreq string `xml:"changefreq"`
	Priority   string `xml:"priority"`
}

// Document is a urlset with pages, or a sitemapindex with children.
type Document struct {
	XMLName  xml.Name
	Pages    []Entry `xml:"url"`
	Children []Entry `xml:"sitemap"`
}

// Parse reads a document. The error says that it is not well-formed, or neither of the two.
func Parse(text []byte) (d Document, err error) {
	if err := xml.Unmarshal(text, &d); err != nil {
		return d, err
	}
	if s := d.XMLName.Space; s != document.Schema09.Namespace() && s != document.Schema084.Namespace() {
		return d, fmt.Errorf("the root element is of the namespace '%s'", s)
	}
	switch name := d.XMLName.Local; {
	case name == "urlset" && d.Children == nil, name == "sitemapindex" && d.Pages == nil:
		return d, nil
	default:
		return d, fmt.Errorf("the root element is '%s', with %d pages and %d children", name, len(d.Pages), len(d.Children))
	}
}

// Read is Parse of a document in which [lint] finds no error.
func Read(text string) (Document, error) {
	var found error
	lint.Check(context.Background(), lint.Options{Stdin: strings.NewReader(text), Report: func(f lint.Finding) {
		if f.Severity == lint.Error && found == nil {
			found = fmt.Errorf("line %d: %s: %s %s", f.Line, f.Code, f.Message, f.URL)
		}
	}}, "-")
	d, err := Parse([]byte(text))
	if err == nil {
		err = found
	}
	return d, err
}

// Locs are the URLs of entries.
func Locs(entries []Entry) []string {
	var locs []string
	for _, e := range entries {
		locs = append(locs, e.Loc)
	}
	return locs
}
