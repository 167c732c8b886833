package files

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// rules are the Options for names and paths. What they leave out is not requested; the response decides about all else.
type rules struct {
	*Options
	index    []string               // names of index files, the preferred first
	include  func(path string) bool // nil: what has the ending of a page
	exclude  func(path string) bool // nil: nothing
	basePath string                 // the absolute path of the root, as hidden files are named
}

func newRules(o *Options, basePath string) *rules {
	r := &rules{Options: o, index: o.IndexNames(), basePath: basePath}
	if len(o.Include) > 0 {
		r.include = o.Compile(o.Include)
	}
	if len(o.Exclude) > 0 {
		r.exclude = o.Compile(o.Exclude)
	}
	return r
}

// place is a folder as the rules see it.
type place struct {
	rel string // the path below the root, with slashes: "" or "a/b"
	url string // its URL path, percent-encoded: "/" or "/docs/a/b/"
}

func (r *rules) top() place { return place{url: r.At + "/"} }

// child is the folder of that name in p.
func (p *place) child(name string) place {
	return place{rel: path.Join(p.rel, name), url: p.url + page.Escape(name) + "/"}
}

const separator = string(filepath.Separator)

// hides reports whether file_server hides a file, or everything in a folder, for which globs of paths do not count.
func (r *rules) hides(p *place, name string, isFolder bool) bool {
	return slices.ContainsFunc(r.Hide, func(hidden string) bool {
		if !strings.Contains(hidden, separator) {
			return matches(hidden, name)
		}
		// The path is built only for the few names that may be hidden.
		if !isFolder && !matches(filepath.Base(hidden), name) {
			return false
		}
		full := filepath.Join(r.basePath, p.rel, name)
		return full == hidden && isFolder || matches(hidden, full) && !isFolder
	})
}

func matches(glob, name string) bool {
	ok, _ := filepath.Match(glob, name)
	return ok
}

// has reports whether one of the patterns is a path itself.
func has(patterns []string, path string) bool {
	decoded := page.Unescape(path)
	return slices.ContainsFunc(patterns, func(pattern string) bool { return strings.EqualFold(pattern, decoded) })
}

// folder returns why the folder with a name in p is not entered, or listed.
func (r *rules) folder(p *place, name string) string {
	isNamed := func(pattern string) bool { return strings.Contains(pattern, "/"+name+"/") }
	isDependency := name == "node_modules" || name == "bower_components"
	switch {
	case name[0] == '.':
		return Dotfile
	case r.hides(p, name, true):
		return hidden
	case isDependency && !slices.ContainsFunc(r.Include, isNamed):
		return dependencyFolder
	case has(r.Exclude, p.child(name).url+"*"):
		return excluded
	}
	return listed
}

// file returns why the file with a name in p is not listed by its name and path, Exclude apart, or
// listed. escaped is the name percent-encoded.
func (r *rules) file(p *place, name, escaped string) string {
	switch {
	case name[0] == '.':
		return Dotfile
	case r.hides(p, name, false):
		return hidden
	case r.include == nil && !page.IsFile(name):
		return notIncluded // most files of many sites
	case r.include != nil && !r.include(p.url+escaped):
		return notIncluded
	}
	why := noPage(p.rel, name)
	if why == listed && slices.Contains(r.index, name) {
		why = NoPage(p.rel + "/")
	}
	// An error page is a page only if it is named, not if a pattern happens to match it.
	if why != listed && has(r.Include, p.url+escaped) {
		return listed
	}
	return why
}

// finds reports whether a scan comes to a path below the root without links.
func (r *rules) finds(rel string, isFolder bool) bool {
	if rel == "." {
		return isFolder
	}
	p := r.top()
	for name := range strings.SplitSeq(rel, "/") {
		if r.folder(&p, name) != listed {
			return false
		}
		p = p.child(name)
	}
	return isFolder || page.IsFile(rel)
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
	return noPage(strings.TrimSuffix(path[:len(path)-len(name)], "/"), name)
}

// noPage is [NoPage] for a name in a folder. It builds the path only for the few names that may be those of error pages, as a
// site may have millions of files.
func noPage(folder, name string) string {
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
	if errorPageName.MatchString(name) || errorPagePath.MatchString(strings.TrimPrefix(folder+"/"+name, "/")) {
		return errorPage
	}
	return listed
}
