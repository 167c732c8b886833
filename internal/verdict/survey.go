package verdict

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// Survey tells what a page's verdict takes from all others. Records are added twice:
// once each by [Survey.Add], then, if [Survey.Again] says so, by [Survey.AddAgain].
type Survey struct {
	// RespectCanonical says that a page which names another is left out.
	RespectCanonical bool

	// OmitOrphans leaves out what no page links to.
	OmitOrphans bool

	// Forbidden reports whether robots.txt keeps crawlers from a path. Nil: from
	// none.
	Forbidden func(path string) bool

	// Linked reports whether another page links to a path. Nil: the records' flags
	// say it.
	Linked func(path string) bool

	// Trusting lists pages although nothing of their folder was asked for.
	Trusting bool

	Pages     int // records
	Listed    int // of them, the last time
	Suspects  int // listed ones whose last ask says that they have turned bad
	Unasked   int
	Unwilling Examples // whose pages name another site's, or want no index

	dates    dates
	keys     []uint64
	groups   map[uint64]member
	targets  map[uint64]target
	folders  map[uint64]folderState
	lastName string
	last     uint64
}

// Examples counts, and keeps the first few.
type Examples struct {
	Count int
	First []string
}

const maxExamples = 3

// Add counts one more.
func (e *Examples) Add(path string) {
	if e.Count++; len(e.First) < maxExamples {
		e.First = append(e.First, strings.Clone(path))
	}
}

type member struct {
	path uint64
	rank uint8
}

// target is what is known of a page that another names as its canonical.
type target struct {
	state     uint8
	redirects uint64 // hash of the path that it leads to
}

const (
	targetMissing uint8 = iota
	targetUnknown
	targetGood
	targetRedirects
	targetBad
	targetCanonical // it names another page itself, redirects says which
)

type folderState uint8

const (
	folderAsked folderState = 1 << iota
	folderRefuses
)

// Hash is the hash of a path that surveys tell pages by.
func Hash(path string) uint64 { return xxhash.Sum64String(path) }

// Folder is the path of the folder that a page lies in, which for a folder's own
// page is the one above it.
func Folder(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path[:strings.LastIndexByte(path[:max(len(path)-1, 1)], '/')+1]
}

// Add takes a record the first time.
func (s *Survey) Add(r *state.Record) {
	s.Pages++
	s.dates.add(r)
	if r.Flags&FlagListed != 0 {
		s.Listed++
		if r.Suspect != 0 {
			s.Suspects++
		}
	}
	if own := ofOwn(r, true); own == NoIndex || own == CanonicalAway {
		s.Unwilling.Add(r.Page.Path)
	}
	s.addFolder(r)
	own := ofOwn(r, s.RespectCanonical)
	if s.RespectCanonical && own == CanonicalHere && r.Canonical != "" {
		if s.targets == nil {
			s.targets = make(map[uint64]target)
		}
		s.targets[Hash(r.Canonical)] = target{}
	}
	if own.Listed() && r.Fingerprint != 0 {
		s.keys = append(s.keys, duplicateKey(r))
	}
}

func (s *Survey) addFolder(r *state.Record) {
	if r.Asked == 0 {
		s.Unasked++
		return
	}
	name := Folder(r.Page.Path)
	if name != s.lastName || s.folders == nil {
		s.lastName, s.last = name, Hash(name)
	}
	if s.folders == nil {
		s.folders = make(map[uint64]folderState)
	}
	was := s.folders[s.last]
	is := was | folderAsked
	if OfFolder(Reason(r.Answer)) {
		is |= folderRefuses
	}
	if is != was {
		s.folders[s.last] = is
	}
}

// OfFolder reports whether what a page answered may be what all of its folder do.
func OfFolder(r Reason) bool { return r == Redirects || r == Gone || r == Refused || r == Failing }

// IsTarget reports whether a page names this one in its stead.
func (s *Survey) IsTarget(path string) bool {
	_, ok := s.targets[Hash(path)]
	return ok
}

// Misses reports whether a page names another of the site that is not known of.
func (s *Survey) Misses(r *state.Record) bool {
	t, ok := s.targets[Hash(r.Canonical)]
	return ok && t.state == targetMissing
}

// ofOwn is the verdict that a page has by itself.
func ofOwn(r *state.Record, respectCanonical bool) Reason {
	for _, reason := range [...]Reason{Reason(r.Answer), Reason(r.Content)} {
		if (reason == CanonicalAway || reason == CanonicalHere) && !respectCanonical {
			continue
		}
		if !reason.Listed() {
			return reason
		}
	}
	if r.Answer == uint8(Good) {
		return Good
	}
	return Unknown
}

