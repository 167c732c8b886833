package files

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// rules is what Options say of names and paths, prepared so that a file in a
// folder where no rule is at work costs a comparison of its suffix.
type rules struct {
	at    string // canonical, no slash at the end
	clean bool
	index []string

	keepBeside bool // no clean URL where a folder bears the shorter name

	suffixes []string      // of included names, lower-case, when no other pattern includes
	include  page.Patterns // else these
	exact    page.Patterns // those of Include without a wildcard
	folders  []string      // Include in lower case
	heads    []string      // what each pattern of Include begins with, up to its first wildcard

	exclude      page.Patterns
	excludeHeads []string // of the patterns that are a prefix and an asterisk
	excludeOther bool     // there are other patterns

	names     []string // hidden components
	nameGlobs []string
	paths     []hiddenPath // hidden paths below the root
	pathGlobs []pathGlob
	slowGlobs []string // globs whose last separator cannot be told
	absRoot   string   // without a separator at its end: "" for the root of all
	all       bool     // the root itself is hidden
}

// hiddenPath is an entry of the hide list that names one path below the root.
type hiddenPath struct {
	dir, base string // dir relative to the root, with slashes
	folders   bool   // hides a folder only: the name has wildcards, which match files
}

type pathGlob struct{ dir, base string }

var defaultSuffixes = []string{".html", ".htm", ".xhtml"}

func newRules(o Options) (*rules, error) {
	r := &rules{clean: o.CleanURLs, keepBeside: o.CleanURLs && o.KeepBesideFolders, index: o.Index}
	if o.Index == nil {
		r.index = []string{"index.html", "index.txt"}
	}
	if o.At != "" {
		at, err := page.Canonical(strings.TrimRight(o.At, "/") + "/")
		if err != nil {
			return nil, fmt.Errorf("reading URL folder %s: %w", o.At, err)
		}
		r.at = strings.TrimSuffix(at, "/")
	}
	if err := r.compileInclude(o.Include); err != nil {
		return nil, fmt.Errorf("reading patterns of included files: %w", err)
	}
	var err error
	if r.exclude, err = page.CompilePatterns(o.Exclude); err != nil {
		return nil, fmt.Errorf("reading patterns of excluded files: %w", err)
	}
	for _, p := range o.Exclude {
		p = strings.ToLower(p)
		if head, ok := strings.CutSuffix(p, "*"); ok && !strings.ContainsAny(head, "*%") && !strings.Contains(head, "//") {
			r.excludeHeads = append(r.excludeHeads, head)
			continue
		}
		r.excludeOther = true
	}
	return r, r.compileHide(o)
}

func (r *rules) compileInclude(patterns []string) error {
	if len(patterns) == 0 {
		r.suffixes = defaultSuffixes
		return nil
	}
	include, err := page.CompilePatterns(patterns)
	if err != nil {
		return err
	}
	var exact []string
	for _, p := range patterns {
		p = strings.ToLower(p)
		r.folders = append(r.folders, p)
		r.heads = append(r.heads, p[:min(len(p), indexAny(p, `*?[\%`))])
		if !strings.ContainsAny(p, "*?[") {
			exact = append(exact, p)
		}
		if suffix, ok := strings.CutPrefix(p, "*"); ok && r.include == nil && isNameSuffix(suffix) {
			r.suffixes = append(r.suffixes, suffix)
			continue
		}
		r.include = include
	}
	if r.include != nil {
		r.suffixes = nil
	}
	r.exact, err = page.CompilePatterns(exact)
	return err
}

// isNameSuffix reports whether a path matches "*" and suffix when its last
// component does, byte by byte. Letters outside of ASCII whose lower case is i
// or k exist.
func isNameSuffix(suffix string) bool {
	for _, c := range []byte(suffix) {
		if c >= 0x80 || strings.IndexByte(`*?[\%/ik`, c) >= 0 {
			return false
		}
	}
	return true
}

// indexAny is strings.IndexAny, with len(s) for none.
func indexAny(s, chars string) int {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return i
	}
	return len(s)
}

