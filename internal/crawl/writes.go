package crawl

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	lookAfter    = time.Second      // from a write to the look at what it has changed
	betweenLooks = 10 * time.Second // at least
	longestMute  = 10 * time.Minute // of writes that change nothing
	maxKinds     = 256              // of writes
	maxNamed     = 40               // URLs that writes name
	maxName      = 500              // bytes of a path or URL
)

// Write is a request by which somebody who is signed in may have saved something. Most save nothing: an editor's heartbeats
// and preferences, a shop's carts. Those with the same fields are of one kind, whatever digits are in the path.
type Write struct {
	Method, Path string // without its query
	Status       int
	ContentType  string // of the response
}

// Writes are the writes to a site, and when it is looked at because of them. They are safe for concurrent use; the zero value
// is ready.
type Writes struct {
	mu    sync.Mutex
	kinds map[Write]*writeKind
	count int        // since the last look
	next  Look       // because of these
	made  []madeLook // that began in the last hour
}

// writeKind is what is known of writes of a kind.
type writeKind struct {
	waits bool          // nobody has looked since the last one
	next  time.Time     // when the next look because of them may begin
	mute  time.Duration // between the last look and that one
}

// madeLook is a look that has begun.
type madeLook struct {
	at      time.Time
	kinds   []*writeKind // of the writes because of which it did
	writes  int          // since the look before
	changed bool         // other documents were served after it
}

// Note notes a write that has ended at a time, and URLs that it names. isFirst: no other one wants the look that it wants.
func (ws *Writes) Note(w Write, at time.Time, urls ...string) (isFirst bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	// A log tells of it later, perhaps after a look.
	if n := len(ws.made); n > 0 && at.Before(ws.made[n-1].at) {
		return false
	}
	ws.count++
	ws.next.Written = at.Unix()
	for _, url := range urls {
		isOfUse := url != "" && len(url) <= maxName && !slices.Contains(ws.next.Paths, url)
		if isOfUse {
			ws.next.Paths = append(ws.next.Paths, url)
		}
	}
	ws.next.Paths = ws.next.Paths[max(len(ws.next.Paths)-maxNamed, 0):]
	path, _, _ := strings.Cut(w.Path, "?")
	w.Path = strings.Map(dropDigit, path[:min(len(path), maxName)])
	w.ContentType, _, _ = strings.Cut(w.ContentType, ";") // which may have a boundary that is another one each time
	k := ws.kindOf(w)
	if k.waits {
		return false
	}
	k.waits = true
	k.next = latest(k.next, at.Add(lookAfter))
	return true
}

func dropDigit(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}

// kindOf returns what is known of writes of a kind. Of too many kinds, the one is forgotten that had no look for longest.
func (ws *Writes) kindOf(w Write) *writeKind {
	if k := ws.kinds[w]; k != nil {
		return k
	}
	if ws.kinds == nil {
		ws.kinds = make(map[Write]*writeKind)
	}
	if len(ws.kinds) == maxKinds {
		byNext := func(a, b Write) int { return ws.kinds[a].next.Compare(ws.kinds[b].next) }
		delete(ws.kinds, slices.MinFunc(slices.Collect(maps.Keys(ws.kinds)), byNext))
	}
	ws.kinds[w] = new(writeKind)
	return ws.kinds[w]
}

// Due returns when a look is due; zero: none is.
func (ws *Writes) Due() (due time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, k := range ws.kinds {
		if k.waits && (due.IsZero() || k.next.Before(due)) {
			due = k.next
		}
	}
	if len(ws.made) == 0 || due.IsZero() {
		return due
	}
	return latest(due, ws.made[len(ws.made)-1].at.Add(betweenLooks))
}

// Begin begins a look, with the URLs in place of paths; nil: none is due.
func (ws *Writes) Begin(now time.Time) *Look {
	due := ws.Due()
	if due.IsZero() || due.After(now) {
		return nil
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	made := madeLook{at: now, writes: ws.count}
	for w, k := range ws.kinds {
		if !k.waits || k.next.After(now) {
			continue
		}
		k.waits = false
		if w != (Write{}) { // of which another process has told, which mutes it itself
			k.mute = min(max(2*k.mute, betweenLooks), longestMute)
		}
		k.next = now.Add(k.mute)
		made.kinds = append(made.kinds, k)
	}
	isOld := func(l madeLook) bool { return now.Sub(l.at) > time.Hour }
	ws.made = append(slices.DeleteFunc(ws.made, isOld), made)
	look := ws.next
	look.Begun = now.Unix()
	ws.next = Look{}
	ws.count = 0
	return &look
}

// NoteChange notes that other documents are served than before: the last look was worth it.
func (ws *Writes) NoteChange(now time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.made) == 0 {
		return
	}
	last := &ws.made[len(ws.made)-1]
	if now.Sub(last.at) > time.Minute {
		return // it has another reason
	}
	last.changed = true
	for _, k := range last.kinds {
		k.mute = 0
		k.next = last.at
	}
}

// WriteCounts counts the writes of the last hour, the looks because of them, and those that have found a change.
type WriteCounts struct {
	Writes  int `json:"writes"`
	Looks   int `json:"looks"`
	Changes int `json:"changes"`
}

// Counts returns the counts.
func (ws *Writes) Counts(now time.Time) WriteCounts {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	all := WriteCounts{Writes: ws.count}
	for _, made := range ws.made {
		if now.Sub(made.at) > time.Hour {
			continue
		}
		all.Looks++
		all.Writes += made.writes
		if made.changed {
			all.Changes++
		}
	}
	return all
}

// latest returns the latest of some times.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
