package files

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// reference is what Scan should yield, in a slow and simple way: it asks of
// each path what a file server would be asked.
type reference struct {
	o                       Options
	root, realRoot          string
	include, exact, exclude func(string) bool
	own                     map[string]bool // folders and files that are found without a link, below realRoot
	seen                    []fs.FileInfo
	found                   []page.Page
}

// compile is a small path matcher: an asterisk at either end stands for anything.
func compile(patterns []string) func(string) bool {
	return func(p string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			p, pattern := strings.ToLower(page.Unescape(p)), strings.ToLower(pattern)
			head, atEnd := strings.CutSuffix(pattern, "*")
			tail, atStart := strings.CutPrefix(head, "*")
			switch {
			case atStart && atEnd:
				return strings.Contains(p, tail)
			case atStart:
				return strings.HasSuffix(p, tail)
			case atEnd:
				return strings.HasPrefix(p, head)
			}
			return p == pattern
		})
	}
}

func newReference(o Options) *reference {
	r := &reference{o: o, own: make(map[string]bool)}
	r.root, _ = filepath.Abs(o.Root)
	r.realRoot, _ = filepath.EvalSymlinks(r.root)
	include := o.Include
	if len(include) == 0 {
		include = []string{"*.html", "*.htm", "*.xhtml"}
	}
	exact := slices.DeleteFunc(slices.Clone(o.Include), func(p string) bool { return strings.ContainsAny(p, "*?[") })
	r.include, r.exact, r.exclude = compile(include), compile(exact), compile(o.Exclude)
	if o.Index == nil {
		r.o.Index = []string{"index.html", "index.txt"}
	}
	return r
}

func (r *reference) pages() []page.Page {
	_ = filepath.WalkDir(r.realRoot, func(full string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(r.realRoot, full)
		switch {
		case err != nil:
		case e.IsDir() && rel != "." && !r.entersFolder(rel, e.Name()):
			return filepath.SkipDir
		case e.IsDir(), r.lists(rel) && !r.mayExclude(rel):
			r.own[rel] = true
		}
		return nil
	})
	fi, _ := os.Stat(r.root)
	r.isNew(fi)
	r.walk("", false)
	return r.found
}

// isNew reports whether it was not called for that file before.
func (r *reference) isNew(fi fs.FileInfo) bool {
	known := slices.ContainsFunc(r.seen, func(other fs.FileInfo) bool { return os.SameFile(fi, other) })
	r.seen = append(r.seen, fi)
	return !known
}

// isOwn reports whether what a link leads to is found without it.
func (r *reference) isOwn(full string) bool {
	real, err := filepath.EvalSymlinks(full)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(r.realRoot, real)
	return err == nil && r.own[rel]
}

func (r *reference) url(rel string) string {
	return r.o.At + "/" + page.Escape(strings.TrimPrefix(rel, "./"))
}

// lists reports whether a file is listed as far as its name and path tell.
func (r *reference) lists(rel string) bool {
	name, url := filepath.Base(rel), r.url(rel)
	return name[0] != '.' && r.include(url) && !r.exclude(url) && !refHidden(filepath.Join(r.root, rel), r.o.Hide) &&
		(special(name) == listed || r.exact(url))
}

// mayExclude reports whether a pattern leaves out a file that it might be listed as.
func (r *reference) mayExclude(rel string) bool {
	stem, isHTML := strings.CutSuffix(r.url(rel), ".html")
	isIndex := slices.Contains(r.o.Index, filepath.Base(rel))
	return isIndex && r.exclude(r.url(filepath.Dir(rel))+"/") || !isIndex && isHTML && r.o.CleanURLs && r.exclude(stem)
}

