package htmlmeta

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// A link of a Link header: its parameters (RFC 8288, section 3) are written like the attributes of a tag.
var linkPattern = regexp.MustCompile(`<([^>"]*)>((?:"(?:[^"\\]|\\.)*"?|[^,"])*)`)

func (p *Parser) readHeader(h http.Header) {
	encoding := h.Get("Content-Encoding")
	p.meta.Unreadable = encoding != "" && !strings.EqualFold(encoding, "identity")
	for _, value := range h.Values("X-Robots-Tag") {
		p.robots(value, true)
	}
	for _, value := range h.Values("Refresh") {
		p.refresh(value)
	}
	if p.options.Articles {
		p.langs[inHeader] = onlyLanguage(strings.Join(h.Values("Content-Language"), ","))
	}
	for _, value := range h.Values("Link") {
		for _, m := range linkPattern.FindAllStringSubmatch(value, -1) {
			tag := `<link href="` + m[1] + `" ` + strings.ReplaceAll(m[2], ";", " ") + ">"
			p.scanTag([]byte(tag), len("<"), html.StartTagToken)
			if p.attribute("anchor") == nil { // else it is another page's
				p.link()
			}
		}
	}
}

func (p *Parser) robots(directives string, header bool) {
	noindex, nofollow := parseRobots(directives, header, p.now)
	p.meta.NoIndex = p.meta.NoIndex || noindex
	p.meta.NoIndexTag = p.meta.NoIndexTag || noindex && header
	p.nofollow = p.nofollow || nofollow
}

// refresh keeps the first refresh that leads elsewhere.
func (p *Parser) refresh(content string) {
	to := p.base.absolute([]byte(parseRefresh(content)))
	if p.meta.Refresh == "" && to != p.self.url() {
		p.meta.Refresh = to
	}
}

// link reads a <link>. One that says for which readers it is does not name a canonical
// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
func (p *Parser) link() {
	rel, lang := p.attribute("rel"), bytes.Trim(p.attribute("hreflang"), white)
	has := func(name string) bool { return p.attribute(name) != nil }
	isCanonical := hasWord(rel, "canonical") && !slices.ContainsFunc([]string{"hreflang", "lang", "media", "type"}, has)
	isAlternate := p.options.Alternates && len(p.meta.Alternates) < MaxAlternates && languagePattern.Match(lang) &&
		hasWord(rel, "alternate") && !hasWord(rel, "stylesheet")
	isMarkdown := p.options.Markdown && p.meta.Markdown == "" && hasWord(rel, "alternate") && p.isOfType("text/markdown")
	if !isCanonical && !isAlternate && !isMarkdown {
		return
	}
	to := p.base.absolute(p.attribute("href"))
	if isCanonical && to != "" {
		p.severalCanonicals = p.severalCanonicals || p.meta.Canonical != "" && p.meta.Canonical != to
		p.meta.Canonical = to
	}
	isSame := func(a page.Alternate) bool { return strings.EqualFold(a.Lang, string(lang)) }
	if isAlternate && to != "" && !slices.ContainsFunc(p.meta.Alternates, isSame) {
		p.meta.Alternates = append(p.meta.Alternates, page.Alternate{Lang: string(lang), URL: to})
	}
	if isMarkdown {
		p.meta.Markdown = to
	}
}

// isOfType reports whether the type attribute of a tag is a media type, whatever its parameters are. In the tag that
// readHeader makes, there is a blank for each semicolon.
func (p *Parser) isOfType(name string) bool {
	t, _, _ := strings.Cut(mediaType(string(p.attribute("type"))), " ")
	return t == name
}

func hasWord(s []byte, word string) bool {
	for f := range bytes.FieldsSeq(s) {
		if len(f) == len(word) && bytes.EqualFold(f, []byte(word)) {
			return true
		}
	}
	return false
}

