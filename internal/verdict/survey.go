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

	Pages     int // records
	Listed    int // of them, the last time
	Suspects  int // listed ones whose last ask says that they have turned bad
	Unasked   int
	Unwilling Examples // whose pages name another site's, or want no index

	dates    dates
	keys     []uint64 // of pages that may be duplicates, then of those that are
	stay     []member // of those with each of keys
	named    []uint64 // hashes of the pages that others name, sorted by Again
	targets  []targetState
	names    map[uint64]uint64 // what those of them name that do so in turn
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
	path uint64 // hash
	rank uint8
}

// targetState is what is known of a page that another names as its canonical.
type targetState uint8

const (
	targetMissing targetState = iota
	targetBad                 // nothing that would be listed, as far as is known
	targetGood
	targetNames // it names another page itself
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
		if r.Suspect != 0 && (s.RespectCanonical || !mayBeListed(Reason(r.Suspect))) {
			s.Suspects++
		}
	}
	own := ofOwn(r, true)
	if own == NoIndex || own == CanonicalAway {
		s.Unwilling.Add(r.Page.Path)
	}
	s.addFolder(r)
	if !s.RespectCanonical {
		own = ofOwn(r, false)
	} else if r.Canonical != "" && (own == CanonicalHere || Reason(r.Suspect) == CanonicalHere) {
		s.named = append(s.named, Hash(r.Canonical))
	}
	if mayBeListed(own) && own != CanonicalAway && r.Fingerprint != 0 {
		s.keys = append(s.keys, duplicateKey(r))
	}
}

func (s *Survey) addFolder(r *state.Record) {
	if r.Asked == 0 {
		s.Unasked++
		return
	}
	name := Folder(r.Page.Path)
	if name != s.lastName {
		s.lastName, s.last = name, Hash(name)
	}
	if s.folders == nil {
		s.folders = make(map[uint64]folderState)
	}
	was := s.folders[s.last]
	is := was | folderAsked
	// A link that leads nowhere says nothing of the pages beside it.
	if r.Flags&FlagDiscovered == 0 && (isSilent(r) || OfFolder(Reason(r.Answer))) {
		is |= folderRefuses
	}
	if is != was {
		s.folders[s.last] = is
	}
}

// OfFolder reports whether what a page answered may be what all of its folder do.
func OfFolder(r Reason) bool { return r == Redirects || r == Gone || r == Refused || r == Failing }

// IsTarget reports whether a page names this one in its stead, once Again was called.
func (s *Survey) IsTarget(path string) bool {
	if len(s.named) == 0 {
		return false
	}
	_, ok := find(s.named, Hash(path))
	return ok
}

// Misses reports whether a page names another of the site that is not known of, once
// all were added.
func (s *Survey) Misses(r *state.Record) bool {
	if ofOwn(r, s.RespectCanonical) != CanonicalHere || r.Canonical == "" {
		return false
	}
	i, ok := find(s.named, Hash(r.Canonical))
	return ok && s.targets[i] == targetMissing
}

// ofOwn is the verdict that a page has by itself: that it names another page only
// where nothing else speaks against it.
func ofOwn(r *state.Record, respectCanonical bool) Reason {
	answer, content := Reason(r.Answer), Reason(r.Content)
	switch {
	case !mayBeListed(answer):
		return answer
	case !mayBeListed(content):
		return content
	case respectCanonical && (answer == CanonicalAway || content == CanonicalAway):
		return CanonicalAway
	case respectCanonical && (answer == CanonicalHere || content == CanonicalHere):
		return CanonicalHere
	case answer == Unknown:
		return Unknown
	}
	return Good
}

// Again reports whether the records are to be added once more.
func (s *Survey) Again() bool {
	slices.Sort(s.named)
	s.named = slices.Compact(s.named)
	s.targets = make([]targetState, len(s.named))
	slices.Sort(s.keys)
	n := 0
	for i := 1; i < len(s.keys); i++ {
		if s.keys[i] == s.keys[i-1] && (n == 0 || s.keys[n-1] != s.keys[i]) {
			s.keys[n] = s.keys[i]
			n++
		}
	}
	s.keys = slices.Clone(s.keys[:n])
	s.stay = make([]member, n)
	return n+len(s.named) > 0
}

// Ranks of pages that are duplicates of each other.
const (
	rankNone      uint8 = iota
	rankGives           // may give way to another page
	rankAny             // could be listed
	rankLinked          // a page links to it
	rankCanonical       // a page names it in its own stead
)

// AddAgain takes a record the second time.
func (s *Survey) AddAgain(r *state.Record) {
	own := ofOwn(r, s.RespectCanonical)
	var isTarget bool
	if len(s.named) > 0 {
		var i int
		hash := Hash(r.Page.Path)
		if i, isTarget = find(s.named, hash); isTarget {
			s.targets[i] = s.asTarget(r, own, hash)
		}
	}
	if len(s.keys) == 0 || own != CanonicalHere && !own.Listed() || r.Fingerprint == 0 {
		return
	}
	i, ok := find(s.keys, duplicateKey(r))
	if !ok || s.forbids(r) || isGuarded(r) || s.waits(r) {
		return // one that is left out itself makes no other a duplicate
	}
	rank := rankAny
	switch {
	case own == CanonicalHere:
		rank = rankGives
	case isTarget:
		rank = rankCanonical
	case s.linked(r):
		rank = rankLinked
	}
	if rank > s.stay[i].rank {
		s.stay[i] = member{Hash(r.Page.Path), rank}
	}
}

