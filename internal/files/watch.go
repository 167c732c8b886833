package files

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// WatchState is how far the events of a root can be relied on.
type WatchState uint8

// What is told of changes below a root.
const (
	Unwatched  WatchState = iota // no scan has watched the root yet, or the last one failed
	Incomplete                   // something below the root is not watched
	Whole                        // every change is told, and none was since the last scan
	Changed                      // a change was told since the last scan
	Mistrusted                   // a scan has found a change that no event told
)

var stateNames = [...]string{
	Unwatched:  "off",
	Incomplete: "incomplete",
	Whole:      "whole",
	Changed:    "changed",
	Mistrusted: "mistrusted",
}

func (s WatchState) String() string { return stateNames[s] }

// WatchStatus is what a [Watcher] knows of its root.
type WatchStatus struct {
	State   WatchState
	Root    string    // as the operating system knows it; "": none was scanned
	Reason  string    // why the state is Incomplete or Mistrusted
	Folders int       // that are watched
	Changed time.Time // when the state became Changed
}

// Watcher tells when the pages below a root may have changed, so that it need not be scanned in between. Each [Scan] with
// the Watcher in its options has the kernel tell of all folders anew, before it reads them, and then forgets what the scan
// before had: so no paths are kept, and a folder that moves needs no care.
//
// It is safe for concurrent use. One scan at a time may have it, and one goroutine may be in Wait.
type Watcher struct {
	budget *budget
	pace   pace
	notify func() (notifier, error)
	names  atomic.Pointer[[]string] // see SetNames

	mu         sync.Mutex
	state      WatchState
	root       string
	reason     string
	in         *instance     // nil: nothing is watched
	renewed    chan struct{} // closed when in is another one
	isReleased bool          // Wait has to return because of TakeOver
	isClosed   bool          // scans do not watch any more
	retry      time.Time     // until then, scans do not try to watch
	untold     []string      // roots that are mistrusted
}

// NewWatcher returns a Watcher that watches nothing until a scan has it.
func NewWatcher() *Watcher {
	return &Watcher{
		budget:  &process,
		pace:    usualPace,
		notify:  newNotifier,
		renewed: make(chan struct{}),
	}
}

// pace is how often a Watcher looks, and how long it waits.
type pace struct {
	burst time.Duration // after the first event, for those that come with it
	quiet time.Duration // without an event that concerns pages, until a change is told; events are read as often
	most  time.Duration // for quiet
	root  time.Duration // between two looks at which folder the root is
	late  time.Duration // for the event of a change that a scan has found already
	retry time.Duration // until it is tried again to watch a root that cannot be
}

var usualPace = pace{
	burst: 100 * time.Millisecond,
	quiet: time.Second,
	most:  10 * time.Second,
	root:  2 * time.Second,
	late:  time.Second,
	retry: time.Hour,
}

// budget bounds what all Watchers of a process take of the kernel. An instance that takes the place of another one is
// counted in its stead, although both exist for the time of a scan: hence half of what a user may have.
type budget struct {
	maxWatches int64 // of folders, besides what the system allows
	maxRoots   int64

	watches, roots atomic.Int64
}

var process = budget{maxWatches: 100_000, maxRoots: 32}

// take counts one more, if there is room.
func take(n *atomic.Int64, most int64) bool {
	if n.Add(1) <= most {
		return true
	}
	n.Add(-1)
	return false
}

// notifier receives what the kernel tells of folders.
type notifier interface {
	// most returns how many folders the notifiers of a process may watch, as far as the system allows.
	most() int64

	// add has it told of changes in a folder. With follow, the path may be a link.
	add(path string, follow bool) error

	// foreign returns the name of the file system of a folder, if that may change without any event; "": every change is told.
	foreign(path string) string

	// await waits until there are events, at most until a time or until interrupt is called: isOver. The error is that of a
	// notifier that is closed, or broken.
	await(ctx context.Context, until time.Time) (isOver bool, err error)
	interrupt()

	// drain reads the events that there are.
	drain(note func(event))

	close()
}

// event is what happened in a folder.
type event struct {
	kind     eventKind
	name     string // of the entry that it concerns; "": of the folder itself
	isFolder bool   // that entry is a folder, not a link to one
}

type eventKind uint8

const (
	altered eventKind = iota // a file was written, or its attributes have changed
	named                    // a name was created, removed or renamed
	lost                     // events were lost, or the folder with its file system
)

