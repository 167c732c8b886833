package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// set is a set of names.
func set(names ...string) map[string]bool {
	all := make(map[string]bool)
	for _, name := range names {
		all[name] = true
	}
	return all
}

// TestLedger: what becomes of one object x, in a ledger whose clock is at 100 minutes.
func TestLedger(t *testing.T) {
	const now = 100 * time.Minute
	for name, test := range map[string]struct {
		is        entry // the zero one: it is not in the ledger
		base      bool  // the generation before names it
		next      bool  // the next one does
		isStored  bool  // and stores it
		passes    time.Duration
		want      entry
		admission admission
	}{
		"stored":                    {entry{}, false, true, true, 0, entry{unnamed, now}, admitted},
		"dropped":                   {entry{}, true, false, false, 0, entry{unnamed, now}, admitted},
		"dropped, hours later":      {entry{}, true, false, false, 5 * time.Hour, entry{unnamed, now + 5*time.Hour}, admitted},
		"kept":                      {entry{}, true, true, false, 0, entry{}, admitted},
		"kept, of a failed commit":  {entry{unnamed, now - 10*time.Minute}, true, true, false, 0, entry{}, admitted},
		"dropped again":             {entry{unnamed, now - 10*time.Minute}, true, false, false, 0, entry{unnamed, now}, admitted},
		"stored again":              {entry{unnamed, now - 10*time.Minute}, false, true, true, 0, entry{unnamed, now}, admitted},
		"unnamed":                   {entry{unnamed, now - 10*time.Minute}, false, false, false, time.Minute, entry{unnamed, now - 10*time.Minute}, admitted},
		"unnamed for long":          {entry{unnamed, now - keepFor}, false, false, false, 0, entry{condemned, now}, admitted},
		"by what is observed":       {entry{unnamed, now}, false, false, false, keepFor, entry{condemned, now + keepFor}, admitted},
		"to the minute":             {entry{unnamed, now}, false, false, false, keepFor + time.Second, entry{condemned, now + keepFor + time.Minute}, admitted},
		"just not yet":              {entry{unnamed, now}, false, false, false, keepFor - 1, entry{unnamed, now}, admitted},
		"nobody else can know":      {entry{unnamed, now}, false, true, true, keepFor, entry{unnamed, now + keepFor}, admitted},
		"condemned":                 {entry{condemned, now - time.Hour}, false, false, false, time.Hour, entry{condemned, now - time.Hour}, admitted},
		"condemned and needed":      {entry{condemned, now - time.Hour}, false, true, true, 0, entry{rescued, now}, rescues},
		"rescued":                   {entry{rescued, now}, false, true, true, graceFor - 1, entry{rescued, now}, postponed},
		"rescued for long":          {entry{rescued, now}, false, true, true, graceFor, entry{unnamed, now + graceFor}, admitted},
		"rescued, not needed again": {entry{rescued, now - keepFor}, false, false, false, 0, entry{condemned, now}, admitted},
	} {
		l := newLedger("site")
		l.Clock = now
		if test.is != (entry{}) {
			l.Entries["x"] = test.is
		}
		named := func(is bool) map[string]bool {
			if is {
				return set("x", "y")
			}
			return set("y")
		}
		var stored []string
		if test.isStored {
			stored = []string{"x"}
		}
		l.Clock += test.passes
		l.drop(named(test.base), named(test.next))
		a := l.admit(stored)
		l.condemn()
		if got := l.Entries["x"]; got != test.want || a != test.admission || len(l.Entries) > 1 {
			t.Errorf("%s: got %v, %v, want %v, %v; %v", name, got, a, test.want, test.admission, l.Entries)
		}
	}
}

// TestAdmissionOfSeveral: in whichever order they come, the ledger is stored if it rescues one of them.
func TestAdmissionOfSeveral(t *testing.T) {
	for _, order := range [][]string{{"new", "just rescued", "condemned"}, {"condemned", "just rescued", "new"}} {
		l := newLedger("site")
		l.Clock = 100 * time.Minute
		l.Entries["just rescued"] = l.entered(rescued)
		l.Entries["condemned"] = l.entered(condemned)
		if a := l.admit(order); a != rescues {
			t.Errorf("%q: got %v, want %v", order, a, rescues)
		}
	}
}