func (s *Survey) asTarget(r *state.Record, own Reason, hash uint64) targetState {
	switch {
	case r.Asked == 0, s.forbids(r), isGuarded(r):
	case own == Good:
		return targetGood
	case own == CanonicalHere && r.Answer != uint8(Unknown) && r.Canonical != "":
		if s.names == nil {
			s.names = make(map[uint64]uint64)
		}
		s.names[hash] = Hash(r.Canonical)
		return targetNames
	}
	return targetBad
}

func (s *Survey) forbids(r *state.Record) bool {
	return s.Forbidden != nil && s.Forbidden(r.Page.Path)
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
	case s.forbids(r):
		return Forbidden
	case own == CanonicalHere:
		if s.gives(r) {
			return CanonicalHere
		}
		if own = Good; Reason(r.Answer) == Unknown {
			own = Unknown
		}
	case !own.Listed():
		return own
	}
	if isGuarded(r) {
		return Guarded
	}
	if s.waits(r) {
		return Waiting
	}
	if _, ok := s.Original(r); ok {
		return Duplicate
	}
	if s.OmitOrphans && r.Page.Path != "/" && r.Flags&FlagRead != 0 && r.Flags&FlagLinked == 0 && !s.IsTarget(r.Page.Path) {
		return Orphan
	}
	return own
}

// Original is the hash of the path of the page that stays where a page is the same as
// others; false where it is that one itself, or none. All were added.
func (s *Survey) Original(r *state.Record) (hash uint64, ok bool) {
	if len(s.keys) == 0 || r.Fingerprint == 0 {
		return 0, false
	}
	i, ok := find(s.keys, duplicateKey(r))
	if !ok || s.stay[i].rank == rankNone || s.stay[i].path == Hash(r.Page.Path) {
		return 0, false
	}
	return s.stay[i].path, true
}

// maxRing is the most pages that may name each other in a ring, one of which stays.
const maxRing = 32

// gives reports whether a page that names another of the site gives way to it: not
// where the other answers nothing that could be listed, a redirect for one, or is not
// known yet. Of two that name each other the first stays; of more, any one.
func (s *Survey) gives(r *state.Record) bool {
	if r.Canonical == "" {
		return false
	}
	next := Hash(r.Canonical)
	i, ok := find(s.named, next)
	if !ok {
		return false
	}
	if s.targets[i] != targetNames {
		return s.targets[i] == targetGood
	}
	own, least := Hash(r.Page.Path), next
	for n := 2; n <= maxRing; n++ {
		if next, ok = s.names[next]; !ok {
			return true // it ends at one that is good, or that stays
		}
		if next != own {
			least = min(least, next)
			continue
		}
		if n == 2 {
			return r.Canonical < r.Page.Path
		}
		return least < own
	}
	return true
}

// isSilent reports whether a page was asked for and has never answered.
func isSilent(r *state.Record) bool { return r.Asked != 0 && Reason(r.Answer) == Unknown }

// isGuarded reports whether a page is never asked for, so that nobody knows whether a
// stranger gets it, and was found, or named by a page, all the same: what a list names is
// the user's word.
func isGuarded(r *state.Record) bool {
	return r.Flags&FlagGuarded != 0 && (r.Page.Version != 0 || r.Flags&(FlagTarget|FlagDiscovered) != 0)
}

// waits reports whether a page waits for its own answer: no other one's of its folder
// speaks for it, or it was asked for before it was ever listed, and gave none.
func (s *Survey) waits(r *state.Record) bool {
	switch {
	case r.Flags&FlagGuarded != 0:
		return false
	case r.Asked != 0:
		return isSilent(r) && r.Flags&FlagListed == 0
	case r.Flags&FlagDiscovered != 0:
		return true
	}
	name := Folder(r.Page.Path)
	if name != s.lastName {
		s.lastName, s.last = name, Hash(name)
	}
	return s.folders[s.last] != folderAsked
}

// duplicateKey is equal for pages with the same text whose paths differ in case, a
// slash at the end, an index name or ".html" alone.
func duplicateKey(r *state.Record) uint64 {
	path, query, _ := strings.Cut(r.Page.Path, "?")
	key := foldedHash(trimName(path))
	if query != "" {
		key = key*0x9e3779b97f4a7c15 + xxhash.Sum64String(query)
	}
	// Multiplied, so that equal bits of the two do not cancel out.
	return key*0x9e3779b97f4a7c15 ^ r.Fingerprint
}

// foldedHash is the hash of a path in lower case.
func foldedHash(path string) uint64 {
	upper := 0
	for upper < len(path) && (path[upper] < 'A' || path[upper] > 'Z') {
		upper++
	}
	if upper == len(path) {
		return xxhash.Sum64String(path)
	}
	var digest xxhash.Digest
	digest.Reset()
	var block [256]byte
	for path != "" {
		n := copy(block[:], path)
		for i, c := range block[:n] {
			if 'A' <= c && c <= 'Z' {
				block[i] = c + 'a' - 'A'
			}
		}
		_, _ = digest.Write(block[:n])
		path = path[n:]
	}
	return digest.Sum64()
}

// trimName cuts off what does not tell pages apart.
func trimName(path string) string {
	path = cutSuffix(path, ".html", ".htm", ".xhtml", ".php")
	path = cutSuffix(path, "/index", "/default")
	return strings.TrimRight(path, "/")
}

// cutSuffix cuts the first of some suffixes off that a path has, in any case.
func cutSuffix(path string, suffixes ...string) string {
	for _, suffix := range suffixes {
		if n := len(path) - len(suffix); n >= 0 && path[n] == suffix[0] && strings.EqualFold(path[n:], suffix) {
			return path[:n]
		}
	}
	return path
}
