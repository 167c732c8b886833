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
	// No encoding is asked for, so what comes all the same is not decoded.
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
			// With an anchor, it is the link of another page (RFC 8288, section 3.2).
			if p.attribute("anchor") == nil {
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

// link reads a <link>.
func (p *Parser) link() {
	rel := p.attribute("rel")
	lang := bytes.Trim(p.attribute("hreflang"), white)
	isCanonical := hasWord(rel, "canonical") && !p.isForSomeReaders()
	isVersion := false
	isMarkdown := false
	if hasWord(rel, "alternate") {
		isStylesheet := hasWord(rel, "stylesheet") // rel="alternate stylesheet" is another look of the same page
		isVersion = !isStylesheet && languagePattern.Match(lang)
		isMarkdown = p.options.Markdown && p.meta.Markdown == "" && p.isOfType("text/markdown")
	}
	// Languages, and the pages of a series, may be linked in no other way.
	isLink := isVersion || hasWord(rel, "next") || hasWord(rel, "prev")
	if isLink && !hasWord(rel, "nofollow") {
		p.addLink(p.attribute("href"))
	}
	isAlternate := isVersion && p.options.Alternates
	if !isCanonical && !isAlternate && !isMarkdown {
		return // as most are: styles, icons, fonts
	}
	to := p.base.absolute(p.attribute("href"))
	if to == "" {
		return
	}
	if isCanonical {
		p.addCanonical(to)
	}
	if isAlternate {
		p.addAlternate(page.Alternate{Lang: string(lang), URL: to})
	}
	if isMarkdown {
		p.meta.Markdown = to
	}
}

// addCanonical takes note of a canonical. Where a page names several that differ, finish keeps none.
func (p *Parser) addCanonical(to string) {
	if p.meta.Canonical != "" && p.meta.Canonical != to {
		p.severalCanonicals = true
	}
	p.meta.Canonical = to
}

// isForSomeReaders reports whether a <link> says for which readers it is. Such a one does not name a canonical
// (https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls).
func (p *Parser) isForSomeReaders() bool {
	has := func(name string) bool { return p.attribute(name) != nil }
	return slices.ContainsFunc([]string{"hreflang", "lang", "media", "type"}, has)
}

// addAlternate keeps the first version in each language.
func (p *Parser) addAlternate(a page.Alternate) {
	isSame := func(other page.Alternate) bool { return strings.EqualFold(other.Lang, a.Lang) }
	if len(p.meta.Alternates) < MaxAlternates && !slices.ContainsFunc(p.meta.Alternates, isSame) {
		p.meta.Alternates = append(p.meta.Alternates, a)
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
		if name == "robots" || name == "googlebot" {
			p.robots(string(content), false)
		} else if !p.inBody {
			p.headTag(name, content)
		}
	}
}

// headTag reads a <meta> with a name, which counts in the head only.
func (p *Parser) headTag(name string, content []byte) {
	rank := slices.Index(dateNames, name) + 1
	if rank > 0 {
		p.modified.declare(rank, string(content), p.now)
		return
	}
	switch name {
	case "description":
		p.texts[inHead].gap()
		p.texts[inHead].write(content)
		if p.options.Descriptions {
			keepFirst(&p.meta.Description, content)
		}
	case "og:description":
		if p.options.Descriptions {
			keepFirst(&p.shared.description, content)
		}
	case "og:title":
		if p.options.Articles {
			keepFirst(&p.shared.title, content)
		}
	case "article:published_time":
		if p.options.Articles {
			p.published.declare(ofMeta, string(content), p.now)
		}
	case "content-language":
		if p.options.Articles && p.langs[inMeta] == "" {
			p.langs[inMeta] = onlyLanguage(string(content))
		}
	case "og:image", "og:image:url", "og:image:secure_url":
		p.addImage(inHead, content)
	}
}

// keepFirst sets what a page declares, on one line, unless an earlier tag did.
func keepFirst(s *string, declared []byte) {
	if *s == "" {
		*s = oneLine(declared)
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
	isFuture := !now.IsZero() && unix > now.Add(24*time.Hour).Unix()
	if !ok || isFuture {
		return false
	}
	*d = declaredDate{unix: unix, day: day, rank: rank}
	return true
}

const (
	white      = " \t\r\n\f"
	separators = white + ",;"
)

// maxRobots is the most bytes of robots directives that are read: nothing real is longer.
const maxRobots = 4 << 10

// parseRobots reads the directives of a robots meta tag, or of an X-Robots-Tag header
// (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag). In a header, a robot's name and
// a colon may begin its directives; those for all robots and for googlebot count.
func parseRobots(s string, header bool, now time.Time) (noindex, nofollow bool) {
	rest := s[:min(len(s), maxRobots)] + "," // so that each word has an end
	applies := true
	for {
		rest = strings.TrimLeft(rest, separators)
		if rest == "" {
			return noindex, nofollow
		}
		var word string
		var hasValue bool
		word, rest, hasValue = cutDirective(rest)
		if !hasValue {
			isNone := word == "none" // noindex and nofollow
			noindex = noindex || applies && (isNone || word == "noindex")
			nofollow = nofollow || applies && (isNone || word == "nofollow")
			continue
		}
		switch {
		case word == "unavailable_after":
			var isOver bool
			isOver, rest = cutUnavailable(rest, now)
			noindex = noindex || applies && isOver
		case header && isRobotName(word):
			applies = isRobotRead(word)
		default:
			rest = rest[wordEnd(rest):] // a value that does not matter
		}
	}
}

// isRobotRead reports whether the directives for a robot count.
func isRobotRead(name string) bool { return name == "googlebot" || name == "robots" || name == "*" }

// wordEnd returns where the first word of robots directives ends.
func wordEnd(s string) int { return strings.IndexAny(s, separators+":") }

// cutDirective returns the first word of robots directives, in lower case, and what follows it. If a colon does, that is
// a value, or the directives of the robot that the word names.
func cutDirective(s string) (word, rest string, hasValue bool) {
	end := wordEnd(s)
	word = strings.ToLower(s[:end])
	rest = strings.TrimLeft(s[end:], white)
	value, hasValue := strings.CutPrefix(rest, ":")
	if hasValue {
		rest = strings.TrimLeft(value, white)
	}
	return word, rest, hasValue
}

// cutUnavailable reads the date from which on a page is unavailable, and returns what follows it.
func cutUnavailable(s string, now time.Time) (isOver bool, rest string) {
	date := datePattern.FindString(s)
	unix, _, ok := page.ParseDate(date)
	if !ok {
		// Directives may follow a date that cannot be read: only a word of it is passed over.
		return false, s[wordEnd(s):]
	}
	isOver = !now.IsZero() && unix < now.Unix()
	return isOver, s[len(date):]
}

// isRobotName reports whether a word with a colon behind it can be a robot's name, and is not a directive with a value,
// such as max-snippet.
func isRobotName(word string) bool {
	if word == "" || strings.HasPrefix(word, "max-") {
		return false
	}
	return isLetter(word[0]) || word == "*"
}

// datePattern matches what may be a date: a comma may follow a weekday in it.
var datePattern = regexp.MustCompile(`^([A-Za-z]+,\s*)?[^,;]*`)

// https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps
var refreshPattern = regexp.MustCompile(`(?is)^\s*(?:[0-9][0-9.]*|\.[0-9.]*)` + // the delay
	`(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?` +
	`(?:"([^"]*)|'([^']*)|([^"'].*)|$)`)

// parseRefresh returns the URL in a refresh, after its delay; "": it is not valid, or has none.
func parseRefresh(s string) string {
	if m := refreshPattern.FindStringSubmatch(s); m != nil {
		return m[1] + m[2] + m[3]
	}
	return ""
}
