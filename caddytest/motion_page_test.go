package caddytest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// template is what all pages of a site have in common. It is in elements without a class or a name, by which it could be told
// from what the pages say themselves.
type template struct {
	year   int
	stamp  string
	banner string
}

var firstTemplate = template{year: 2024, stamp: "2025-06-01 10:00", banner: "Read our handbook."}

// next is the template of the next deployment.
func (t template) next() template {
	return template{
		year:   t.year + 1,
		stamp:  time.Now().Format("2006-01-02 15:04:05"),
		banner: fmt.Sprintf("The summer fair of %d is open to everybody, and so is the library.", t.year+1),
	}
}

// text is what a page itself says.
type text struct {
	title      string
	paragraphs []string
	declares   string // date, in its head; "": none
}

// html is the whole page.
func (t template) html(x text) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html><head><title>%s</title>", x.title)
	if x.declares != "" {
		fmt.Fprintf(&b, `<meta property="article:modified_time" content="%s">`, x.declares)
	}
	fmt.Fprintf(&b, "</head><body><div><p>%s</p></div>\n<div>", t.banner)
	for _, entry := range []string{"Start", "Guide", "Reference", "Contact"} {
		fmt.Fprintf(&b, `<p><a href="/">%s</a></p>`, entry)
	}
	fmt.Fprintf(&b, "</div>\n<div><h1>%s</h1>\n", x.title)
	for _, paragraph := range x.paragraphs {
		fmt.Fprintf(&b, "<p>%s</p>\n", paragraph)
	}
	fmt.Fprintf(&b, "</div>\n<div>Copyright %d by nobody<p>Last updated %s.</p></div></body></html>", t.year, t.stamp)
	return b.String()
}

var words = strings.Fields(`garden river station letter morning engine valley harbour winter summer carpet bridge teacher market
	answer question kitchen mountain village captain doctor history science music colour number animal forest island travel
	window paper pencil machine weather season silver copper bottle blanket corner street building journey village sailor`)

// prose is some sentences.
func prose(r *rand.Rand) string {
	var b strings.Builder
	for range 3 + r.IntN(3) {
		word := func() string { return words[r.IntN(len(words))] }
		fmt.Fprintf(&b, "The %s of the %s has a %s and %d %ss, as the %s of %s said in the %s. ",
			word(), word(), word(), r.IntN(1_000_000), word(), word(), word(), word())
	}
	return b.String()
}

// newText is a text that no other page has.
func newText(r *rand.Rand, title string) text {
	x := text{title: title}
	for range 4 + r.IntN(4) {
		x.paragraphs = append(x.paragraphs, prose(r))
	}
	return x
}

// corrected is the text with a paragraph more.
func (x text) corrected(r *rand.Rand) text {
	x.paragraphs = append(append([]string(nil), x.paragraphs...), prose(r))
	return x
}

// longAgo is a time at which the ith page was written: no two of them look like one upload.
func longAgo(i int) time.Time {
	return harness.DayOf(3 * i).Add(time.Duration(37*i%1440) * time.Minute)
}

// days are the days, as sitemaps have them, on which a test runs that has begun at a time.
func days(begun time.Time) []string {
	return []string{day(begun), day(begun.Add(24 * time.Hour))}
}