const separator = string(filepath.Separator)

func (r *rules) compileHide(o Options) error {
	root := o.Root
	if root == "" {
		root = "."
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("scanning %s: %w", o.Root, err)
	}
	r.absRoot = strings.TrimSuffix(abs, separator)
	meta := `*?[\`
	if separator == `\` {
		meta = `*?[`
	}
	for _, h := range o.Hide {
		if !strings.Contains(h, separator) {
			if strings.ContainsAny(h, meta) {
				r.nameGlobs = append(r.nameGlobs, h)
			} else {
				r.names = append(r.names, h)
			}
			continue
		}
		if h, err = filepath.Abs(h); err != nil {
			return fmt.Errorf("hiding %s: %w", h, err)
		}
		glob := strings.ContainsAny(h, meta)
		if h == abs && h != separator || strings.HasPrefix(abs, h+separator) {
			r.all = true
		}
		if below, ok := strings.CutPrefix(h, r.absRoot+separator); ok && below != "" {
			below = filepath.ToSlash(below)
			i := strings.LastIndexByte(below, '/')
			r.paths = append(r.paths, hiddenPath{dir: below[:max(i, 0)], base: below[i+1:], folders: glob})
		}
		if !glob {
			continue
		}
		if i := strings.LastIndex(h, separator); !strings.ContainsAny(h, strings.Trim(meta, "*?")) {
			r.pathGlobs = append(r.pathGlobs, pathGlob{h[:i], h[i+1:]})
			continue
		}
		r.slowGlobs = append(r.slowGlobs, h)
	}
	for _, component := range strings.Split(abs, separator) {
		r.all = r.all || r.hidesName(component)
	}
	return nil
}

func (r *rules) hidesName(name string) bool {
	for _, h := range r.names {
		if h == name {
			return true
		}
	}
	for _, h := range r.nameGlobs {
		if ok, _ := filepath.Match(h, name); ok {
			return true
		}
	}
	return false
}

// indexOf is the place of a name among the index names, -1 for none.
func (r *rules) indexOf(name string) int {
	for i, n := range r.index {
		if n == name {
			return i
		}
	}
	return -1
}

// place is a folder as the rules see it.
type place struct {
	rel   string // the path below the root, with slashes: "" or "a/b"
	url   string // its URL path, percent-encoded: "/" or "/docs/a/b/"
	lower string // the URL path decoded and in lower case, if patterns need it
	plain bool   // rel needs no escaping
	depth int

	both      []string // files and folders hidden here by their paths
	onlyDirs  []string // folders alone
	globs     []string // globs that hide files here
	excluding bool     // patterns of Exclude may match here
}

func (r *rules) root() place { return r.withRules(place{url: r.at + "/", plain: true}) }

// child is the folder of that name in p; escaped is the name percent-encoded.
func (r *rules) child(p *place, name, escaped string) place {
	c := place{depth: p.depth + 1, plain: p.plain && name == escaped, url: p.url + escaped + "/"}
	switch {
	case c.plain:
		c.rel = c.url[len(r.at)+1 : len(c.url)-1]
	case p.rel == "":
		c.rel = strings.Clone(name)
	default:
		c.rel = p.rel + "/" + name
	}
	return r.withRules(c)
}

// withRules fills in which rules are at work at p.
func (r *rules) withRules(p place) place {
	if len(r.heads) > 0 || len(r.excludeHeads) > 0 {
		p.lower = strings.ToLower(page.Unescape(p.url))
	}
	p.excluding = r.excludeOther
	for _, head := range r.excludeHeads {
		p.excluding = p.excluding || strings.HasPrefix(head, p.lower) || strings.HasPrefix(p.lower, head)
	}
	for _, h := range r.paths {
		switch {
		case h.dir != p.rel:
		case h.folders:
			p.onlyDirs = append(p.onlyDirs, h.base)
		default:
			p.both = append(p.both, h.base)
		}
	}
	if len(r.pathGlobs) > 0 {
		dir := r.abs(&p)
		for _, g := range r.pathGlobs {
			if ok, _ := filepath.Match(g.dir, dir); ok {
				p.globs = append(p.globs, g.base)
			}
		}
	}
	return p
}

// abs is p's absolute path without a separator at its end.
func (r *rules) abs(p *place) string {
	if p.rel == "" {
		return r.absRoot
	}
	return r.absRoot + separator + filepath.FromSlash(p.rel)
}

// hidesFile reports whether file_server hides the file of that name in p.
func (r *rules) hidesFile(p *place, name string) bool {
	if r.hidesName(name) {
		return true
	}
	for _, h := range p.both {
		if h == name {
			return true
		}
	}
	for _, g := range p.globs {
		if ok, _ := filepath.Match(g, name); ok {
			return true
		}
	}
	for _, g := range r.slowGlobs {
		if ok, _ := filepath.Match(g, r.abs(p)+separator+name); ok {
			return true
		}
	}
	return false
}

// hidesFolder reports whether file_server hides all that is in the folder.
func (r *rules) hidesFolder(p *place, name string) bool {
	if r.hidesName(name) {
		return true
	}
	for _, h := range p.both {
		if h == name {
			return true
		}
	}
	for _, h := range p.onlyDirs {
		if h == name {
			return true
		}
	}
	return false
}

// folder says why the folder of that name in p is not entered.
func (r *rules) folder(p *place, name, escaped string) reason {
	switch {
	case name[0] == '.':
		return dotfile
	case refusedName(name):
		return nameRefused
	case r.hidesFolder(p, name):
		return hidden
	case p.depth >= maxDepth:
		return tooDeep
	}
	why := listed
	if name == "node_modules" || name == "bower_components" {
		why = dependencyFolder
	}
	if len(r.heads) == 0 && len(r.excludeHeads) == 0 {
		return why
	}
	lower := p.lower + strings.ToLower(name) + "/"
	if why != listed && !r.includesFolder(lower, strings.ToLower(p.url+escaped)+"/") {
		return why
	}
	for _, head := range r.excludeHeads {
		if strings.HasPrefix(lower, head) {
			return excluded
		}
	}
	if len(r.heads) == 0 {
		return listed
	}
	for _, head := range r.heads {
		if strings.HasPrefix(lower, head) || strings.HasPrefix(head, lower) {
			return listed
		}
	}
	return notIncluded
}

// includesFolder reports whether a pattern of the user's begins with the
// folder's own path, decoded or encoded.
func (r *rules) includesFolder(lower, escaped string) bool {
	for _, p := range r.folders {
		if strings.HasPrefix(p, lower) || strings.HasPrefix(p, escaped) {
			return true
		}
	}
	return false
}

// needsURL reports whether file wants the file's URL path.
func (r *rules) needsURL() bool { return r.include != nil || r.exact != nil }

// includes reports whether the file of that name and URL path is included.
func (r *rules) includes(name, url string) bool {
	if r.include != nil {
		return r.include.Match(url)
	}
	for _, suffix := range r.suffixes {
		if hasSuffixFold(name, suffix) {
			return true
		}
	}
	return false
}

// file says why the file of that name in p is not listed, as far as its name
// and path tell, save for what Exclude says. url is its URL path, percent-encoded,
// or "" unless needsURL.
func (r *rules) file(p *place, name, url string) reason {
	switch {
	case name[0] == '.':
		return dotfile
	case !r.includes(name, url):
		return notIncluded
	case refusedName(name):
		return nameRefused
	case r.hidesFile(p, name):
		return hidden
	}
	why := special(name)
	if why != listed && r.exact != nil && r.exact.Match(url) {
		return listed
	}
	return why
}

// excludes reports whether Exclude leaves out the file of that URL path in p: an
// index file, or one that is listed without ".html".
func (r *rules) excludes(p *place, url string, isIndex, isClean bool) bool {
	switch {
	case !p.excluding:
		return false
	case r.exclude.Match(url):
		return true
	case isIndex:
		return r.exclude.Match(p.url)
	case isClean:
		return r.exclude.Match(strings.TrimSuffix(url, ".html"))
	}
	return false
}
