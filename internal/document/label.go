package document

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const maxTitle = 200 // characters of a title that are shown

// listed is a page as the parts take it.
type listed struct {
	page.Page        // its Extensions are not nil, and may hold parts of larger strings
	title     string // on one line; "": its path stands for it
	group     string // of pages: the section, or else the first folder; "": it is in none
}

// description is what the page declares as its description, on one line; "": it declares none.
func (p *listed) description() string { return strings.Clone(clean(p.Extensions.Description)) }

// clean makes a text fit for one line: it collapses white space, and drops characters that XML forbids
// (https://www.w3.org/TR/xml/#charsets), controls, and what overrides the writing direction of the text after it.
// Invalid UTF-8 becomes U+FFFD. A text of more than maxTitle characters is cut, and ends in an ellipsis.
func clean(text string) string {
	isOther := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(text) <= maxTitle && !strings.ContainsFunc(text, isOther) {
		return text // as most paths are
	}
	text = strings.Join(strings.Fields(strings.Map(visible, text)), " ")
	if utf8.RuneCountInString(text) <= maxTitle {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:maxTitle-1]), " ") + "…"
}

func visible(r rune) rune {
	isControl := unicode.IsControl(r) && !unicode.IsSpace(r)
	isOverride := unicode.Is(unicode.Bidi_Control, r) && r > '\u200F' // the marks up to there turn no other text around
	isNoCharacter := r&0xFFFE == 0xFFFE
	if isControl || isOverride || isNoCharacter {
		return -1
	}
	return r
}

// pathLabel is a path or folder as people read it.
func pathLabel(path string) string {
	_, query, _ := strings.Cut(path+"?", "?")
	return clean(page.Unescape(path) + strings.TrimSuffix("?"+query, "?"))
}

// firstFolder is the topmost folder that a path is in, below that of the site; "": it is in none.
func (o *Options) firstFolder(path string) string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, o.root()), "?")
	folder, _, isIn := strings.Cut(path, "/")
	if !isIn {
		return ""
	}
	return folder
}

// headingNamed returns the heading of a folder, or of a section, on one line.
func headingNamed(folder string) string {
	text := cmp.Or(pathLabel(folder), "/")
	if areWords.MatchString(text) {
		return strings.ToUpper(text[:1]) + strings.NewReplacer("-", " ", "_", " ").Replace(text[1:])
	}
	return text
}

// areWords matches the name of a folder that reads as words: lower-case letters and hyphens, but no code such as "de".
var areWords = regexp.MustCompile(`^[a-z][a-z_-]{2,}[a-z]$`)

// inert returns HTML or XML in which Caddy's templates, which may be around the handler, find nothing to execute: that
// is what is in two braces.
func inert(markup []byte) []byte {
	return bytes.ReplaceAll(markup, []byte("{{"), []byte("{&#123;"))
}