// instance is what one scan has the kernel tell of. When the next scan has come to its end, it is closed.
type instance struct {
	notifier
	scope   string // digest of the options of the scan
	root    string
	rootID  fileID
	folders int64
	digest  uint64 // of all pages and their versions
	counts  func(event) bool

	told time.Time // when Wait returned because of it. Under Watcher.mu

	mu      sync.Mutex
	heard   bool // an event that counts came since the last look
	changed bool // one came at all
	stirred bool // an event came that may have changed anything
}

// look reads the events that there are, and reports whether one of them counts.
func (in *instance) look() (heard bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drain(func(e event) {
		if in.heard { // a burst is read quickly
			return
		}
		in.heard = in.counts(e)
		in.changed = in.changed || in.heard
		// A name that is no page's may be another link to a page, which changes that page's version.
		in.stirred = in.stirred || in.heard || e.kind != altered
	})
	heard = in.heard
	in.heard = false
	return heard
}

// isUntold reports whether nothing was told that may have changed a page, even if its event comes a little later than what
// a scan has seen of it: a write is told after it has changed the file's times.
func (in *instance) isUntold(ctx context.Context, late time.Duration) bool {
	const step = 20 * time.Millisecond
	end := time.Now().Add(late)
	for {
		in.look()
		in.mu.Lock()
		stirred := in.stirred
		in.mu.Unlock()
		if stirred || ctx.Err() != nil {
			return false
		}
		if !time.Now().Before(end) {
			return true
		}
		wait.Within(step, ctx.Done())
	}
}

// SetNames has changes of files with these names count, too, besides those of pages.
func (w *Watcher) SetNames(names ...string) { w.names.Store(&names) }

// Status returns what is known of the root.
func (w *Watcher) Status() WatchStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := WatchStatus{State: w.state, Root: w.root, Reason: w.reason}
	if w.in != nil {
		s.Folders = int(w.in.folders)
		s.Changed = w.in.told
	}
	return s
}

// Wait waits until something may have changed since the last scan, and then was quiet for a second, or changed for ten. It
// tells of each scan's successor once: what changes before the next scan is found by that. False: ctx has ended.
func (w *Watcher) Wait(ctx context.Context) bool {
	for ctx.Err() == nil {
		w.mu.Lock()
		in := w.in
		renewed := w.renewed
		isReleased := w.isReleased
		w.isReleased = false
		isTold := in == nil || !in.told.IsZero()
		w.mu.Unlock()
		if isReleased {
			return true
		}
		if isTold {
			select {
			case <-renewed:
			case <-ctx.Done():
			}
			continue
		}
		if in.wait(ctx, w) && w.tell(in) {
			return true
		}
	}
	return false
}

// tell notes that a change was told, unless a scan has come to its end meanwhile.
func (w *Watcher) tell(in *instance) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.in != in {
		return false
	}
	in.told = time.Now()
	w.state = Changed
	return true
}

// isWatching reports whether the Watcher still has the instance.
func (w *Watcher) isWatching(in *instance) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.in == in
}

// hasChanged reports whether an event that counts came, also if another Watcher has looked.
func (in *instance) hasChanged() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.changed
}

// wait waits until something has changed and was quiet since. False: ctx has ended, or the Watcher has another instance.
func (in *instance) wait(ctx context.Context, w *Watcher) bool {
	defer context.AfterFunc(ctx, in.interrupt)()
	p := w.pace
	next := time.Now().Add(p.root)
	for {
		if !w.isWatching(in) {
			return false
		}
		if in.hasChanged() {
			return in.settle(ctx, p)
		}
		isOver, err := in.await(ctx, next)
		if ctx.Err() != nil || errors.Is(err, os.ErrClosed) {
			return false
		}
		if err != nil {
			return true // nothing will be told any more: the next scan begins anew
		}
		// Also while events come all the time, as where a log is in the root: else a link to another release was not
		// noticed until the hourly refresh.
		if !time.Now().Before(next) {
			if in.isElsewhere(ctx) {
				return true
			}
			next = time.Now().Add(p.root)
		}
		if isOver {
			continue
		}
		wait.Within(p.burst, ctx.Done())
		if !in.look() {
			// What came is no page's. A log that is written all the time is looked at once a second.
			wait.Within(p.quiet-p.burst, ctx.Done())
		}
	}
}

