package html

import (
	"bytes"
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// A link of a Link header: its parameters (RFC 8288, section 3) are written like the attributes of a tag.
var linkPattern = regexp.MustCompile(`<([^>"]*)>((?:"(?:[^"\\]|\\.)*"?|[^,"])*)`)

func (r *reader) readHeader(h http.Header) {
	// No encoding is asked for, so what comes all the same is not decoded.
	encoding := h.Get("Content-Encoding")
	r.meta.Unreadable = encoding != "" && !strings.EqualFold(encoding, "identity")
	for _, value := range h.Values("X-Robots-Tag") {
		r.robots(value)
	}
	r.meta.NoIndexTag = r.meta.NoIndex
	r.refresh(h.Get("Refresh"))
	r.contentLang = onlyLanguage(strings.Join(h.Values("Content-Language"), ","))
	for _, value := range h.Values("Link") {
		for _, m := range linkPattern.FindAllStringSubmatch(value, -1) {
			tag := `<link href="` + m[1] + `" ` + strings.ReplaceAll(m[2], ";", " ") + ">"
			r.begin([]byte(tag))
			r.next()
			// With an anchor, it is the link of another page (RFC 8288, section 3.2).
			if r.attribute("anchor") == nil {
				r.link()
			}
		}
	}
}

// refresh keeps the first refresh that leads elsewhere.
func (r *reader) refresh(content string) {
	m := refreshPattern.FindStringSubmatch(content)
	if m == nil {
		return
	}
	to := r.base.absolute([]byte(m[1] + m[2] + m[3]))
	if r.meta.Refresh == "" && to != r.self.url() {
		r.meta.Refresh = to
	}
}

// link reads a <link>.
func (r *reader) link() {
	rel := r.attribute("rel")
	href := r.attribute("href")
	lang := strings.TrimSpace(string(r.attribute("hreflang")))
	isAlternate := hasWord(rel, "alternate") && !hasWord(rel, "stylesheet") // which is another look of the same page
	isVersion := isAlternate && languagePattern.MatchString(lang)
	// Languages, and the pages of a series, may be linked in no other way.
	isLink := isVersion || hasWord(rel, "next") || hasWord(rel, "prev")
	if isLink {
		r.addLink(href)
	}
	isCanonical := hasWord(rel, "canonical")
	if !isAlternate && !isCanonical { // as most are
		return
	}
	to := r.base.absolute(href)
	if to == "" {
		return
	}
	if isVersion && r.Alternates {
		r.meta.Add(&page.Extensions{Alternates: []page.Alternate{{Lang: lang, URL: to}}})
	}
	kind := bytes.ReplaceAll(r.attribute("type"), []byte(";"), []byte(" ")) // before its parameters
	if isAlternate && r.Markdown && hasWord(kind, "text/markdown") {
		r.meta.Markdown = cmp.Or(r.meta.Markdown, to)
	}
	// One that says for which readers it is names no canonical, and several that differ name none
	// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
	has := func(name string) bool { return r.attribute(name) != nil }
	isForSome := slices.ContainsFunc([]string{"hreflang", "lang", "media", "type"}, has)
	if !isCanonical || isForSome {
		return
	}
	if r.meta.Canonical != "" && r.meta.Canonical != to {
		to = r.self.url()
	}
	r.meta.Canonical = to
}

func hasWord(s []byte, word string) bool {
	for f := range bytes.FieldsSeq(s) {
		if strings.EqualFold(string(f), word) {
			return true
		}
	}
	return false
}

// metaTag reads a <meta>. Robots directives and a refresh count in the body, too.
func (r *reader) metaTag() {
	content := r.attribute("content")
	if hasWord(r.attribute("http-equiv"), "refresh") {
		r.refresh(string(content))
		return
	}
	for _, attribute := range []string{"name", "property", "http-equiv"} {
		name := strings.ToLower(strings.TrimSpace(string(r.attribute(attribute))))
		if name == "robots" || name == "googlebot" {
			r.robots(string(content))
		} else if !r.inBody {
			r.headTag(name, content)
		}
	}
}

// headTag reads a <meta> with a name, which counts in the head only.
func (r *reader) headTag(name string, content []byte) {
	rank := slices.Index(dateNames, name) + 1
	if rank > 0 {
		r.modified.declare(rank, string(content), r.Now)
		return
	}
	switch name {
	case "description":
		r.head.text.space = true
		r.head.text.write(content)
		r.description = cmp.Or(r.description, oneLine(content))
	case "og:description":
		r.shared.description = cmp.Or(r.shared.description, oneLine(content))
	case "og:title":
		r.shared.title = cmp.Or(r.shared.title, oneLine(content))
	case "article:published_time":
		r.published.declare(1, string(content), r.Now)
	case "content-language":
		r.contentLang = cmp.Or(onlyLanguage(string(content)), r.contentLang)
	case "og:image", "og:image:url", "og:image:secure_url":
		r.addImage(&r.head, content)
	}
}

// dateNames are the names of declared dates, the most reliable first; JSON-LD comes before them.
var dateNames = []string{
	"article:modified_time", "og:updated_time", "dcterms.modified", "dc.date.modified", "dc.modified", "last-modified",
}

// declaredDate is a date that a page declares, the most reliable of several.
type declaredDate struct {
	unix int64 // 0: none is declared
	day  bool  // only the day is known
	rank int   // of the way in which it is declared: 0 is the most reliable
}

// declare keeps the most reliable date, and the first of several. It is one at which a page can have been made: not one
// when it is not yet tomorrow anywhere.
func (d *declaredDate) declare(rank int, s string, now time.Time) (isKept bool) {
	if d.unix != 0 && d.rank <= rank {
		return false
	}
	unix, day, ok := page.ParseDate(s)
	isFuture := unix > now.Add(24*time.Hour).Unix()
	if !ok || isFuture {
		return false
	}
	*d = declaredDate{unix: unix, day: day, rank: rank}
	return true
}

// robotsPattern matches one of robots directives: one with a value that does not matter, the date of unavailable_after, in
// which a comma may follow a weekday, or a word, which with a colon behind it is the name of a robot.
var robotsPattern = regexp.MustCompile(`(?i)max-[a-z-]+\s*:[^,;]*|unavailable_after\s*:\s*((?:[a-z]+,\s*)?[^,;]*)|([^\s,;:]+)\s*(:?)`)

// robots reads the directives of a robots meta tag, or of an X-Robots-Tag header
// (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag). A robot's name and a colon may begin
// directives; those for all robots and for googlebot count.
func (r *reader) robots(directives string) {
	applies := true
	for _, m := range robotsPattern.FindAllStringSubmatch(directives, -1) {
		date := m[1]
		word := strings.ToLower(m[2])
		if m[3] != "" {
			applies = word == "googlebot" || word == "robots" || word == "*"
			continue
		}
		unix, _, ok := page.ParseDate(date)
		isOver := ok && unix < r.Now.Unix()
		if isOver {
			word = "noindex"
		}
		// Directives may follow a date that cannot be read.
		for word := range strings.FieldsSeq(strings.ToLower(date) + " " + word) {
			isNone := word == "none" // noindex and nofollow
			r.meta.NoIndex = r.meta.NoIndex || applies && (isNone || word == "noindex")
			r.nofollow = r.nofollow || applies && (isNone || word == "nofollow")
		}
	}
}

// refreshPattern matches a refresh, and the URL behind its delay in one of three groups
// (https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps).
var refreshPattern = regexp.MustCompile(`(?is)^\s*(?:[0-9][0-9.]*|\.[0-9.]*)` + // the delay
	`(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?` +
	`(?:"([^"]*)|'([^']*)|([^"'].*)|$)`)
