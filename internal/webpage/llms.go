package webpage

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// LLMsMark is near the beginning of the document for language models, by which builds know their files. It is no line
// of a list: parsers of the format take each of these for a link.
const LLMsMark = sitemapxml.Mark

const (
	maxLinks    = 500     // pages of the document
	maxLLMs     = 256_000 // bytes of it
	maxHeadings = 50
	maxTurns    = 10_000 // folders whose pages are counted, times their depths

	restHeading = "Pages" // of pages that are in no folder
	optional    = "Optional"
)

// nearest collects the pages that the fewest links lead to from the front page.
type nearest struct {
	first[nearPage]
	turns map[turn]int // how many pages there were of each
}

func newNearest() nearest {
	return nearest{
		first: first[nearPage]{most: maxLinks, compare: compareNear},
		turns: make(map[turn]int),
	}
}

// turn is what pages have in common that take turns with others of the same depth: else the pages of one folder could be all
// that there is room for.
type turn struct {
	group string // name of a section, or else of a first folder
	depth uint8
}

type nearPage struct {
	turn
	place       int // among those of its turn
	path        string
	markdown    string // URL of its version in Markdown; "": it has none
	title       string // or ""
	description string // or ""
}

// compareNear orders pages: those fewer links away from the front page come first.
func compareNear(a, b nearPage) int {
	return cmp.Or(
		cmp.Compare(a.depth, b.depth),
		cmp.Compare(a.place, b.place),
		strings.Compare(a.path, b.path),
	)
}

// add takes a page of a section, or of none, into account. It comes after all others in the order of paths.
func (l *nearest) add(o Options, p page.Page, section string) {
	e := cmp.Or(p.Extensions, new(page.Extensions))
	next := nearPage{
		turn: turn{cmp.Or(section, o.firstFolder(p.Path)), e.Depth},
		path: p.Path,
	}
	next.place = l.place(next.turn)
	// Of a large site, most pages end here: titles and descriptions are copied and cleaned for few.
	if !l.takes(next) {
		return
	}
	// All may be parts of larger strings.
	next.group = strings.Clone(next.group)
	next.path = strings.Clone(p.Path)
	next.markdown = strings.Clone(e.Markdown)
	next.title = strings.Clone(clean(e.Title))
	next.description = strings.Clone(clean(e.Description))
	l.first.add(next)
}

// place counts a page of a turn, and returns how many there were before.
func (l *nearest) place(of turn) int {
	n, isKnown := l.turns[of]
	if !isKnown {
		if len(l.turns) == maxTurns {
			return maxLinks // no more are counted
		}
		of.group = strings.Clone(of.group) // which may be a part of a larger string
	}
	l.turns[of] = n + 1
	return n
}

// headingNamed returns the heading of a folder, or of a section, on one line; "": that of the rest.
func headingNamed(folder string) string {
	if folder == "" {
		return restHeading
	}
	text := cmp.Or(pathLabel(folder), "/")
	if isWords(text) {
		return strings.ToUpper(text[:1]) + strings.NewReplacer("-", " ", "_", " ").Replace(text[1:])
	}
	return text
}

// isWords reports whether the name of a folder reads as words: lower-case letters and hyphens, but no code such as
// "de".
func isWords(name string) bool {
	return len(name) > 3 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-_") == "" && strings.Trim(name, "-_") == name
}

// llms makes the document for language models: which the site's nearest pages are, in Markdown (https://llmstxt.org).
func (b *Builder) llms() {
	pages := b.nearest.sorted()
	if len(pages) == 0 {
		return
	}
	names := b.siteNames()
	head := "# " + asHeading(cmp.Or(b.front, b.host())) + "\n\n"
	if b.frontDescription != "" {
		head += "> " + asBlock(b.frontDescription) + "\n\n"
	}
	head += LLMsMark + "\n\nAll pages are in the [sitemap](" + asDestination(b.Sitemap+".xml") + ").\n"
	left := maxLLMs - len(head)
	// By text: parsers of the format take only the last one of two headings that are alike.
	lists := map[string]string{restHeading: ""}
	linked := make(map[string]bool) // by URL: several pages may name one version in Markdown, which may be listed, too
	for _, p := range pages {
		heading := headingNamed(p.group)
		isOneTooMany := lists[heading] == "" && len(lists) == maxHeadings
		// The format has a meaning for the word (https://llmstxt.org/#format).
		if isOneTooMany || heading == optional {
			heading = restHeading
		}
		url := cmp.Or(p.markdown, b.Base+p.path)
		if linked[url] {
			url = b.Base + p.path
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
	b.emit(newDocument(LLMs, "text/plain", "", body, func() []byte { return []byte(body) }))
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
