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
	maxLinks     = 500     // pages of the document
	maxLLMs      = 256_000 // bytes of it
	maxInChapter = 20      // pages below the heading of a folder
	maxChapters  = 50      // headings
)

// nearest collects the pages that the fewest links lead to from the front page: of the whole site, and below each heading.
type nearest struct {
	all      ranking
	chapters map[string]*ranking // by the text of their heading: parsers of the format take only the last one of two headings that are alike
	at       heading             // of the last page
	in       string              // path of the folder whose pages have that heading; "": it is to be found out for each
}

type nearPage struct {
	path        string
	isOwn       bool // it is the page of the folder for which the heading stands
	depth       uint8
	url         string // its own
	markdown    string // of its version in Markdown; "": it has none
	title       string // never empty
	description string // or ""
}

// heading is what a page stands below. Headings come in the order of their folders.
type heading struct {
	folder string // "": the folder of the site
	text   string // on one line; not yet Markdown
}

// headingOf returns the heading of a page that is in no section: that of the topmost folder that it is in, or whose own
// page it is.
func (o Options) headingOf(path string) heading {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, o.root()), "?")
	folder, _, isIn := strings.Cut(path, "/")
	if !isIn {
		return heading{text: "Pages"}
	}
	return headingNamed(folder)
}

// headingNamed returns the heading of a folder, or of a section.
func headingNamed(folder string) heading {
	text := cmp.Or(pathLabel(folder), "/")
	if isWords(text) {
		text = strings.ToUpper(text[:1]) + strings.NewReplacer("-", " ", "_", " ").Replace(text[1:])
	}
	if text == optional {
		text = "/" + folder + "/" // the format has a meaning for the word
	}
	return heading{folder: folder, text: text}
}

// isWords reports whether the name of a folder reads as words: lower-case letters and hyphens, but no code such as
// "de".
func isWords(name string) bool {
	return len(name) > 3 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-_") == "" && strings.Trim(name, "-_") == name
}

// follow returns the heading of a page, which comes after all others in the order of paths: that of its section, or
// else most often that of the last page.
func (l *nearest) follow(o Options, path, section string) heading {
	at := l.followFolder(o, path)
	if section != "" {
		return headingNamed(section)
	}
	return at
}

// followFolder returns the heading that a page would have if it were in no section.
func (l *nearest) followFolder(o Options, path string) heading {
	if l.in != "" && strings.HasPrefix(path, l.in) {
		return l.at
	}
	l.at = o.headingOf(strings.Clone(path)) // which may be a part of a larger string
	l.in = ""
	if l.at.folder != "" {
		l.in = o.root() + l.at.folder + "/"
	}
	return l.at
}

// add takes a page of a section, or of none, into account. It comes after all others in the order of paths.
func (l *nearest) add(o Options, p page.Page, of string) {
	at := l.follow(o, p.Path, of)
	chapter := l.chapters[at.text]
	if chapter == nil {
		chapter = l.open(at)
	}
	e := cmp.Or(p.Extensions, new(page.Extensions))
	next := nearPage{
		path:  p.Path,
		isOwn: p.Path == o.root() || p.Path == l.in,
		depth: e.Depth,
	}
	// Of a large site, most pages end here: titles and descriptions are copied and cleaned for few.
	isAmongAll := l.all.takes(&next)
	isInChapter := chapter.takes(&next)
	if !isAmongAll && !isInChapter {
		return
	}
	// All may be parts of larger strings.
	next.path = strings.Clone(p.Path)
	next.url = o.Base + next.path
	next.markdown = strings.Clone(e.Markdown)
	next.title = strings.Clone(cmp.Or(clean(e.Title), pathLabel(p.Path)))
	next.description = strings.Clone(clean(e.Description))
	if isAmongAll {
		l.all.add(next)
	}
	if isInChapter {
		chapter.add(next)
	}
}

// open begins a chapter. Of too many, those stay whose first pages are nearest.
func (l *nearest) open(at heading) *ranking {
	if l.chapters == nil {
		l.chapters = make(map[string]*ranking)
		l.all = ranking{most: maxLinks, compare: compareDepth}
	}
	if len(l.chapters) == 2*maxChapters {
		l.trim()
	}
	chapter := &ranking{heading: at, most: maxInChapter, compare: compareInChapter}
	l.chapters[at.text] = chapter
	return chapter
}

