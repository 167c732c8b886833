package indexing

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// model decides the same as a selection, in the plainest way and without hashes.
type model struct {
	rules   Options
	records []store.Record
}

func (m *model) find(path string) *store.Record {
	for i := range m.records {
		if m.records[i].Path == path {
			return &m.records[i]
		}
	}
	return nil
}

func (m *model) isContender(r *store.Record) bool {
	own := m.rules.ownStatus(r)
	return own == Indexable || own == CanonicalOther
}

// names returns the contender that a contender names as its canonical, if that counts.
func (m *model) names(r *store.Record) *store.Record {
	if m.rules.ownStatus(r) != CanonicalOther {
		return nil
	}
	if other := m.find(r.Canonical); other != nil && m.isContender(other) && m.isTarget(other) {
		return other
	}
	return nil
}

func (m *model) isTarget(r *store.Record) bool {
	return slices.ContainsFunc(m.records, func(o store.Record) bool {
		return m.rules.ownStatus(&o) == CanonicalOther && o.Canonical == r.Path &&
			(o.Flags&store.Target != 0 || m.rules.isLinked(&o) || !m.rules.needsLinks(&o))
	})
}

// givesWay says whether a page gives way to its canonical. Of two that name each other, the first stays.
func (m *model) givesWay(r *store.Record) bool {
	other := m.names(r)
	if other == nil {
		return false
	}
	if m.rules.ownStatus(other) == CanonicalOther && other.Canonical == r.Path {
		return other.Path < r.Path
	}
	return true
}

func (m *model) isSame(a, b *store.Record) bool {
	plain := func(path string) string {
		path = strings.TrimSuffix(strings.ToLower(path), "?page=1")
		path = strings.TrimSuffix(strings.TrimSuffix(path, ".html"), "/index")
		return strings.TrimSuffix(path, "/")
	}
	return a.Text != 0 && a.Text == b.Text && plain(a.Path) == plain(b.Path)
}

func (m *model) status(r *store.Record) Status {
	if !m.isContender(r) {
		return m.rules.ownStatus(r)
	}
	if m.givesWay(r) {
		return CanonicalOther
	}
	var group []*store.Record
	isLinked := m.rules.isLinked(r)
	for i := range m.records {
		if o := &m.records[i]; m.isContender(o) && !m.givesWay(o) && (o.Path == r.Path || m.isSame(o, r)) {
			group = append(group, o)
		}
	}
	order := func(o *store.Record) int {
		isAlias := strings.HasSuffix(o.Path, "/index.html") || strings.HasSuffix(o.Path, "?page=1")
		switch {
		case m.isTarget(o):
			return 0
		case m.rules.isLinked(o) && !isAlias:
			return 1
		case m.rules.needsLinks(o) && !m.rules.isLinked(o):
			return 3
		}
		return 2
	}
	slices.SortStableFunc(group, func(a, b *store.Record) int { return order(a) - order(b) })
	if group[0].Path == r.Path {
		isLinked = slices.ContainsFunc(group, func(o *store.Record) bool { return m.rules.isLinked(o) })
	} else if order(group[0]) < 3 {
		return Duplicate
	}
	if !isLinked && !m.isTarget(r) && (m.rules.needsLinks(r) || m.rules.OmitOrphans && !m.rules.isSeed(r)) {
		return NoLinks
	}
	return Indexable
}

func TestAgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	variants := []string{"/%c", "/%c/", "/%c.html", "/%c/index.html", "/%C", "/%c?page=1", "/_%c"}
	flags := []string{"", "", "", "linked", "expired", "404", "301", "pending", "noindex", "failing", "failing listed", "discovered", "discovered linked", "discovered target", "file"}
	seen := make(map[Status]int)
	rounds := 2000
	if os.Getenv("SITEMAP_LONG") != "" {
		rounds *= 3
	}
	for round := range rounds {
		var paths []string
		for _, c := range "pqr" {
			for _, v := range variants {
				if random.IntN(2) == 0 {
					v = strings.ReplaceAll(v, "%C", strings.ToUpper(string(c)))
					paths = append(paths, strings.ReplaceAll(v, "%c", string(c)))
				}
			}
		}
		if len(paths) == 0 {
			continue
		}
		var records []store.Record
		for _, path := range paths {
			spec := fmt.Sprintf("%s =%d %s", path, random.IntN(2), flags[random.IntN(len(flags))])
			// Of a ring of three, none would stay: canonicals lead at most to the next one and back.
			if i := slices.Index(paths, path); random.IntN(3) == 0 && i > 0 {
				spec += " ->" + paths[i-1]
			} else if random.IntN(9) == 0 && i+1 < len(paths) {
				spec += " ->" + paths[i+1]
			}
			records = append(records, rec(spec))
		}
		slices.SortFunc(records, func(a, b store.Record) int { return strings.Compare(a.Path, b.Path) })
		m := &model{rules(), records}
		m.rules.IgnoreCanonicals, m.rules.OmitOrphans = random.IntN(4) == 0, random.IntN(3) == 0
		s, err := Select(t.Context(), generation(t, 3, records), m.rules)
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			r, got := &records[i], s.states[i].status
			if want := m.status(r); got != want {
				t.Fatalf("round %d: %+v: got %v, want %v; canonicals ignored: %t, orphans %t\n%v", round, *r, got, want, m.rules.IgnoreCanonicals, m.rules.OmitOrphans, records)
			}
			seen[got]++
		}
	}
	for _, status := range []Status{Indexable, Duplicate, CanonicalOther, NoLinks, ServerError} {
		if seen[status] < rounds/6 {
			t.Errorf("%v was seen %d times", status, seen[status])
		}
	}
}
