package files

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// rules are the Options for names and paths, prepared so that a file in a folder
// to which no rule applies costs only a comparison of its suffix.
type rules struct {
	at         string // as in Options
	clean      bool
	keepBeside bool // no clean URL if a folder has the shorter name
	index      []string

	include      func(path string) bool // nil: the default suffixes
	exact        func(path string) bool // the patterns of Include without wildcards; nil: there are none
	exclude      func(path string) bool // nil: nothing
	heads        []string               // what each pattern of Include begins with, up to its first wildcard
	excludeHeads []string               // of the patterns of Exclude that are a prefix and an asterisk

	absRoot string   // without a separator at its end: "" for the root of all
	names   []string // hidden components, or globs of them
	paths   []string // hidden paths, or globs of them
	all     bool     // the root itself is hidden
}

// newRules prepares options for the root at an absolute path.
func newRules(o Options, root string) *rules {
	r := &rules{
		at:         o.At,
		clean:      o.CleanURLs,
		keepBeside: o.CleanURLs && o.KeepBesideFolders,
		index:      o.IndexNames(),
	}
	r.setPatterns(&o)
	r.setHidden(o.Hide, root)
	return r
}

// notLiteral are the characters of patterns that may match others: wildcards, and the sign with which an escape begins,
// as paths are compared decoded.
const notLiteral = `*?[\%`

func (r *rules) setPatterns(o *Options) {
	var exact []string
	for _, p := range o.Include {
		head := p[:strings.IndexAny(p+"*", notLiteral)]
		r.heads = append(r.heads, strings.ToLower(head))
		if !strings.ContainsAny(p, "*?[") {
			exact = append(exact, p)
		}
	}
	for _, p := range o.Exclude {
		head, isPrefix := strings.CutSuffix(strings.ToLower(p), "*")
		isLiteral := !strings.ContainsAny(head, notLiteral) && !strings.Contains(head, "//")
		if isPrefix && isLiteral {
			r.excludeHeads = append(r.excludeHeads, head)
		}
	}
	compile := func(patterns []string) func(path string) bool {
		if len(patterns) == 0 {
			return nil
		}
		return o.Compile(patterns)
	}
	r.include = compile(o.Include)
	r.exact = compile(exact)
	r.exclude = compile(o.Exclude)
}

func (r *rules) setHidden(hide []string, root string) {
	r.absRoot = strings.TrimSuffix(root, separator)
	for _, h := range hide {
		if !strings.Contains(h, separator) {
			r.names = append(r.names, h)
			continue
		}
		h, _ = filepath.Abs(h)
		r.paths = append(r.paths, h)
		isRoot := h == root && h != separator
		isAbove := strings.HasPrefix(root, h+separator)
		r.all = r.all || isRoot || isAbove
	}
	// As file_server compares them: with any component of the absolute path.
	r.all = r.all || slices.ContainsFunc(strings.Split(root, separator), r.hidesName)
}

const separator = string(filepath.Separator)

func (r *rules) hidesName(name string) bool {
	return slices.ContainsFunc(r.names, func(h string) bool { return matches(h, name) })
}

func matches(glob, name string) bool {
	ok, _ := filepath.Match(glob, name)
	return ok
}

// place is a folder as the rules see it.
type place struct {
	rel   string // the path below the root, with slashes: "" or "a/b"
	url   string // its URL path, percent-encoded: "/" or "/docs/a/b/"
	lower string // the URL path decoded and in lower case, if patterns need it

	abs    string   // its path on disk
	hidden []string // those of rules.paths that may be right here
}

// placeAt is the place with that path and URL.
func (r *rules) placeAt(rel, url string) place {
	p := place{rel: rel, url: url}
	if len(r.heads)+len(r.excludeHeads) > 0 {
		p.lower = strings.ToLower(page.Unescape(p.url))
	}
	if len(r.paths) > 0 {
		p.abs = strings.TrimSuffix(r.absRoot+separator+filepath.FromSlash(rel), separator)
	}
	for _, h := range r.paths {
		dir := strings.TrimSuffix(filepath.Dir(h), separator)
		if dir == p.abs || matches(dir, p.abs) {
			p.hidden = append(p.hidden, h)
		}
	}
	return p
}

func (r *rules) root() place { return r.placeAt("", r.at+"/") }

// child is the folder of that name in p; escaped is the name percent-encoded.
func (r *rules) child(p *place, name, escaped string) place {
	return r.placeAt(join(p.rel, name), p.url+escaped+"/")
}

// join is the path of what is at rel below root.
func join(root, rel string) string {
	switch {
	case rel == "":
		return root
	case root == "" || root == ".":
		return rel
	}
	return strings.TrimSuffix(root, "/") + "/" + rel
}

// hides reports whether file_server hides the file with a name in p, or everything in the folder,
// for which globs of whole paths do not count.
func (r *rules) hides(p *place, name string, isFolder bool) bool {
	if r.hidesName(name) {
		return true
	}
	return slices.ContainsFunc(p.hidden, func(h string) bool {
		full := p.abs + separator + name
		if isFolder {
			return h == full
		}
		return matches(h, full)
	})
}

