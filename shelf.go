package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// library is where the shelves of all sites stand.
type library struct {
	folder string
	disk   *state.Fallback // nil: nothing is kept on disk
	logger *zap.Logger
	said   atomic.Bool
	owners map[string]siteID // of prefixes; under the App's mu
}

// open finds out where the library is. It touches nothing outside of memory.
func (l *library) open(a *App) {
	l.logger = a.logger
	l.folder, _ = expandState(a.State, caddy.NewReplacer()) // Validate has refused the others
	switch l.folder {
	case noState:
		l.folder = ""
		return
	case "":
		l.folder = caddy.AppDataDir()
		if !filepath.IsAbs(l.folder) {
			l.folder = ""
			l.warn(errors.New("there is no home folder: set 'state' of the sitemap app, or XDG_DATA_HOME"))
			return
		}
		l.folder = filepath.Join(l.folder, "sitemap")
	}
	l.disk = a.store.disk(l.folder)
}

// shelf returns the shelf of a site. What only visitors named has no place on disk.
func (l *library) shelf(a *App, s *site) (*shelf, string) {
	prefix := l.own(s)
	onDisk := l.disk != nil && !s.visitors
	key := prefix
	if onDisk {
		key = l.folder + "\x00" + prefix
	}
	return a.store.shelf(a.generation, key, func() *shelf {
		if onDisk {
			return newShelf(l.disk, prefix)
		}
		sh := newShelf(state.NewMemory(), prefix)
		sh.visitors = s.visitors
		return sh
	}), key
}

// unusedFor is how long what is known of a site is kept that no longer is one.
// A site that is there writes anew more often, since no page goes unasked for so long.
const unusedFor = 400 * 24 * time.Hour

// own is the site's prefix, another than that of every other site: two handlers may
// have the same base URL.
func (l *library) own(s *site) string {
	if l.owners == nil {
		l.owners = make(map[string]siteID)
	}
	first := s.statePrefix()
	prefix := first
	for n := 2; ; n++ {
		if owner, taken := l.owners[prefix]; !taken || owner == s.id || s.visitors {
			break
		}
		prefix = first + "-" + strconv.Itoa(n)
	}
	if !s.visitors {
		l.owners[prefix] = s.id
	}
	return prefix
}

// expire erases what is kept of sites that are no more.
func (l *library) expire(ctx context.Context, used map[string]bool, now time.Time) {
	if l.disk == nil {
		return
	}
	disk := &certmagic.FileStorage{Path: l.folder}
	prefixes, err := disk.List(ctx, "", false)
	if err != nil {
		return // it is not there yet, or cannot be read, which is said elsewhere
	}
	for _, prefix := range prefixes {
		if used[prefix] || ctx.Err() != nil {
			continue
		}
		kept, err := disk.Stat(ctx, state.ManifestKey(prefix))
		if err != nil || now.Sub(kept.Modified) < unusedFor {
			continue
		}
		err = state.Erase(ctx, disk, prefix)
		_ = disk.Delete(ctx, prefix)
		l.logger.Info("erased what was known of the pages of a site that is no more", zap.String("folder", prefix), zap.Error(err))
	}
}

// check warns if what is to be kept on disk cannot be.
func (l *library) check() {
	if l.disk == nil {
		return
	}
	if err := l.disk.Err(); err != nil {
		l.warn(err)
	}
}

func (l *library) warn(err error) {
	if !l.said.Swap(true) {
		l.logger.Warn("what is known of pages cannot be kept on disk: after a restart the sitemap is not there at once, and all pages are read and asked for again", zap.Error(err))
	}
}

// shelf is where what is known of a site's pages is kept. Like what is held, it is
// handed on from one configuration to the next.
type shelf struct {
	storage  state.Storage
	prefix   string
	visitors bool // only visitors named the site's host

	readers readers
	paths   paths                      // that visitors and links showed
	rests   rests                      // of upstreams
	rules   atomic.Pointer[crawlRules] // the last that robots.txt told
	making  chan struct{}              // holds one, which whoever makes the next book takes out
	book    atomic.Pointer[state.Book] // nil: not opened yet
	changed atomic.Bool                // what is known has changed since pages were listed
	missed  map[string]struct{}        // pages that others name, and that are not known of; the maker's

	asking [kindsOfAnswerer]chan struct{} // each holds one, which whoever asks in the background takes out
}

