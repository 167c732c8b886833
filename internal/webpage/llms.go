package webpage

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// LLMsMark is near the beginning of the document for language models, by which builds know their files. It is no line of a list:
// parsers of the format take each of these for a link.
const LLMsMark = "<!-- caddy-sitemap -->"

const (
	maxLinks     = 500     // pages of the document
	maxLLMs      = 256_000 // bytes of it
	maxInSection = 20      // pages below the heading of a folder
)

// linked collects the pages to which most others link.
type linked struct {
	pages []linkedPage
	last  *linkedPage // of these, once they are as many as the document has
}

type linkedPage struct {
	heading
	path           string
	linkers, depth uint8
	url            string
	title          string // never empty
	description    string // or ""
}

// heading is what a page stands below. Headings come in the order of their folders.
type heading struct {
	folder string // "": the folder of the site
	text   string // on one line; not yet Markdown
}

// headingOf returns the heading of a page: that of the topmost folder that it is in, or whose own page it is.
func (o Options) headingOf(path string) heading {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, o.root()), "?")
	folder, _, isIn := strings.Cut(path, "/")
	if !isIn {
		return heading{text: "Pages"}
	}
	text := cmp.Or(pathLabel(folder), "/")
	if isWords(text) {
		text = strings.ToUpper(text[:1]) + strings.NewReplacer("-", " ", "_", " ").Replace(text[1:])
	}
	if text == optional {
		text = "/" + folder + "/" // the format has a meaning for the word
	}
	return heading{folder: folder, text: text}
}

// isWords reports whether the name of a folder reads as words: lower-case letters and hyphens, but no code such as "de".
func isWords(name string) bool {
	return len(name) > 3 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-_") == "" && strings.Trim(name, "-_") == name
}

// add takes a page into account.
func (l *linked) add(o Options, p page.Page) {
	e := cmp.Or(p.Extensions, new(page.Extensions))
	next := linkedPage{path: p.Path, linkers: e.Linkers, depth: e.Depth}
	if l.last != nil && compareLinked(next, *l.last) > 0 {
		return
	}
	// All may be parts of larger strings.
	next.path = strings.Clone(p.Path)
	next.heading = o.headingOf(next.path)
	next.url = cmp.Or(strings.Clone(e.Markdown), o.Base+p.Path)
	next.title = strings.Clone(cmp.Or(clean(e.Title), pathLabel(p.Path)))
	next.description = strings.Clone(clean(e.Description))
	l.pages = append(l.pages, next)
	if len(l.pages) == 2*maxLinks {
		l.trim()
	}
}

// compareLinked orders pages, the most linked first. Of those that are linked about as much, the one fewer clicks away comes
// first: counts change all the time, and the document is to change only where a page has become another kind of page.
func compareLinked(a, b linkedPage) int {
	return cmp.Or(cmp.Compare(b.linkers, a.linkers), cmp.Compare(a.depth, b.depth), strings.Compare(a.path, b.path))
}

// trim sorts the pages, the most linked first, and drops those that the document has no room for.
func (l *linked) trim() {
	slices.SortFunc(l.pages, compareLinked)
	if len(l.pages) >= maxLinks {
		l.pages = l.pages[:maxLinks]
		l.last = &l.pages[maxLinks-1]
	}
}

// optional is the heading of what readers may skip who are short of room (https://llmstxt.org/#format).
const optional = "Optional"

// llms makes the document for language models: which the site's pages are, in Markdown (https://llmstxt.org). Below the heading
// of each folder are the pages to which most others link, so that a reader who skips the optional ones still knows all parts of
// the site; the rest is optional.
func (b *Builder) llms() {
	b.linked.trim()
	if len(b.linked.pages) == 0 {
		return
	}
	head := "# " + asHeading(cmp.Or(b.frontTitle, b.host())) + "\n\n"
	if b.frontDescription != "" {
		head += "> " + asBlock(b.frontDescription) + "\n\n"
	}
	head += LLMsMark + "\n\nAll pages are in the [sitemap](" + asDestination(b.Sitemap+".xml") + ").\n"
	lists := listsOf(b.linked.pages, maxLLMs-len(head))
	body := head + strings.Join(lists, "")
	b.emit(newDocument(LLMs, "text/plain", "", "", body, func() []byte { return []byte(body) }))
}

// listsOf returns the lists of pages below each heading, in order, which have at most this many bytes in all.
func listsOf(pages []linkedPage, left int) (lists []string) {
	// By text: parsers of the format take only the last one of two headings that are alike.
	sections := make(map[string]*pageList)
	rest := &pageList{heading: heading{text: optional}}
	for _, p := range pages {
		list := cmp.Or(sections[p.heading.text], &pageList{heading: p.heading})
		if list.links == maxInSection {
			list = rest
		}
		line := p.line()
		if list.links == 0 {
			line = list.heading.line() + line
		}
		if len(line) > left {
			continue // a shorter one may fit
		}
		left -= len(line)
		list.add(p.folder, line)
		if list != rest {
			sections[p.heading.text] = list
		}
	}
	inOrder := slices.SortedFunc(maps.Values(sections), func(a, b *pageList) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), strings.Compare(a.heading.text, b.heading.text))
	})
	for _, list := range append(inOrder, rest) {
		lists = append(lists, list.lines.String())
	}
	return lists
}

// pageList is the pages below a heading.
type pageList struct {
	heading
	links int
	lines strings.Builder // with the heading
}

// add adds a page, which is in a folder. The heading stands where the first of its folders would.
func (l *pageList) add(folder, line string) {
	l.folder = min(l.folder, folder)
	l.links++
	l.lines.WriteString(line)
}

func (h heading) line() string { return "\n## " + asHeading(h.text) + "\n\n" }

// line is the page as an item of a list.
func (p *linkedPage) line() string {
	line := "- [" + asText(p.title) + "](" + asDestination(p.url) + ")"
	if p.description != "" {
		line += ": " + asText(p.description)
	}
	return line + "\n"
}

// asDestination returns a URL as the destination of a link. Parentheses are percent-encoded, as parsers of the format take
// the first one for the end of the link, escaped or not.
func asDestination(url string) string {
	return strings.NewReplacer("(", "%28", ")", "%29").Replace(entity.ReplaceAllString(url, "&amp;$1"))
}

// entity is what Markdown takes for a character (https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references).
var entity = regexp.MustCompile(`&(#?[0-9A-Za-z]+;)`)

// asText returns a text of one line, as [clean] returns it, in Markdown that means nothing but its characters. Nor does it mean
// anything to Caddy's templates, which may be around the handler. Brackets are references, as parsers of the format take the
// first one for the end of the link, escaped or not.
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