// folder returns why the folder with a name in p is not entered, or listed.
func (r *rules) folder(p *place, name string) string {
	lower := p.lower + strings.ToLower(name) + "/"
	within := func(head string) bool { return strings.HasPrefix(head, lower) }
	above := func(head string) bool { return strings.HasPrefix(lower, head) }
	isNamed := slices.ContainsFunc(r.heads, within)
	isDependency := name == "node_modules" || name == "bower_components"
	mayHavePages := len(r.heads) == 0 || isNamed || slices.ContainsFunc(r.heads, above)
	switch {
	case name[0] == '.':
		return Dotfile
	case r.hides(p, name, true):
		return hidden
	case isDependency && !isNamed:
		return dependencyFolder
	case slices.ContainsFunc(r.excludeHeads, above):
		return excluded
	case !mayHavePages:
		return notIncluded
	}
	return listed
}

// file returns why the file with a name in p is not listed by its name and path, Exclude apart, or
// listed. escaped is the name percent-encoded.
func (r *rules) file(p *place, name, escaped string) string {
	switch {
	case name[0] == '.':
		return Dotfile
	case r.include == nil && !page.IsFile(name):
		return notIncluded // most files of many sites
	case r.include != nil && !r.include(p.url+escaped):
		return notIncluded
	case r.hides(p, name, false):
		return hidden
	}
	// An error page is a page only if it is named, not if a pattern happens to match it.
	why := NoPage(join(p.rel, name))
	if why == listed && slices.Contains(r.index, name) {
		why = NoPage(p.rel + "/")
	}
	if why != listed && r.exact != nil && r.exact(p.url+escaped) {
		return listed
	}
	return why
}

// excludes reports whether Exclude leaves out a file in p, escaped as in file: an index
// file, or one that is listed without ".html".
func (r *rules) excludes(p *place, escaped string, isIndex, isClean bool) bool {
	if r.exclude == nil {
		return false
	}
	url := p.url + escaped
	switch {
	case r.exclude(url):
		return true
	case isIndex:
		return r.exclude(p.url)
	case isClean:
		return r.exclude(strings.TrimSuffix(url, ".html"))
	}
	return false
}

// finds reports whether the scan finds a file or folder by its path below the root, which has no links.
func (r *rules) finds(rel string, isFolder bool) bool {
	p := r.root()
	for more := true; more; {
		var name string
		name, rel, more = strings.Cut(rel, "/")
		escaped := page.Escape(name)
		isFile := !more && !isFolder
		if isFile {
			isIndex := slices.Contains(r.index, name)
			isClean := r.clean && strings.HasSuffix(name, ".html")
			return r.file(&p, name, escaped) == listed && !r.excludes(&p, escaped, isIndex, isClean)
		}
		if r.folder(&p, name) != listed {
			return false
		}
		p = r.child(&p, name, escaped)
	}
	return isFolder
}

// ownershipName matches the names of files that prove to some service who owns the site.
var ownershipName = regexp.MustCompile(`(?i)^(?:` +
	`(?:google|naver|mywot|wmail_)[0-9a-f]{16,}\.html|` +
	`(?:yandex_|y_key_|mailru-verification)[0-9a-f]{8,}\.html|` +
	`pinterest-[0-9a-f]{5,}\.html|` +
	`(?:baidu_verify_|mailru-domain[\w-]{7})[\w-]+\.html|` +
	`loaderio-[0-9a-f]{16,}\.(?:html|txt)|` +
	`mj12_[0-9a-f]{16,}\.txt|` +
	`tiktok[\w-]{16,}\.txt|` +
	`ahrefs_[0-9a-f]{16,}|` +
	`(?:bing|livesearch)siteauth\.xml|` +
	`(?:sogousiteverification|shenma-site-verification|swisssign-check)\.txt|` +
	`(?:bytedanceverify|verifyforzoho)\.html)$`)

// errorPageName matches 404.html, 50x.html and their like, from 400 to 599.
var errorPageName = regexp.MustCompile(`(?i)^[45][0-9x]{2}\.(?:html|htm|xhtml|shtml|php)$`)

// errorPagePath matches the paths below the root of what generators write for such pages, as a folder or without an ending,
// and of pages that browsers get in place of others: at the root, or in the folder of a language.
var errorPagePath = regexp.MustCompile(`(?i)^(?:[a-z]{2}(?:[-_][a-z0-9]{2,8})?/)?` +
	`(?:(?:40[034]|50[0234x]|[45]xx|offline)(?:/|\.html)?|200\.html)$`)

// NoPage returns why a path below the root, such as 404.html or de/404/, is no page by its name, unless 'include' names it:
// it is an error page, or proves the site's ownership; "": it may be one.
func NoPage(path string) string {
	name := path[strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1:]
	if name == "" {
		return listed
	}
	// Only what begins so can match the first two expressions, and nothing of that the third one.
	if strings.IndexByte("245oO", name[0]) < 0 {
		if ownershipName.MatchString(name) {
			return ownershipFile
		}
		return listed
	}
	if errorPageName.MatchString(name) || errorPagePath.MatchString(path) {
		return errorPage
	}
	return listed
}
