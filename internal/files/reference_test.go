package files

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// reference is what Scan should yield, in a slow and simple way: it asks of
// each path what a file server would be asked.
type reference struct {
	o        Options
	root     string // absolute
	realRoot string
	include  page.Patterns
	exact    page.Patterns
	exclude  page.Patterns
	entered  map[string]int
	found    []refPage
}

type refPage struct {
	page.Page
	rel    string // path below the root
	real   string
	linked bool
	fi     os.FileInfo
}

func newReference(o Options) *reference {
	r := &reference{o: o, entered: map[string]int{}}
	r.root, _ = filepath.Abs(o.Root)
	r.realRoot, _ = filepath.EvalSymlinks(r.root)
	include := o.Include
	if len(include) == 0 {
		include = []string{"*.html", "*.htm", "*.xhtml"}
	}
	r.include, _ = page.CompilePatterns(include)
	var exact []string
	for _, p := range o.Include {
		if !strings.ContainsAny(p, "*?[") {
			exact = append(exact, p)
		}
	}
	r.exact, _ = page.CompilePatterns(exact)
	r.exclude, _ = page.CompilePatterns(o.Exclude)
	if o.Index == nil {
		r.o.Index = []string{"index.html", "index.txt"}
	}
	return r
}

func (r *reference) pages() []page.Page {
	r.walk("", r.realRoot, false, nil)
	slices.SortFunc(r.found, func(a, b refPage) int { return cmp.Compare(a.Path, b.Path) })
	byReal := map[string]bool{}
	for _, p := range r.found {
		if !p.linked {
			byReal[p.real] = true
		}
	}
	var out []page.Page
	var seen []os.FileInfo
	for _, p := range r.found {
		if p.linked && p.Path != r.o.At+"/" {
			if byReal[p.real] || slices.ContainsFunc(seen, func(fi os.FileInfo) bool { return os.SameFile(fi, p.fi) }) {
				continue
			}
			seen = append(seen, p.fi)
		}
		out = append(out, p.Page)
	}
	return out
}

func (r *reference) url(rel string) string { return r.o.At + "/" + page.Escape(rel) }

func (r *reference) walk(rel, real string, linked bool, above []string) {
	if linked {
		if slices.Contains(above, real) {
			return
		}
		if r.entered[real]++; r.entered[real] > maxEntered {
			return
		}
	}
	above = append(slices.Clip(above), real)
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
	slices.SortFunc(entries, func(a, b os.DirEntry) int {
		key := func(e os.DirEntry) string {
			if fi, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && fi.IsDir() {
				return page.Escape(e.Name()) + "/"
			}
			return page.Escape(e.Name())
		}
		return cmp.Compare(key(a), key(b))
	})
	for _, e := range entries {
		name := e.Name()
		sub := strings.TrimPrefix(rel+"/"+name, "/")
		full := filepath.Join(r.root, sub)
		if name[0] == '.' {
			continue
		}
		fi, err := os.Stat(full)
		if err != nil {
			continue
		}
		isLink := e.Type()&os.ModeSymlink != 0
		realSub := filepath.Join(real, name)
		if isLink {
			realSub, _ = filepath.EvalSymlinks(full)
		}
		if fi.IsDir() {
			if r.entersFolder(sub, name) {
				r.walk(sub, realSub, linked || isLink, above)
			}
			continue
		}
		url := r.url(sub)
		if !fi.Mode().IsRegular() || fi.Size() == 0 && r.o.Now.Sub(fi.ModTime()).Abs() > beingWritten*time.Second || !r.include.Match(url) || r.exclude.Match(url) ||
			refHidden(full, r.o.Hide) || special(name) != listed && !r.exact.Match(url) {
			continue
		}
		if name == index {
			url = r.o.At + "/"
			if rel != "" {
				url = r.url(rel) + "/"
			}
		} else if stem, ok := strings.CutSuffix(full, ".html"); ok && r.o.CleanURLs {
			if fi, err := os.Stat(stem); err != nil || fi.IsDir() && !r.o.KeepBesideFolders {
				url = strings.TrimSuffix(url, ".html")
			}
		}
		if r.exclude.Match(url) {
			continue
		}
		var in info
		in.fill(fi)
		p := page.Page{Path: url, LastMod: fi.ModTime().Unix(), Version: in.version}
		if p.LastMod < oldest || p.LastMod > r.o.Now.Unix() {
			p.LastMod = 0
		}
		r.found = append(r.found, refPage{p, sub, realSub, linked || isLink, fi})
	}
}

func (r *reference) entersFolder(rel, name string) bool {
	// A folder whose contents are hidden is left out with them.
	if name != "node_modules" && name != "bower_components" {
		return true
	}
	return slices.ContainsFunc(r.o.Include, func(p string) bool {
		return strings.HasPrefix(strings.ToLower(p), strings.ToLower(r.o.At+"/"+rel+"/"))
	})
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