func newShelf(storage state.Storage, prefix string) *shelf {
	sh := &shelf{storage: storage, prefix: prefix, making: make(chan struct{}, 1)}
	sh.making <- struct{}{}
	for kind := range sh.asking {
		sh.asking[kind] = make(chan struct{}, 1)
		sh.asking[kind] <- struct{}{}
	}
	return sh
}

// askAlone runs what asks for pages in the background once nobody else does, such as the
// configuration before this one on its way out: it knows answers that are not written
// down yet, and one upstream is not to be asked at the pace of two. It does nothing if
// ctx ends first.
func (sh *shelf) askAlone(ctx context.Context, kind kindOfAnswerer, run func()) {
	select {
	case <-sh.asking[kind]:
	case <-ctx.Done():
		return
	}
	defer func() { sh.asking[kind] <- struct{}{} }()
	run()
}

// lock waits until nobody else makes the next book; the error is ctx's.
func (sh *shelf) lock(ctx context.Context) error {
	select {
	case <-sh.making:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryLock is lock without waiting.
func (sh *shelf) tryLock() bool {
	select {
	case <-sh.making:
		return true
	default:
		return false
	}
}

func (sh *shelf) unlock() { sh.making <- struct{}{} }

// open reads the book, if that was not done yet. Under the lock. An error that wraps
// state.ErrUnusable comes once: the book is empty then.
func (sh *shelf) open(ctx context.Context) error {
	if sh.book.Load() != nil {
		return nil
	}
	book, err := state.Open(ctx, sh.storage, sh.prefix)
	if book == nil {
		return fmt.Errorf("opening the state: %w", err)
	}
	sh.book.Store(book)
	sh.changed.Store(true) // what was learnt last may not be listed yet
	return err
}

// after returns the records of the next piece that has any behind a path.
func (sh *shelf) after(ctx context.Context, path string) ([]state.Record, error) {
	for {
		book := sh.book.Load()
		if book == nil {
			return nil, nil
		}
		records, err := book.After(ctx, path)
		if err == nil || !errors.Is(err, state.ErrStale) {
			return records, err
		}
		// The next book may stand already, and not be known here yet.
		if err := sh.lock(ctx); err != nil {
			return nil, err
		}
		same := book == sh.book.Load()
		sh.unlock()
		if same {
			return nil, err
		}
	}
}

// update changes the records of some paths, in order.
func (sh *shelf) update(ctx context.Context, paths []string, change func(*state.Record) bool) error {
	if err := sh.lock(ctx); err != nil {
		return err
	}
	defer sh.unlock()
	book := sh.book.Load()
	if book == nil {
		return nil // it is to be opened anew
	}
	next, err := book.Update(ctx, paths, change)
	if err != nil {
		sh.drop(err)
		return fmt.Errorf("writing the state: %w", err)
	}
	if next != book {
		sh.book.Store(next)
		sh.changed.Store(true)
	}
	return nil
}

// drop gives up a book after an error that it will not recover from. Under the lock.
func (sh *shelf) drop(err error) {
	switch {
	case errors.Is(err, state.ErrStale):
		sh.book.Store(nil) // another process has written there: to be opened anew
	case errors.Is(err, state.ErrUnusable):
		sh.book.Store(sh.book.Load().Fresh())
	}
}

// notes are what a book says besides its records and documents.
type notes struct {
	Settings string        `json:"settings"`          // the key of what is held
	Rules    uint64        `json:"rules,omitempty"`   // of robots.txt
	Retired  []retiredNote `json:"retired,omitempty"` // names of shards

	// What the last look through all pages came to.
	Verified int            `json:"verified,omitempty"`
	LeftOut  map[string]int `json:"left_out,omitempty"`

	Examples map[string][]string `json:"examples,omitempty"` // pages left out, by reason
	Orphans  int                 `json:"orphans,omitempty"`
	Day      int64               `json:"day,omitempty"` // since 1970

	// robots.txt, as far as it counts, and what the server's routes are.
	Robots string `json:"robots,omitempty"`
	Routes string `json:"routes,omitempty"`

	// What was taken from pages for extensions.
	Collected string `json:"collected,omitempty"`
}

type retiredNote struct {
	Suffix string `json:"suffix"`
	First  string `json:"first"`
	At     int64  `json:"at"` // Unix seconds
}

func readNotes(book *state.Book) (notes, error) {
	var n notes
	if len(book.Meta()) == 0 {
		return n, nil
	}
	if err := json.Unmarshal(book.Meta(), &n); err != nil {
		return n, fmt.Errorf("%w: %w", state.ErrUnusable, err)
	}
	return n, nil
}
