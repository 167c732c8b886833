package files

import (
	"slices"
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
		s.places = make(map[string]*place)
	}
	var p *place
	if rel == "" {
		root := s.rules.root()
		p = &root
	} else if parent, name := s.placeAbove(rel); parent != nil &&
		s.rules.folder(parent, name) == listed && s.tree.enterable(join(s.rootPath, rel)) {
		c := s.rules.child(parent, name, page.Escape(name))
		p = &c
	}
	s.places[rel] = p
	return p
}

// placeAbove is the folder that holds what is at rel, and its name there.
func (s *scan) placeAbove(rel string) (parent *place, name string) {
	i := strings.LastIndexByte(rel, '/')
	return s.placeAt(rel[:max(i, 0)]), rel[i+1:]
}

// listsReal reports whether the file at a path without links is listed by that
// path, as far as rules of names decide.
func (s *scan) listsReal(real string) bool {
	rel, ok := s.below(real)
	if !ok || rel == "" {
		return false
	}
	s.placesMu.Lock()
	p, name := s.placeAbove(rel)
	s.placesMu.Unlock()
	escaped, rules := page.Escape(name), s.rules
	if p == nil || rules.file(p, name, escaped) != listed {
		return false
	}
	if len(rules.exclude) == 0 {
		return true
	}
	exists := func(name string) (kind, bool) { return s.tree.exists(join(s.rootPath, join(p.rel, name))) }
	at := rules.indexOf(name)
	isIndex := at >= 0 && !slices.ContainsFunc(rules.index[:at], func(preferred string) bool {
		_, ok := exists(preferred)
		return ok && !rules.hidesFile(p, preferred)
	})
	isClean := false
	if stem, ok := strings.CutSuffix(name, ".html"); ok && rules.clean {
		k, taken := exists(stem)
		isClean = !taken || k == kindFolder && !rules.keepBeside
	}
	return !rules.excludes(p, escaped, isIndex, isClean)
}

// identity is which folder f is, for comparison with one behind a link.
func (s *scan) identity(f *folder) fileID {
	if f.id != (fileID{}) || f.linked || s.realRoot == "" {
		return f.id
	}
	return fileID{path: join(s.realRoot, f.place.rel)}
}