// trim drops the chapters that the document has no room for. It returns the others, in order.
func (l *nearest) trim() []*ranking {
	chapters := slices.Collect(maps.Values(l.chapters))
	for _, chapter := range chapters {
		chapter.trim()
	}
	// The site's own folder always stays, and then those whose first pages are nearest.
	slices.SortFunc(chapters, func(a, b *ranking) int {
		return cmp.Or(
			compareBool(b.folder == "", a.folder == ""),
			compareDepth(a.pages[0], b.pages[0]),
		)
	})
	for _, chapter := range chapters[min(len(chapters), maxChapters):] {
		delete(l.chapters, chapter.text)
	}
	chapters = chapters[:min(len(chapters), maxChapters)]
	slices.SortFunc(chapters, func(a, b *ranking) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), strings.Compare(a.text, b.text))
	})
	return chapters
}

// ranking collects the nearest of many pages.
type ranking struct {
	heading // of a chapter
	most    int
	compare func(a, b nearPage) int
	pages   []nearPage
	isFull  bool // pages has the most of them, in order, and perhaps further ones
}

// takes reports whether a page is among the nearest ones so far.
func (r *ranking) takes(p *nearPage) bool {
	return !r.isFull || r.compare(*p, r.pages[r.most-1]) < 0
}

func (r *ranking) add(p nearPage) {
	r.pages = append(r.pages, p)
	if len(r.pages) == 2*r.most {
		r.trim()
	}
}

// trim sorts the pages, the nearest first, and drops those beyond the most that are kept.
func (r *ranking) trim() {
	slices.SortFunc(r.pages, r.compare)
	if len(r.pages) >= r.most {
		r.pages = r.pages[:r.most]
		r.isFull = true
	}
}

// compareDepth orders pages: those fewer links away from the front page come first, then it goes by path.
func compareDepth(a, b nearPage) int {
	return cmp.Or(cmp.Compare(a.depth, b.depth), strings.Compare(a.path, b.path))
}

// compareInChapter is compareDepth where the page of the folder itself comes first, which introduces the others.
func compareInChapter(a, b nearPage) int {
	return cmp.Or(compareBool(b.isOwn, a.isOwn), compareDepth(a, b))
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	if a == b {
		return 0
	}
	if b {
		return -1
	}
	return 1
}

// optional is the heading of what readers may skip who are short of room (https://llmstxt.org/#format).
const optional = "Optional"

// llms makes the document for language models: which the site's pages are, in Markdown (https://llmstxt.org). Below the
// heading of each folder are its nearest pages, so that a reader who skips the optional ones still knows all parts of the
// site; the nearest of the others are optional.
func (b *Builder) llms() {
	if len(b.nearest.chapters) == 0 {
		return
	}
	head := "# " + asHeading(cmp.Or(b.front, b.host())) + "\n\n"
	if b.frontDescription != "" {
		head += "> " + asBlock(b.frontDescription) + "\n\n"
	}
	head += LLMsMark + "\n\nAll pages are in the [sitemap](" + asDestination(b.Sitemap+".xml") + ").\n"
	body := head + strings.Join(b.nearest.lists(maxLLMs-len(head)), "")
	b.emit(newDocument(LLMs, "text/plain", "", "", body, func() []byte { return []byte(body) }))
}

// lists returns the lists of pages below each heading, in order, which have at most this many bytes in all. All
// chapters have their first pages before any has its second one.
func (l *nearest) lists(left int) (lists []string) {
	chapters := l.trim()
	l.all.trim()
	texts := make([]strings.Builder, len(chapters)+1) // the last one is that of the optional ones
	shown := make(map[string]bool)                    // by path
	linked := make(map[string]bool)                   // by URL: several pages may name one version in Markdown, which may be listed, too
	show := func(at int, h heading, p *nearPage) {
		url := cmp.Or(p.markdown, p.url)
		if linked[url] {
			url = p.url
		}
		line := p.line(url)
		if texts[at].Len() == 0 {
			line = h.line() + line
		}
		isTooLong := len(line) > left // a shorter one may fit
		if isTooLong || len(shown) == maxLinks || shown[p.path] || linked[url] {
			return
		}
		shown[p.path] = true
		linked[url] = true
		left -= len(line)
		texts[at].WriteString(line)
	}
	// By rank: each chapter has its first page before any has its second one, as there may not be room for all.
	for i := range maxInChapter {
		for at, chapter := range chapters {
			if i < len(chapter.pages) {
				show(at, chapter.heading, &chapter.pages[i])
			}
		}
	}
	for i := range l.all.pages {
		show(len(chapters), heading{text: optional}, &l.all.pages[i])
	}
	for i := range texts {
		lists = append(lists, texts[i].String())
	}
	return lists
}

func (h heading) line() string { return "\n## " + asHeading(h.text) + "\n\n" }

// line is the page as an item of a list, which links to a URL.
func (p *nearPage) line(url string) string {
	line := "- [" + asText(p.title) + "](" + asDestination(url) + ")"
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