// TestLedgerDue: an object is deleted once it was condemned for a while, whichever node has observed that.
func TestLedgerDue(t *testing.T) {
	l := newLedger("site")
	l.Clock = 100 * time.Minute
	for name, e := range map[string]entry{
		"just condemned": {condemned, l.Clock}, "condemned": {condemned, l.Clock - time.Minute}, "long": {condemned, l.Clock - time.Hour},
		"named": {condemned, l.Clock - time.Hour}, "unnamed": {unnamed, 0}, "rescued": {rescued, 0},
	} {
		l.Entries[name] = e
	}
	for observed, want := range map[time.Duration][]string{
		0: {"long"}, time.Minute - 1: {"long"}, time.Minute: {"condemned", "long"}, graceFor: {"condemned", "just condemned", "long"},
	} {
		if got := slices.Sorted(slices.Values(l.deletable(set("named"), observed))); !slices.Equal(got, want) {
			t.Errorf("after %s: got %q, want %q", observed, got, want)
		}
	}
}

// TestLedgerRecall: what another node has overwritten is entered again, as new.
func TestLedgerRecall(t *testing.T) {
	own := newLedger("site")
	own.Clock = 10 * time.Minute
	own.Entries = map[string]entry{"lost": own.entered(unnamed), "there": own.entered(unnamed), "earlier": {unnamed, time.Minute}, "condemned": {condemned, own.Clock}}
	l := newLedger("site")
	l.Clock = 12 * time.Minute
	l.Entries["there"] = entry{unnamed, 11 * time.Minute}
	l.recall(own)
	want := map[string]entry{"lost": {unnamed, 12 * time.Minute}, "there": {unnamed, 11 * time.Minute}}
	if !maps.Equal(l.Entries, want) {
		t.Errorf("got %v, want %v", l.Entries, want)
	}
}

// full returns a ledger with so many entries, of all states, from each of 90 minutes.
func full(entries int) *ledger {
	l := newLedger("sitemap/example.com-0123456789abcdef")
	l.Generation = 1<<53 - 1
	l.Node = store.Hash(nil)
	l.Clock = 1000*24*time.Hour + 1
	l.Listed = l.Clock - time.Hour
	for i := range entries {
		l.Entries[store.Hash(fmt.Append(nil, i))] = entry{state(i % 3), (l.Clock - time.Duration(rand.IntN(90))*time.Minute).Truncate(time.Minute)}
	}
	return l
}

func TestLedgerSize(t *testing.T) {
	for entries, want := range map[int]int{0: 0, 1: 1, 200: 200, maxEntries: maxEntries, maxEntries + 1000: maxEntries} {
		l := full(entries)
		before := maps.Clone(l.Entries)
		data := l.encode()
		if len(data) > partSize {
			t.Errorf("%d entries: %d bytes", entries, len(data))
		}
		got, err := decodeLedger(data, l.Prefix)
		if err != nil || !reflect.DeepEqual(got, l) || len(got.Entries) != want {
			t.Errorf("%d entries: %v, %d left", entries, err, len(got.Entries))
		}
		// Those that are forgotten are found again, by listing the storage.
		if entries > want && (!got.isListDue(keepFor+time.Hour) || got.isListDue(0)) {
			t.Errorf("%d entries: listed at %s of %s", entries, got.Listed, got.Clock)
		}
		oldest := time.Duration(0)
		for name := range got.Entries {
			if got.Entries[name].State == unnamed {
				oldest = max(oldest, got.Entries[name].At)
			}
			delete(before, name)
		}
		for name, e := range before {
			if e.State != unnamed {
				t.Errorf("%s is forgotten, although it may be under deletion", name)
			}
			if e.At < oldest {
				t.Errorf("%s is forgotten, but not later ones", name)
			}
		}
	}
}

// TestLedgerOthers: what other versions, keys or sites have as a value is no ledger.
func TestLedgerOthers(t *testing.T) {
	l := full(3)
	good := l.encode()
	for name, data := range map[string][]byte{
		"nothing":      nil,
		"half of it":   good[:len(good)/2],
		"another site": func() []byte { other := full(3); other.Prefix += "0"; return other.encode() }(),
		"current":      encodeCurrent(current{Version: version, Generation: 1, Node: l.Node, Manifest: l.Node, Interval: 1}),
		"garbage":      []byte(`{"listed":"2026-11-22T00:00:00Z","objects":{"0123456789ab":true}}`),
	} {
		if got, err := decodeLedger(data, l.Prefix); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add(full(0).encode())
	f.Add(full(4).encode())
	f.Add([]byte(`{"version":1,"prefix":"sitemap/example.com-0123456789abcdef","clock":60000000000,"batches":[{"state":3,"at":-1,"objects":"AA"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decodeLedger(data, "sitemap/example.com-0123456789abcdef")
		if err != nil {
			return
		}
		for name, e := range l.Entries {
			if !hashPattern.MatchString(name) || e.At > l.Clock+time.Minute || e.At < 0 {
				t.Errorf("%q: %v at %s", name, e, l.Clock)
			}
		}
		again, err := decodeLedger(l.encode(), l.Prefix)
		if err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("got %+v, %v, want %+v", again, err, l)
		}
	})
}
