package files

import (
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// maxPlaces bounds what is remembered of folders that links lead to.
const maxPlaces = 4096

// below is the path of something below the real root, relative to it.
func (s *scan) below(real string) (string, bool) {
	switch {
	case real == "" || s.realRoot == "":
		return "", false
	case real == s.realRoot:
		return "", true
	case s.realRoot == ".":
		return real, !strings.HasPrefix(real, "/")
	}
	return strings.CutPrefix(real, strings.TrimSuffix(s.realRoot, "/")+"/")
}

// placeOf is the folder at a path without links as the walk through the root
// comes by; nil if it does not.
func (s *scan) placeOf(real string) *place {
	rel, ok := s.below(real)
	if !ok {
		return nil
	}
	s.placesMu.Lock()
	defer s.placesMu.Unlock()
	return s.placeAt(rel)
}

func (s *scan) placeAt(rel string) *place {
	if p, ok := s.places[rel]; ok {
		return p
	}
	if s.places == nil || len(s.places) >= maxPlaces {
		root := s.rules.root()
		s.places = map[string]*place{"": &root}
		if rel == "" {
			return &root
		}
	}
	i := strings.LastIndexByte(rel, '/')
	parent, name := s.placeAt(rel[:max(i, 0)]), rel[i+1:]
	var p *place
	if parent != nil {
		escaped := page.Escape(name)
		if s.rules.folder(parent, name, escaped) == listed && s.tree.enterable(join(s.rootPath, rel)) {
			c := s.rules.child(parent, name, escaped)
			p = &c
		}
	}
	s.places[rel] = p
	return p
}

// listsReal reports whether the file at a path without links is listed by that
// path, as far as rules of names decide.
func (s *scan) listsReal(real string) bool {
	rel, ok := s.below(real)
	if !ok || rel == "" {
		return false
	}
	i := strings.LastIndexByte(real, '/')
	name := real[i+1:]
	dir := ""
	if k := strings.LastIndexByte(rel, '/'); k >= 0 {
		dir = rel[:k]
	}
	s.placesMu.Lock()
	p := s.placeAt(dir)
	s.placesMu.Unlock()
	if p == nil {
		return false
	}
	rules := s.rules
	url := p.url + page.Escape(name)
	if rules.file(p, name, url) != listed {
		return false
	}
	exists := func(name string) (kind, bool) {
		return s.tree.exists(join(s.rootPath, strings.TrimPrefix(dir+"/"+name, "/")))
	}
	isIndex := false
	if at := rules.indexOf(name); at >= 0 {
		isIndex = true
		for _, earlier := range rules.index[:at] {
			if _, ok := exists(earlier); ok && !rules.hidesFile(p, earlier) {
				isIndex = false
			}
		}
	}
	isClean := false
	if stem, ok := strings.CutSuffix(name, ".html"); ok && rules.clean && p.excluding {
		k, taken := exists(stem)
		isClean = !taken || k == kindFolder && !rules.keepBeside
	}
	return !rules.excludes(p, url, isIndex, isClean)
}

// identity is which folder f is, for comparison with one behind a link.
func (s *scan) identity(f *folder) fileID {
	if f.id != (fileID{}) || f.linked || s.realRoot == "" {
		return f.id
	}
	return fileID{path: join(s.realRoot, f.place.rel)}
}
