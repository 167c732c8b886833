package webpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the template, the stylesheets and the script
	"encoding/base64"
	"html/template"
	"slices"
	"strings"
)

var (
	//go:embed page.html
	pageTemplate string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
	//go:embed sitemap.css
	stylesheet string
)

var compiled = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(pageStyle) },
	"script": func() template.JS { return template.JS(pageScript) },
	"href":   href,
}).Parse(pageTemplate))

// pagePolicy allows what the template holds, and nothing else (https://www.w3.org/TR/CSP3/).
var pagePolicy = "default-src 'none'; script-src " + source(pageScript) + "; style-src " + source(pageStyle) +
	"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func source(inline string) string {
	hash := sha256.Sum256([]byte(inline))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// href is the attribute of a link. Package template would also percent-encode quotes and parentheses, and in a query
// that makes another URL.
func href(url string) template.HTMLAttr {
	return template.HTMLAttr(`href="` + template.HTMLEscapeString(url) + `"`)
}

// view is what the template shows.
type view struct {
	Host     string
	Feed     string // URL; or ""
	Folder   string // label of the folder
	Part     string // label of the first page, if it is a part of the folder; or ""
	Above    []row  // documents around it, the outermost first
	Pages    int
	Sections []section
}

// section is a folder's rows below its heading.
type section struct {
	Label string
	Rows  []row
}

// sectionsOf groups rows by their folders, in the order of these; rows keep their order.
func sectionsOf(rows []row) (sections []section) {
	byFolder := func(a, b row) int { return strings.Compare(a.Folder, b.Folder) }
	for _, r := range slices.SortedStableFunc(slices.Values(rows), byFolder) {
		if n := len(sections); n == 0 || sections[n-1].Rows[0].Folder != r.Folder {
			sections = append(sections, section{Label: pathLabel(r.Folder)})
		}
		last := &sections[len(sections)-1]
		last.Rows = append(last.Rows, r)
	}
	return sections
}

func (v view) body() []byte {
	var b bytes.Buffer
	_ = compiled.Execute(&b, v) // a buffer returns no errors, and the template is tested
	return inert(b.Bytes())
}

// inert returns HTML or XML in which Caddy's templates, which may be around the handler, find nothing to execute: that is what
// is in two braces.
func inert(markup []byte) []byte {
	return bytes.ReplaceAll(markup, []byte("{{"), []byte("{&#123;"))
}
