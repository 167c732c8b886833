package fleet

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	ledgerKey  = "ledger"
	keepFor    = 59 * time.Minute // what no generation names any more: with graceFor, it is over an hour
	graceFor   = 2 * settleFor    // between two steps of which another node must have seen the first
	maxEntries = 9_000            // so that the ledger is smaller than a part of an object
)

// ledger is the value that says which objects the storage may have besides those that the newest generation names: a
// storage need not be able to list them. Whoever commits writes it before it stores anything. As there is no
// compare-and-swap, two that commit at once may overwrite each other's: that may lose an entry, never an object that
// is needed.
//
// Nothing in it is a time of day. Its clock is the sum of what nodes have observed, each by its own monotonic clock: it
// is slower than the time, never faster.
type ledger struct {
	Prefix     string           // of the site: a storage may return another key's value
	Generation uint64           // before whose commit it was written,
	Node       string           // and by whom
	Clock      time.Duration    // when it was written
	Listed     time.Duration    // by Clock, when the storage was listed last
	Entries    map[string]entry // by the name of the object
}

// entry is what becomes of an object.
type entry struct {
	State state
	At    time.Duration // by the ledger's clock, since when it is in the state: to the minute, rounded up
}

// state is a step on the way of an object out of the storage. Before it is deleted, the ledger says so for a while. A
// commit that needs it again takes that back, and waits for a while before it stores the object: so, whichever ledger
// is overwritten, no deletion that has begun meets it.
type state uint8

const (
	unnamed   state = iota // about to be stored, or dropped
	condemned              // nobody has named it for keepFor
	rescued                // a commit needs it, although it was condemned
)

func newLedger(prefix string) *ledger {
	return &ledger{Prefix: prefix, Listed: -day, Entries: make(map[string]entry)}
}

func (l *ledger) clone() *ledger {
	c := *l
	c.Entries = maps.Clone(l.Entries)
	return &c
}

// entered returns the entry of an object that enters a state now. Its time is rounded up to a minute, so that many are
// equal and the ledger is small.
func (l *ledger) entered(s state) entry {
	return entry{s, (l.Clock + time.Minute - 1).Truncate(time.Minute)}
}

// drop enters all objects of base that next does not name.
func (l *ledger) drop(base, next map[string]bool) {
	for name := range base {
		if next[name] {
			delete(l.Entries, name) // it is entered again by the commit that drops it
		} else {
			l.Entries[name] = l.entered(unnamed)
		}
	}
}

// admission says whether objects may be stored. Of several objects, the greatest value counts.
type admission uint8

const (
	admitted  admission = iota
	postponed           // some were just rescued: a deletion may still be under way

	// Some were condemned: the commit fails, but its ledger is to be stored, as it rescues them.
	rescues
)

// admit enters objects that are about to be stored.
func (l *ledger) admit(names []string) (a admission) {
	for _, name := range names {
		e, isThere := l.Entries[name]
		isCondemned := isThere && e.State == condemned
		if isCondemned {
			l.Entries[name] = l.entered(rescued)
			a = rescues
			continue
		}
		// Whoever has read the ledger before the object was rescued may still be deleting it.
		isJustRescued := isThere && e.State == rescued && l.Clock-e.At < graceFor
		if isJustRescued {
			a = max(a, postponed)
			continue
		}
		l.Entries[name] = l.entered(unnamed)
	}
	return a
}

// condemn condemns what was not named for long enough.
func (l *ledger) condemn() {
	for name, e := range l.Entries {
		if e.State != condemned && l.Clock-e.At >= keepFor {
			l.Entries[name] = l.entered(condemned)
		}
	}
}

// restart has all objects wait anew, as when a node that does not know of the ledger has committed.
func (l *ledger) restart() {
	for name := range l.Entries {
		l.Entries[name] = l.entered(unnamed)
	}
}

// deletable returns the objects that may be deleted once this node has observed the ledger for so long, but for those that
// are named.
func (l *ledger) deletable(named map[string]bool, observed time.Duration) (names []string) {
	for name, e := range l.Entries {
		if e.State == condemned && l.Clock+observed-e.At >= graceFor && !named[name] {
			names = append(names, name)
		}
	}
	return names
}

// isListDue reports whether the storage is to be listed, for what no ledger knows.
func (l *ledger) isListDue(observed time.Duration) bool { return l.Clock+observed-l.Listed >= day }