// Again reports whether the records are to be added once more.
func (s *Survey) Again() bool {
	slices.Sort(s.keys)
	for i := 1; i < len(s.keys); i++ {
		if s.keys[i] == s.keys[i-1] {
			if s.groups == nil {
				s.groups = make(map[uint64]member)
			}
			s.groups[s.keys[i]] = member{}
		}
	}
	s.keys = nil
	return len(s.groups)+len(s.targets) > 0
}

// AddAgain takes a record the second time.
func (s *Survey) AddAgain(r *state.Record) {
	own := ofOwn(r, s.RespectCanonical)
	hash := Hash(r.Page.Path)
	_, isTarget := s.targets[hash]
	if isTarget {
		t := target{state: targetBad}
		switch {
		case own.Listed() && r.Asked != 0:
			t.state = targetGood
		case own.Listed():
			t.state = targetUnknown
		case own == Redirects && r.Canonical != "":
			t = target{targetRedirects, Hash(r.Canonical)}
		case own == CanonicalHere && r.Canonical != "":
			t = target{targetCanonical, Hash(r.Canonical)}
		}
		s.targets[hash] = t
	}
	if len(s.groups) == 0 || !own.Listed() || r.Fingerprint == 0 {
		return
	}
	key := duplicateKey(r)
	best, ok := s.groups[key]
	if !ok {
		return
	}
	rank := uint8(1)
	switch {
	case isTarget:
		rank = 3
	case s.linked(r):
		rank = 2
	}
	if rank > best.rank {
		s.groups[key] = member{hash, rank}
	}
}

func (s *Survey) linked(r *state.Record) bool {
	if s.Linked != nil {
		return s.Linked(r.Page.Path)
	}
	return r.Flags&FlagLinked != 0
}

// Decisions are what all records say of their dates.
func (s *Survey) Decisions() Decisions { return s.dates.decide() }

// Verdict is the verdict on a page, once all were added.
func (s *Survey) Verdict(r *state.Record) Reason {
	own := ofOwn(r, s.RespectCanonical)
	switch {
	case s.Forbidden != nil && s.Forbidden(r.Page.Path):
		return Forbidden
	case own == CanonicalHere:
		if s.gives(r) {
			return CanonicalHere
		}
		own = Good
	case !own.Listed():
		return own
	}
	if r.Asked == 0 && r.Flags&FlagGuarded == 0 && s.waits(r) {
		return Waiting
	}
	hash := Hash(r.Page.Path)
	if len(s.groups) > 0 && r.Fingerprint != 0 {
		if best, ok := s.groups[duplicateKey(r)]; ok && best.rank > 0 && best.path != hash {
			return Duplicate
		}
	}
	if s.OmitOrphans && r.Page.Path != "/" && r.Flags&FlagRead != 0 && !s.linked(r) {
		return Orphan
	}
	return own
}

// gives reports whether a page that names another of the site gives way to it: not
// where the other leads back, or answers nothing that could be listed, or is not
// known yet. Of two that name each other the first stays.
func (s *Survey) gives(r *state.Record) bool {
	t := s.targets[Hash(r.Canonical)]
	switch t.state {
	case targetGood:
		return true
	case targetCanonical:
		return t.redirects != Hash(r.Page.Path) || r.Canonical < r.Page.Path
	}
	return false
}

func (s *Survey) waits(r *state.Record) bool {
	if s.Trusting {
		return false
	}
	name := Folder(r.Page.Path)
	if name != s.lastName || s.last == 0 {
		s.lastName, s.last = name, Hash(name)
	}
	return s.folders[s.last] != folderAsked
}

// duplicateKey is equal for pages with the same text whose paths differ in case, a
// slash at the end, an index name or ".html" alone.
func duplicateKey(r *state.Record) uint64 {
	path, query, _ := strings.Cut(r.Page.Path, "?")
	var buf [256]byte
	b := buf[:0]
	for i := 0; i < len(path); i++ {
		c := path[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	b = b[:len(trimName(string(b)))]
	b = append(append(b, '?'), query...)
	// Multiplied, so that equal bits of the two do not cancel out.
	return xxhash.Sum64(b)*0x9e3779b97f4a7c15 ^ r.Fingerprint
}

// trimName cuts off what does not tell pages apart.
func trimName(path string) string {
	for _, suffix := range [...]string{".html", ".htm", ".xhtml", ".php"} {
		if rest, ok := strings.CutSuffix(path, suffix); ok {
			path = rest
			break
		}
	}
	for _, name := range [...]string{"/index", "/default"} {
		if rest, ok := strings.CutSuffix(path, name); ok {
			path = rest
			break
		}
	}
	return strings.TrimRight(path, "/")
}