func (r *reference) walk(rel string, linked bool) {
	dir := filepath.Join(r.root, rel)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	index := ""
	for _, name := range r.o.Index {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil || refHidden(filepath.Join(dir, name), r.o.Hide) {
			continue
		}
		if index = name; fi.IsDir() {
			index = ""
		}
		break
	}
	type item struct {
		e   fs.DirEntry
		fi  fs.FileInfo
		key string
	}
	var items []item
	for _, e := range entries {
		name, full := e.Name(), filepath.Join(dir, e.Name())
		fi, err := os.Stat(full)
		if name[0] == '.' || err != nil {
			continue
		}
		key := page.Escape(name)
		switch {
		case fi.IsDir():
			key += "/"
		case name == index:
			key = ""
		case r.o.CleanURLs && strings.HasSuffix(name, ".html"):
			stem, err := os.Stat(strings.TrimSuffix(full, ".html"))
			if err != nil || stem.IsDir() && !r.o.KeepBesideFolders {
				key = strings.TrimSuffix(key, ".html")
			}
		}
		items = append(items, item{e, fi, key})
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.key, b.key) })
	for _, i := range items {
		sub := strings.TrimPrefix(rel+"/"+i.e.Name(), "/")
		full := filepath.Join(r.root, sub)
		isLink := i.e.Type()&fs.ModeSymlink != 0
		if i.fi.IsDir() {
			if r.entersFolder(sub, i.e.Name()) && (!isLink || !r.isOwn(full)) && (!linked && !isLink || r.isNew(i.fi)) {
				r.walk(sub, linked || isLink)
			}
			continue
		}
		url := strings.TrimSuffix(r.url(sub), page.Escape(i.e.Name())) + i.key
		if !i.fi.Mode().IsRegular() || !r.lists(sub) || r.exclude(url) {
			continue
		}
		isFront := isLink && rel == "" && slices.Contains(r.o.Index, i.e.Name())
		if isLink && !isFront && r.isOwn(full) || !isFront && (linked || isLink) && !r.isNew(i.fi) {
			continue
		}
		p := page.Page{Path: url, LastMod: i.fi.ModTime().Unix()}
		if p.LastMod < oldest || p.LastMod > r.o.Now.Unix() {
			p.LastMod = 0
		}
		r.found = append(r.found, p)
	}
}

func (r *reference) entersFolder(rel, name string) bool {
	full := filepath.Join(r.root, rel)
	switch {
	case name[0] == '.', slices.ContainsFunc(r.o.Hide, func(h string) bool { return h == full }):
		return false // what is hidden in it has no other way in
	case slices.ContainsFunc(r.o.Hide, func(h string) bool { return !strings.Contains(h, separator) && matches(h, name) }):
		return false
	}
	lower := strings.ToLower(page.Unescape(r.o.At) + "/" + filepath.ToSlash(rel) + "/")
	isNeeded := func(p string) bool { return strings.HasPrefix(strings.ToLower(p), lower) }
	if name == "node_modules" || name == "bower_components" {
		return slices.ContainsFunc(r.o.Include, isNeeded)
	}
	return !slices.ContainsFunc(r.o.Exclude, func(p string) bool {
		head, ok := strings.CutSuffix(strings.ToLower(p), "*")
		return ok && !strings.Contains(head, "*") && strings.HasPrefix(lower, head)
	}) && (len(r.o.Include) == 0 || slices.ContainsFunc(r.o.Include, func(p string) bool {
		head, _, _ := strings.Cut(strings.ToLower(p), "*")
		return strings.HasPrefix(head, lower) || strings.HasPrefix(lower, head)
	}))
}

// refHidden is file_server's rule as Caddy 2.11 has it.
func refHidden(filename string, hide []string) bool {
	for _, h := range hide {
		if !strings.Contains(h, separator) {
			for _, c := range strings.Split(filename, separator) {
				if hidden, _ := filepath.Match(h, c); hidden {
					return true
				}
			}
		} else if after, ok := strings.CutPrefix(filename, h); ok && strings.HasPrefix(after, separator) {
			return true
		}
		if hidden, _ := filepath.Match(h, filename); hidden {
			return true
		}
	}
	return false
}
