package files

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// rules is what Options say of names and paths, prepared so that a file in a
// folder where no rule is at work costs a comparison of its suffix.
type rules struct {
	at         string // canonical, no slash at the end
	clean      bool
	keepBeside bool // no clean URL where a folder bears the shorter name
	index      []string

	include page.Patterns // nil: the default suffixes
	exact   page.Patterns // those of Include without a wildcard
	heads   []string      // what each pattern of Include begins with, up to its first wildcard

	exclude      page.Patterns
	excludeHeads []string // of the patterns that are a prefix and an asterisk

	names   []string     // hidden components, or globs of them
	paths   []hiddenPath // hidden paths below the root
	globs   []string     // globs of absolute paths
	absRoot string       // without a separator at its end: "" for the root of all
	all     bool         // the root itself is hidden
}

// hiddenPath is an entry of the hide list that names one path below the root. One with
// wildcards hides the folder of that name; which files it hides, globs say.
type hiddenPath struct {
	dir, base string // dir relative to the root, with slashes
	glob      bool
}

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
	var exact []string
	for _, p := range o.Include {
		p = strings.ToLower(p)
		r.heads = append(r.heads, p[:strings.IndexAny(p+"*", `*?[\%`)])
		if !strings.ContainsAny(p, "*?[") {
			exact = append(exact, p)
		}
	}
	for _, p := range o.Exclude {
		p = strings.ToLower(p)
		if head, ok := strings.CutSuffix(p, "*"); ok && !strings.ContainsAny(head, "*%") && !strings.Contains(head, "//") {
			r.excludeHeads = append(r.excludeHeads, head)
		}
	}
	var err error
	if r.include, err = page.CompilePatterns(o.Include); err != nil {
		return nil, fmt.Errorf("reading patterns of included files: %w", err)
	}
	if r.exact, err = page.CompilePatterns(exact); err != nil {
		return nil, fmt.Errorf("reading patterns of included files: %w", err)
	}
	if r.exclude, err = page.CompilePatterns(o.Exclude); err != nil {
		return nil, fmt.Errorf("reading patterns of excluded files: %w", err)
	}
	return r, r.compileHide(o)
}

const separator = string(filepath.Separator)

