package document

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

const (
	maxLinks    = 500     // pages of the document
	maxLLMs     = 256_000 // bytes of it
	maxHeadings = 50
	maxTurns    = 10_000 // groups whose pages are counted, times their depths

	restHeading = "Pages"    // of pages that are in no folder
	optional    = "Optional" // to which the format gives a meaning (https://llmstxt.org/#format)
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

func (p nearPage) compare(other nearPage) int {
	return cmp.Or(cmp.Compare(p.depth, other.depth), cmp.Compare(p.place, other.place), strings.Compare(p.path, other.path))
}

func (l *llms) add(p listed) {
	depth := p.Extensions.Depth
	turn := xxhash.Sum64String(p.group) + uint64(depth)
	place, isCounted := l.turns[turn]
	if isCounted || len(l.turns) < maxTurns {
		l.turns[turn]++
	} else {
		place = maxLinks
	}
	kept := l.nearest.add(nearPage{depth: depth, place: place, path: p.Path, group: p.group, title: p.title})
	if kept == nil {
		return // as most pages of a large site are
	}
	kept.markdown = strings.Clone(p.Extensions.Markdown)
	kept.description = p.description()
}

func (l *llms) finish() {
	names := l.siteNames()
	head := "# " + asHeading(cmp.Or(l.front.title, l.host())) + "\n\n"
	if description := l.front.description(); description != "" {
		head += "> " + asBlock(description) + "\n\n"
	}
	// The mark is no line of a list: parsers of the format take each of these for a link.
	head += Mark + "\n\nAll pages are in the [sitemap](" + asDestination(l.Sitemap+extension) + ").\n"
	left := maxLLMs - len(head)
	// By text: parsers of the format take only the last one of two headings that are alike. "": of the rest, which comes first.
	lists := map[string]string{"": ""}
	linked := make(map[string]bool) // by URL: several pages may name one version in Markdown, which may be listed, too
	for _, p := range l.nearest.values {
		heading := headingNamed(p.group)
		isOver := lists[heading] == "" && len(lists) == maxHeadings
		if p.group == "" || heading == restHeading || heading == optional || isOver {
			heading = ""
		}
		url := cmp.Or(p.markdown, l.Base+p.path)
		if linked[url] {
			url = l.Base + p.path
		}
		line := p.line(url, names)
		if lists[heading] == "" {
			line = "\n## " + asHeading(cmp.Or(heading, restHeading)) + "\n\n" + line
		}
		isTooLong := len(line) > left // a shorter one may fit
		if isTooLong || linked[url] {
			continue
		}
		linked[url] = true
		left -= len(line)
		lists[heading] += line
	}
	body := head
	for _, heading := range slices.Sorted(maps.Keys(lists)) {
		body += lists[heading]
	}
	l.file(LLMs, "text/plain", []byte(body))
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

var (
	// entity is what Markdown takes for a character
	// (https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references).
	entity = regexp.MustCompile(`&(#?[0-9A-Za-z]+;)`)

	// meaning is what Markdown gives a meaning to. Brackets are references, as parsers of the format take the first one for the
	// end of the link, escaped or not.
	meaning = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "~", `\~`, "_", `\_`, "[", "&#91;", "]", "&#93;", "<", "&lt;")

	// inWord is an escaped underscore that means nothing.
	inWord = regexp.MustCompile(`([\pL\p{Nd}])\\_([\pL\p{Nd}])`)

	// begins is how a paragraph would begin another kind of block.
	begins = regexp.MustCompile(`^([0-9]{1,9})([.)])|^([-#+>])`)

	// ends are number signs that would be no part of a heading.
	ends = regexp.MustCompile(`(^| )(#+)$`)
)

// asText returns a text of one line, as [clean] returns it, in Markdown that means nothing but its characters. Nor does
// it mean anything to Caddy's templates, which may be around the handler.
func asText(text string) string {
	text = meaning.Replace(entity.ReplaceAllString(text, "&amp;$1"))
	for range 2 { // what is replaced may overlap
		text = inWord.ReplaceAllString(text, "${1}_$2")
		text = strings.ReplaceAll(text, "{{", `{\{`)
	}
	return text
}

// asHeading is asText for a heading.
func asHeading(text string) string { return ends.ReplaceAllString(asText(text), `$1\$2`) }

// asBlock is asText for a paragraph.
func asBlock(text string) string { return begins.ReplaceAllString(asText(text), `$1\$2$3`) }
