package files

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// These are the Options for names and paths. What they leave out is not requested; the response decides about all else.

// below returns the path below the root, with slashes, for one in the URL.
func (s *scan) below(url string) string { return page.Unescape(strings.TrimPrefix(url, s.top)) }

const separator = string(filepath.Separator)

// hides reports whether file_server hides a file, or everything in a folder, for which globs of paths do not count.
func (s *scan) hides(e *entry) bool {
	return slices.ContainsFunc(s.Hide, func(hidden string) bool {
		if !strings.Contains(hidden, separator) {
			return matches(hidden, e.name)
		}
		// The path is built only for the few names that may be hidden.
		if !e.isFolder && !matches(filepath.Base(hidden), e.name) {
			return false
		}
		full, _ := filepath.Abs(filepath.Join(s.Root, s.below(e.path)))
		return full == hidden || !e.isFolder && matches(hidden, full)
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

// judgeFolder returns why a folder is not entered, or listed.
func (s *scan) judgeFolder(e *entry) string {
	switch {
	case e.name[0] == '.':
		return Dotfile
	case e.name == "node_modules", e.name == "bower_components":
		return dependencyFolder
	case has(s.Exclude, e.path+"/*"):
		return excluded
	}
	return listed
}

// judgeFile returns why a file is not listed by its name and path, Exclude apart, or listed.
func (s *scan) judgeFile(e *entry) string {
	switch {
	case e.name[0] == '.':
		return Dotfile
	case !s.Includes(e.path):
		return notIncluded // most files of many sites
	}
	rel := strings.TrimPrefix(e.path, s.top)
	why := NoPage(rel)
	if why == listed && slices.Contains(s.index, e.name) {
		why = NoPage(path.Dir(rel))
	}
	// An error page is a page only if it is named, not if a pattern happens to match it.
	if why != listed && has(s.Include, e.path) {
		return listed
	}
	return why
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
func NoPage(rel string) string {
	name := path.Base(rel)
	// A site may have millions of files: most cannot be error pages by the first letter.
	mayBeError := strings.IndexByte("245oO", name[0]) >= 0
	switch {
	case mayBeError && (errorPageName.MatchString(name) || errorPagePath.MatchString(rel)):
		return errorPage
	case ownershipName.MatchString(name):
		return ownershipFile
	}
	return listed
}