func (r *rules) compileHide(o Options) error {
	abs, err := filepath.Abs(o.Root)
	if err != nil {
		return fmt.Errorf("scanning %s: %w", o.Root, err)
	}
	r.absRoot = strings.TrimSuffix(abs, separator)
	for _, h := range o.Hide {
		if !strings.Contains(h, separator) {
			r.names = append(r.names, h)
			continue
		}
		if h, err = filepath.Abs(h); err != nil {
			return fmt.Errorf("hiding %s: %w", h, err)
		}
		if h == abs && h != separator || strings.HasPrefix(abs, h+separator) {
			r.all = true
		}
		glob := strings.ContainsAny(h, `*?[\`)
		if glob {
			r.globs = append(r.globs, h)
		}
		if below, ok := strings.CutPrefix(h, r.absRoot+separator); ok && below != "" {
			below = filepath.ToSlash(below)
			i := strings.LastIndexByte(below, '/')
			r.paths = append(r.paths, hiddenPath{below[:max(i, 0)], below[i+1:], glob})
		}
	}
	for _, component := range strings.Split(abs, separator) {
		r.all = r.all || r.hidesName(component)
	}
	return nil
}

func (r *rules) hidesName(name string) bool {
	return slices.ContainsFunc(r.names, func(h string) bool { return matches(h, name) })
}

func matches(glob, name string) bool {
	ok, _ := filepath.Match(glob, name)
	return ok
}

// indexOf is the place of a name among the index names, -1 for none.
func (r *rules) indexOf(name string) int { return slices.Index(r.index, name) }

// place is a folder as the rules see it.
type place struct {
	rel   string // the path below the root, with slashes: "" or "a/b"
	url   string // its URL path, percent-encoded: "/" or "/docs/a/b/"
	lower string // the URL path decoded and in lower case, if patterns need it
	depth int

	hidden []hiddenPath // those right here
}

func (r *rules) root() place { return r.withRules(place{url: r.at + "/"}) }

// child is the folder of that name in p; escaped is the name percent-encoded.
func (r *rules) child(p *place, name, escaped string) place {
	rel := strings.Clone(name)
	if p.rel != "" {
		rel = p.rel + "/" + name
	}
	return r.withRules(place{rel: rel, url: p.url + escaped + "/", depth: p.depth + 1})
}

// withRules fills in which rules are at work at p.
func (r *rules) withRules(p place) place {
	if len(r.heads)+len(r.excludeHeads) > 0 {
		p.lower = strings.ToLower(page.Unescape(p.url))
	}
	for _, h := range r.paths {
		if h.dir == p.rel {
			p.hidden = append(p.hidden, h)
		}
	}
	return p
}

// hidesFile reports whether file_server hides the file of that name in p.
func (r *rules) hidesFile(p *place, name string) bool {
	if r.hidesName(name) || slices.Contains(p.hidden, hiddenPath{dir: p.rel, base: name}) {
		return true
	}
	return slices.ContainsFunc(r.globs, func(glob string) bool {
		return matches(glob, r.absRoot+separator+filepath.FromSlash(join(p.rel, name)))
	})
}

// hidesFolder reports whether file_server hides all that is in the folder.
func (r *rules) hidesFolder(p *place, name string) bool {
	return r.hidesName(name) || slices.ContainsFunc(p.hidden, func(h hiddenPath) bool { return h.base == name })
}

// folder says why the folder of that name in p is not entered.
func (r *rules) folder(p *place, name string) reason {
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
	lower := ""
	if len(r.heads)+len(r.excludeHeads) > 0 {
		lower = p.lower + strings.ToLower(name) + "/"
	}
	within := func(head string) bool { return strings.HasPrefix(head, lower) }
	above := func(head string) bool { return strings.HasPrefix(lower, head) }
	switch {
	case (name == "node_modules" || name == "bower_components") && !slices.ContainsFunc(r.heads, within):
		return dependencyFolder
	case slices.ContainsFunc(r.excludeHeads, above):
		return excluded
	case len(r.heads) > 0 && !slices.ContainsFunc(r.heads, within) && !slices.ContainsFunc(r.heads, above):
		return notIncluded
	}
	return listed
}

// file says why the file of that name in p is not listed, as far as its name and path
// tell, save for what Exclude says. escaped is the name percent-encoded.
func (r *rules) file(p *place, name, escaped string) reason {
	switch {
	case name[0] == '.':
		return dotfile
	case r.include == nil && !hasSuffixFold(name, ".html") && !hasSuffixFold(name, ".htm") && !hasSuffixFold(name, ".xhtml"):
		return notIncluded // most files of many sites
	case r.include != nil && !r.include.Match(p.url+escaped):
		return notIncluded
	case refusedName(name):
		return nameRefused
	case r.hidesFile(p, name):
		return hidden
	}
	why := special(name)
	if why != listed && r.exact.Match(p.url+escaped) {
		return listed
	}
	return why
}

// hasSuffixFold is strings.HasSuffix without regard to the case of ASCII letters.
func hasSuffixFold(name, suffix string) bool {
	return len(name) >= len(suffix) && strings.EqualFold(name[len(name)-len(suffix):], suffix)
}

// excludes reports whether Exclude leaves out a file in p, escaped as in file: an index
// file, or one that is listed without ".html".
func (r *rules) excludes(p *place, escaped string, isIndex, isClean bool) bool {
	if len(r.exclude) == 0 {
		return false
	}
	url := p.url + escaped
	return r.exclude.Match(url) || isIndex && r.exclude.Match(p.url) ||
		!isIndex && isClean && r.exclude.Match(strings.TrimSuffix(url, ".html"))
}
