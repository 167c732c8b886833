package document

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const (
	maxLinks    = 500     // pages of the document
	maxLLMs     = 256_000 // bytes of it
	maxHeadings = 50
	maxTurns    = 10_000 // folders whose pages are counted, times their depths

	restHeading = "Pages" // of pages that are in no folder
	optional    = "Optional"
)

// llms makes the document for language models: which the site's nearest pages are, in Markdown (https://llmstxt.org).
type llms struct {
	*builder
	nearest first[nearPage]
	turns   map[uint64]int // how many pages there were of each group and depth, by a hash
}

type nearPage struct {
	depth       uint8  // links from the front page
	place       int    // among the pages of its group and depth: else those of one folder could be all that there is room for
	group       string // name of a section, or else of a first folder; "": of none
	path        string
	markdown    string // URL of its version in Markdown; "": it has none
	title       string // or ""
	description string // or ""
}

func newLLMs(b *builder) *llms {
	compare := func(a, b nearPage) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.place, b.place), strings.Compare(a.path, b.path))
	}
	return &llms{
		builder: b,
		nearest: first[nearPage]{most: maxLinks, compare: compare},
		turns:   make(map[uint64]int),
	}
}

func (l *llms) add(p page.Page, section string) {
	e := extensionsOf(p)
	group := cmp.Or(section, l.firstFolder(p.Path))
	turn := xxhash.Sum64String(group) + uint64(e.Depth)
	next := nearPage{depth: e.Depth, place: l.turns[turn], path: p.Path}
	if next.place > 0 || len(l.turns) < maxTurns {
		l.turns[turn]++
	} else {
		next.place = maxLinks // no more are counted
	}
	// Of a large site, most pages end here: titles and descriptions are copied and cleaned for few.
	if !l.nearest.takes(next) {
		return
	}
	// All may be parts of larger strings.
	next.path = strings.Clone(p.Path)
	next.group = strings.Clone(group)
	next.markdown = strings.Clone(e.Markdown)
	next.title = strings.Clone(titleOf(p))
	next.description = strings.Clone(descriptionOf(p))
	l.nearest.add(next)
}

func (l *llms) finish() {
	names := l.siteNames()
	head := "# " + asHeading(cmp.Or(l.front.title, l.host())) + "\n\n"
	if l.front.description != "" {
		head += "> " + asBlock(l.front.description) + "\n\n"
	}
	// The mark is no line of a list: parsers of the format take each of these for a link.
	head += Mark + "\n\nAll pages are in the [sitemap](" + asDestination(l.Sitemap+extension) + ").\n"
	left := maxLLMs - len(head)
	// By text: parsers of the format take only the last one of two headings that are alike.
	lists := map[string]string{restHeading: ""}
	linked := make(map[string]bool) // by URL: several pages may name one version in Markdown, which may be listed, too
	for _, p := range l.nearest.sorted() {
		heading := p.heading()
		if lists[heading] == "" && len(lists) == maxHeadings {
			heading = restHeading
		}
		url := cmp.Or(p.markdown, l.Base+p.path)
		if linked[url] {
			url = l.Base + p.path
		}
		line := p.line(url, names)
		if lists[heading] == "" {
			line = "\n## " + asHeading(heading) + "\n\n" + line
		}
		isTooLong := len(line) > left // a shorter one may fit
		if isTooLong || linked[url] {
			continue
		}
		linked[url] = true
		left -= len(line)
		lists[heading] += line
	}
	body := head + lists[restHeading]
	delete(lists, restHeading)
	for _, heading := range slices.Sorted(maps.Keys(lists)) {
		body += lists[heading]
	}
	l.file(LLMs, "text/plain", []byte(body))
}

// heading is the one that the page stands below.
func (p *nearPage) heading() string {
	if p.group == "" {
		return restHeading
	}
	heading := headingNamed(p.group)
	// The format has a meaning for the word (https://llmstxt.org/#format).
	if heading == optional {
		return restHeading
	}
	return heading
}

// line is the page as an item of a list, which links to a URL. names are those of the site.
func (p *nearPage) line(url string, names []string) string {
	title := cmp.Or(headline(p.title, names), pathLabel(p.path))
	line := "- [" + asText(title) + "](" + asDestination(url) + ")"
	if p.description != "" {
		line += ": " + asText(p.description)
	}
	return line + "\n"
}

// asDestination returns a URL as the destination of a link. Parentheses are percent-encoded, as parsers of the format
// take the first one for the end of the link, escaped or not.
func asDestination(url string) string {
	return strings.NewReplacer("(", "%28", ")", "%29").Replace(entity.ReplaceAllString(url, "&amp;$1"))
}

// entity is what Markdown takes for a character
// (https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references).
var entity = regexp.MustCompile(`&(#?[0-9A-Za-z]+;)`)

// asText returns a text of one line, as [clean] returns it, in Markdown that means nothing but its characters. Nor does
// it mean anything to Caddy's templates, which may be around the handler. Brackets are references, as parsers of the
// format take the first one for the end of the link, escaped or not.
func asText(text string) string {
	text = entity.ReplaceAllString(text, "&amp;$1")
	var b strings.Builder
	var before rune
	runes := []rune(text)
	for i, r := range runes {
		switch r {
		case '\\', '`', '*', '~':
			b.WriteByte('\\')
		case '_':
			isInWord := isWord(before) && i+1 < len(runes) && isWord(runes[i+1])
			if !isInWord {
				b.WriteByte('\\')
			}
		case '{':
			if before == '{' {
				b.WriteByte('\\')
			}
		}
		switch r {
		case '[':
			b.WriteString("&#91;")
		case ']':
			b.WriteString("&#93;")
		case '<':
			b.WriteString("&lt;")
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// asHeading is asText for a heading: number signs at its end would be no part of it.
func asHeading(text string) string {
	text = asText(text)
	last := strings.LastIndexByte(text, ' ') + 1
	if strings.Trim(text[last:], "#") == "" {
		text = text[:last] + `\` + text[last:]
	}
	return text
}

// begins is how a paragraph would begin another kind of block.
var begins = regexp.MustCompile(`^(#|-|\+|>|[0-9]{1,9}[.)])`)

// asBlock is asText for a paragraph.
func asBlock(text string) string {
	return begins.ReplaceAllStringFunc(asText(text), func(mark string) string {
		last := len(mark) - 1
		return mark[:last] + `\` + mark[last:]
	})
}