// forget removes the entries of objects that were deleted, unless they are others by now.
func (l *ledger) forget(deleted map[string]entry) {
	for name, e := range deleted {
		if l.Entries[name] == e {
			delete(l.Entries, name)
		}
	}
}

// find enters objects that the storage has, and that nothing names. They leave room for others: what is forgotten of
// them is found again.
func (l *ledger) find(names []string) {
	for _, name := range names {
		_, isThere := l.Entries[name]
		if !isThere && len(l.Entries) < maxEntries/2 {
			l.Entries[name] = l.entered(unnamed)
		}
	}
}

// recall enters what this node has entered in its last ledger, if another node has overwritten it.
func (l *ledger) recall(own *ledger) {
	for name, e := range own.Entries {
		_, isThere := l.Entries[name]
		if e == own.entered(unnamed) && !isThere {
			l.Entries[name] = l.entered(unnamed)
		}
	}
}

// bound forgets what is too much, the latest first: those before them are deleted soon. The storage is listed for it
// then. What is condemned or rescued is forgotten last: without its entry, a commit stores it while it may be under
// deletion.
func (l *ledger) bound() {
	if len(l.Entries) <= maxEntries {
		return
	}
	names := slices.SortedFunc(maps.Keys(l.Entries), func(a, b string) int {
		x := l.Entries[a]
		y := l.Entries[b]
		if x.isProtecting() != y.isProtecting() {
			if x.isProtecting() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x.At, y.At), strings.Compare(a, b))
	})
	for _, name := range names[maxEntries:] {
		delete(l.Entries, name)
	}
	l.Listed = min(l.Listed, l.Clock-day+keepFor)
}

// isProtecting reports whether a commit that needs the object waits because of the entry.
func (e entry) isProtecting() bool { return e.State != unnamed }

// storedLedger is a ledger as JSON.
type storedLedger struct {
	Version    int           `json:"version"`
	Prefix     string        `json:"prefix"`
	Generation uint64        `json:"generation"`
	Node       string        `json:"node"`
	Clock      time.Duration `json:"clock"`
	Listed     time.Duration `json:"listed"`
	Batches    []storedBatch `json:"batches,omitempty"`
}

// storedBatch has the entries that are equal.
type storedBatch struct {
	State   state  `json:"state"`
	At      int64  `json:"at"`      // minutes
	Objects string `json:"objects"` // their names, one after the other, in base64
}

func (l *ledger) encode() []byte {
	l.bound()
	stored := storedLedger{version, l.Prefix, l.Generation, l.Node, l.Clock, l.Listed, nil}
	batches := make(map[entry][]byte)
	for _, name := range slices.Sorted(maps.Keys(l.Entries)) {
		binary, _ := hex.DecodeString(name) // which was checked
		batches[l.Entries[name]] = append(batches[l.Entries[name]], binary...)
	}
	for e, names := range batches {
		stored.Batches = append(stored.Batches, storedBatch{
			State:   e.State,
			At:      int64(e.At / time.Minute),
			Objects: base64.RawStdEncoding.EncodeToString(names),
		})
	}
	slices.SortFunc(stored.Batches, func(a, b storedBatch) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.State, b.State))
	})
	data, _ := json.Marshal(stored) // which has no field that fails
	return data
}

const nameSize = 16 // bytes of an object's name

var errMalformed = errors.New("no ledger of this site")

// decodeLedger undoes encode. The error says that there is none, or none that this version has written.
func decodeLedger(data []byte, prefix string) (*ledger, error) {
	var stored storedLedger
	err := json.Unmarshal(data, &stored)
	if err != nil {
		return nil, err
	}
	isOdd := stored.Clock < 0 || stored.Listed > stored.Clock || stored.Listed < -day
	if stored.Version != version || stored.Prefix != prefix || isOdd {
		return nil, errMalformed
	}
	l := newLedger(prefix)
	l.Generation = stored.Generation
	l.Node = stored.Node
	l.Clock = stored.Clock
	l.Listed = stored.Listed
	for _, b := range stored.Batches {
		names, err := base64.RawStdEncoding.DecodeString(b.Objects)
		if err != nil || len(names)%nameSize != 0 {
			return nil, errMalformed
		}
		isTime := b.At >= 0 && b.At <= int64(l.Clock/time.Minute)+1 // it was rounded up
		if !isTime || b.State > rescued {
			return nil, errMalformed
		}
		for name := range slices.Chunk(names, nameSize) {
			l.Entries[hex.EncodeToString(name)] = entry{b.State, time.Duration(b.At) * time.Minute}
		}
	}
	return l, nil
}