// metaTag reads a <meta>. Robots directives and a refresh count in the body, too.
func (p *Parser) metaTag() {
	content := p.attribute("content")
	if hasWord(p.attribute("http-equiv"), "refresh") {
		p.refresh(string(content))
		return
	}
	for _, attribute := range []string{"name", "property", "http-equiv"} {
		name := strings.ToLower(strings.Trim(string(p.attribute(attribute)), white))
		switch rank := slices.Index(dateNames, name) + 1; {
		case name == "robots" || name == "googlebot":
			p.robots(string(content), false)
		case p.inBody:
		case rank > 0:
			p.modified.declare(rank, string(content), p.now)
		case name == "description":
			p.texts[inHead].gap()
			p.texts[inHead].write(content)
			if p.options.Descriptions && p.meta.Description == "" {
				p.meta.Description = oneLine(content)
			}
		case name == "og:description":
			if p.options.Descriptions && p.shared.description == "" {
				p.shared.description = oneLine(content)
			}
		case name == "og:title":
			if p.options.Articles && p.shared.title == "" {
				p.shared.title = oneLine(content)
			}
		case name == "article:published_time":
			if p.options.Articles {
				p.published.declare(ofMeta, string(content), p.now)
			}
		case name == "content-language":
			if p.options.Articles && p.langs[inMeta] == "" {
				p.langs[inMeta] = onlyLanguage(string(content))
			}
		case name == "og:image" || name == "og:image:url" || name == "og:image:secure_url":
			p.addImage(inHead, content)
		}
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
	if !ok || !now.IsZero() && unix > now.Add(24*time.Hour).Unix() {
		return false
	}
	*d = declaredDate{unix: unix, day: day, rank: rank}
	return true
}

const white, separators = " \t\r\n\f", white + ",;"

// parseRobots reads the directives of a robots meta tag, or of an X-Robots-Tag header
// (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag). In a header, a robot's name and
// a colon may begin its directives; those for all robots and for googlebot count. A directive with a value is not
// such a name.
func parseRobots(s string, header bool, now time.Time) (noindex, nofollow bool) {
	s = s[:min(len(s), 4<<10)] + "," // nothing real is longer
	wordEnd := func() int { return strings.IndexAny(s, separators+":") }
	applies := true
	for s = strings.TrimLeft(s, separators); s != ""; s = strings.TrimLeft(s, separators) {
		word := strings.ToLower(s[:wordEnd()])
		s = strings.TrimLeft(s[wordEnd():], white)
		value, hasValue := strings.CutPrefix(s, ":")
		if hasValue {
			s = strings.TrimLeft(value, white)
		}
		switch {
		case !hasValue:
			noindex = noindex || applies && (word == "noindex" || word == "none")
			nofollow = nofollow || applies && (word == "nofollow" || word == "none")
		case word == "unavailable_after":
			date := datePattern.FindString(s)
			unix, _, ok := page.ParseDate(date)
			if !ok {
				date = s[:wordEnd()]
			}
			s = s[len(date):]
			noindex = noindex || applies && ok && !now.IsZero() && unix < now.Unix()
		case header && word != "" && (isLetter(word[0]) || word == "*") && !strings.HasPrefix(word, "max-"):
			applies = word == "googlebot" || word == "robots" || word == "*"
		default:
			s = s[wordEnd():]
		}
	}
	return noindex, nofollow
}

// datePattern matches what may be a date: a comma may follow a weekday in it.
var datePattern = regexp.MustCompile(`^([A-Za-z]+,\s*)?[^,;]*`)

// https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps
var refreshPattern = regexp.MustCompile(`(?is)^\s*(?:[0-9][0-9.]*|\.[0-9.]*)(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|([^"'].*)|$)`)

// parseRefresh returns the URL in a refresh, after its delay; "": it is not valid, or has none.
func parseRefresh(s string) string {
	if m := refreshPattern.FindStringSubmatch(s); m != nil {
		return m[1] + m[2] + m[3]
	}
	return ""
}