// settle waits until a change is over.
func (in *instance) settle(ctx context.Context, p pace) bool {
	end := time.Now().Add(p.most)
	for {
		wait.Within(min(p.quiet, time.Until(end)), ctx.Done())
		if ctx.Err() != nil {
			return false
		}
		if !in.look() || !time.Now().Before(end) {
			return true
		}
	}
}

// isElsewhere reports whether the root's path leads to another folder than before: a link to it was changed, or it was made
// anew, or something was mounted over it. Of none of these the folder itself tells.
func (in *instance) isElsewhere(ctx context.Context) bool {
	var id fileID
	// The path to the root may lead through a disk that hangs.
	hasEnded := wait.OrLeave(ctx, 0, func() { id = idOf(in.root) })
	return hasEnded && id != in.rootID
}

// idOf identifies the folder at a path; the zero value: there is none.
func idOf(path string) fileID {
	fi, err := os.Stat(path)
	if err != nil {
		return fileID{}
	}
	return identity(fi)
}

// TakeOver has the Watcher, which is new, go on with what another one watches and knows. That one watches nothing until
// its next scan: its Wait returns, since changes are not told any more.
func (w *Watcher) TakeOver(before *Watcher) {
	before.mu.Lock()
	defer before.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = before.state
	w.root = before.root
	w.reason = before.reason
	w.retry = before.retry
	w.untold = slices.Clone(before.untold)
	w.in = before.in
	if before.in == nil {
		return
	}
	before.in = nil // so that it is not closed
	before.isReleased = true
	before.replace(nil, Unwatched, "")
	w.in.interrupt()
}

// Close stops watching for good. Wait does not return because of it, but when its context ends.
func (w *Watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isClosed = true
	w.replace(nil, Unwatched, "")
}

// replace puts an instance, or nil, in the place of the one before. Under mu.
func (w *Watcher) replace(in *instance, state WatchState, reason string) {
	before := w.in
	w.in = in
	w.state = state
	w.reason = reason
	close(w.renewed)
	w.renewed = make(chan struct{})
	if in != nil {
		w.budget.watches.Add(in.folders)
		w.budget.roots.Add(1)
	}
	if before != nil {
		before.close()
		w.budget.watches.Add(-before.folders)
		w.budget.roots.Add(-1)
	}
}

// counting returns which events may change what a scan with these options yields, as far as their names tell, or which are
// of files with other names. An event has no path, so patterns are not looked at.
func counting(o *Options, others *atomic.Pointer[[]string]) func(event) bool {
	isIndex := make(map[string]bool)
	for _, name := range o.IndexNames() {
		isIndex[name] = true
	}
	isCustom := len(o.Include) > 0
	return func(e event) bool {
		if e.kind == lost || e.name == "" {
			return true
		}
		names := others.Load()
		if names != nil && slices.Contains(*names, e.name) {
			return true
		}
		if e.name[0] == '.' {
			return false
		}
		if e.isFolder || isCustom || isIndex[e.name] || page.IsFile(e.name) {
			return true
		}
		// A link to a folder may have any name, and about.html may be listed as /about only while there is no file "about".
		return e.kind == named && !isAsset(e.name)
	}
}

// assetSuffixes are those of files that come and go in many roots, and are neither pages nor links to folders.
var assetSuffixes = map[string]bool{
	"avif": true, "gif": true, "ico": true, "jpeg": true, "jpg": true, "png": true, "svg": true, "webp": true,
	"mp3": true, "mp4": true, "webm": true,
	"css": true, "js": true, "map": true, "mjs": true, "woff": true, "woff2": true,
	"json": true, "pdf": true, "txt": true, "xml": true,
	"br": true, "gz": true, "zip": true, "zst": true,
	"bak": true, "lock": true, "log": true, "part": true, "pid": true, "swp": true, "tmp": true,

	// SQLite makes and removes a journal with each transaction (https://www.sqlite.org/tempfiles.html).
	"db": true, "db-journal": true, "db-shm": true, "db-wal": true,
	"sqlite": true, "sqlite-journal": true, "sqlite-shm": true, "sqlite-wal": true,
	"sqlite3": true, "sqlite3-journal": true, "sqlite3-shm": true, "sqlite3-wal": true,
}

func isAsset(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	return dot >= 0 && assetSuffixes[strings.ToLower(name[dot+1:])]
}
