// Package store keeps what is known of a site's pages, and the site's documents, on a
// Storage: records in immutable chunks that are named by their content, and a manifest
// that is written last. Whatever ends the process, a whole generation is found.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	// ErrDamaged matches where something stored is damaged or missing.
	ErrDamaged = errors.New("damaged")

	// ErrRevoked matches where the Store may write no more.
	ErrRevoked = errors.New("the right to write was revoked")

	// ErrSuperseded matches where what is wanted was deleted, since a later generation
	// was committed.
	ErrSuperseded = errors.New("a later generation was committed")

	// ErrBusy matches where the storage has not yet ended an earlier write, whose context
	// has ended: a later write could be overtaken by it.
	ErrBusy = errors.New("an earlier write has not ended")

	// ErrOrder matches where a Writer is given ranges or records out of order.
	ErrOrder = errors.New("out of order")

	// ErrTooLarge matches where a Writer is given a record of over a megabyte, not
	// counting alternates and images: these are left out of such a record.
	ErrTooLarge = errors.New("a record is too large")
)

// Below the prefix of a Store are the manifest, the folder of chunks and documents, and
// that of what was set aside, of which the newest maxSetAside are kept.
const (
	manifestName = "manifest.json"
	objectsName  = "objects"
	setAsideName = "damaged"
	maxSetAside  = 8
)

// ManifestKey returns the key of the manifest of a store, which each Commit that changes
// something writes.
func ManifestKey(prefix string) string { return path.Join(prefix, manifestName) }

// Options are the options of Open.
type Options struct {
	Prefix  string                      // of all keys; nothing else is touched
	Damaged func(key string, err error) // is called once for each damaged object; nil: nothing is
	Now     func() time.Time            // nil: time.Now
}

// Store keeps the generations of one site. It is safe for concurrent use.
type Store struct {
	Options
	storage Storage
	last    atomic.Pointer[Generation]
	revoked atomic.Bool
	writes  atomic.Int32 // that the storage has not ended

	// What follows belongs to who holds the lock.
	lock     chan struct{}
	manifest []byte          // as it was written last
	standing []*Generation   // whose manifest may be the stored one
	objects  map[string]bool // that may be in the storage; true: whole
	listed   bool            // objects include what earlier processes left
}

// Open reads what is kept under a prefix. A damaged manifest is set aside; the Store is
// then empty. An error is the storage's or ctx's.
func Open(ctx context.Context, storage Storage, o Options) (*Store, error) {
	s := &Store{Options: o, storage: storage, lock: make(chan struct{}, 1), objects: make(map[string]bool)}
	if s.Now == nil {
		s.Now = time.Now
	}
	g := (&Generation{store: s}).derive([]Chunk{{}})
	switch data, err := s.load(ctx, manifestName); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil && !errors.Is(err, syscall.EISDIR):
		return nil, err
	default:
		var stored *Generation
		if err == nil {
			stored, err = decodeManifest(data)
		}
		if err != nil {
			s.report(manifestName, err)
			s.move(ctx, manifestName, data)
			break
		}
		g, s.manifest = stored, data
		g.store = s
	}
	for b := range g.blobs {
		s.objects[b.name] = true
	}
	s.standing = []*Generation{g}
	s.last.Store(g)
	return s, nil
}

// Last returns the generation that was committed last, an empty one if there is none.
func (s *Store) Last() *Generation { return s.last.Load() }

// Revoke makes the Store write no more, not even the rest of a Commit that is running.
func (s *Store) Revoke() { s.revoked.Store(true) }

// Commit makes g the generation that the next Open finds. If it fails, the one before
// is, and what was written is not written again. After it, what only earlier generations
// have is deleted. The error matches ErrRevoked, ErrSuperseded or ErrBusy, or is the
// storage's or ctx's.
func (s *Store) Commit(ctx context.Context, g *Generation) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	encoded, err := g.encode()
	if err != nil {
		return err
	}
	if !bytes.Equal(encoded, s.manifest) {
		s.listObjects(ctx)
		s.clean(ctx, append(s.standing, g))
		if err := s.writeObjects(ctx, g); err != nil {
			return err
		}
		s.standing = append(s.standing, g) // a failed write may have been one
		if err := s.write(ctx, manifestName, encoded); err != nil {
			return err
		}
		s.manifest = encoded
	}
	s.standing = []*Generation{g}
	s.last.Store(g)
	for b := range g.blobs {
		b.fresh.Store(nil)
	}
	s.clean(ctx, s.standing)
	return nil
}

// writeObjects writes what g has and the storage has not.
func (s *Store) writeObjects(ctx context.Context, g *Generation) error {
	for b := range g.blobs {
		if s.objects[b.name] {
			continue
		}
		data := b.fresh.Load()
		if data == nil {
			return fmt.Errorf("%s: %w", b.key(), ErrSuperseded)
		}
		s.objects[b.name] = false
		if err := s.write(ctx, b.key(), *data); err != nil {
			return err
		}
		s.objects[b.name] = true
	}
	return nil
}

// listObjects learns, once, what earlier processes left.
func (s *Store) listObjects(ctx context.Context) {
	if s.listed {
		return
	}
	names, err := s.list(ctx, objectsName)
	for _, name := range names {
		if isName(name) && !s.objects[name] {
			s.objects[name] = false
		}
	}
	s.listed = err == nil
}

// clean deletes objects that no generation of keep has. What cannot be deleted is tried
// again by the next Commit.
func (s *Store) clean(ctx context.Context, keep []*Generation) {
	kept := make(map[string]bool)
	for _, g := range keep {
		for b := range g.blobs {
			kept[b.name] = true
		}
	}
	for name := range s.objects {
		if !kept[name] && s.remove(ctx, path.Join(objectsName, name)) == nil {
			delete(s.objects, name)
		}
	}
}

// read returns the data of a blob. Its errors are those of [Generation.Load].
func (s *Store) read(ctx context.Context, b *blob) ([]byte, error) {
	if data := b.fresh.Load(); data != nil {
		return *data, nil
	}
	if b.damaged.Load() {
		return nil, fmt.Errorf("%s: %w", b.key(), ErrDamaged)
	}
	data, err := s.load(ctx, b.key())
	switch {
	case err == nil && nameOf(data) == b.name:
		return data, nil
	case err == nil:
		err = errors.New("its content does not match its name")
	case errors.Is(err, syscall.EISDIR):
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !s.Last().has(b):
		return nil, fmt.Errorf("%s: %w", b.key(), ErrSuperseded)
	}
	return nil, s.setAside(ctx, b, data, err)
}

func (g *Generation) has(wanted *blob) bool {
	for b := range g.blobs {
		if b.name == wanted.name {
			return true
		}
	}
	return false
}

// setAside reports a damaged object and stores its data under another name. It returns
// an error that matches ErrDamaged.
func (s *Store) setAside(ctx context.Context, b *blob, data []byte, cause error) error {
	if !b.damaged.Swap(true) {
		s.report(b.key(), cause)
		if err := s.acquire(ctx); err == nil {
			s.objects[b.name] = false
			s.move(ctx, b.key(), data)
			s.release()
		}
	}
	return fmt.Errorf("%s: %w: %w", b.key(), ErrDamaged, cause)
}

func (s *Store) report(name string, err error) {
	if s.Damaged != nil {
		s.Damaged(path.Join(s.Prefix, name), err)
	}
}

// move stores data in the folder of what was set aside and deletes what has the name. A
// folder (data is nil) is only deleted if it is empty.
func (s *Store) move(ctx context.Context, name string, data []byte) {
	if data == nil {
		if below, err := s.list(ctx, name); err != nil || len(below) > 0 {
			return
		}
	} else {
		to := fmt.Sprintf("%020d-%s", s.Now().UnixNano(), path.Base(name))
		if s.write(ctx, path.Join(setAsideName, to), data) != nil {
			return
		}
	}
	_ = s.remove(ctx, name)
	names, _ := s.list(ctx, setAsideName)
	slices.Sort(names)
	for _, old := range names[:max(len(names)-maxSetAside, 0)] {
		_ = s.remove(ctx, path.Join(setAsideName, old))
	}
}

// acquire takes the lock, so that one goroutine at a time writes.
func (s *Store) acquire(ctx context.Context) error {
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.writes.Load() > 0 {
		s.release()
		return ErrBusy
	}
	return nil
}

func (s *Store) release() { <-s.lock }

func (b *blob) key() string { return path.Join(objectsName, b.name) }

func (s *Store) load(ctx context.Context, name string) ([]byte, error) {
	key := path.Join(s.Prefix, name)
	data, err := within(ctx, func() ([]byte, error) { return s.storage.Load(ctx, key) })
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", key, err)
	}
	return data, nil
}

// list returns the names in a folder below the prefix; of one that is not there, none.
func (s *Store) list(ctx context.Context, folder string) ([]string, error) {
	keys, err := within(ctx, func() ([]string, error) {
		return s.storage.List(ctx, path.Join(s.Prefix, folder), false)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for i := range keys {
		keys[i] = path.Base(keys[i])
	}
	return keys, err
}

func (s *Store) write(ctx context.Context, name string, data []byte) error {
	key := path.Join(s.Prefix, name)
	if err := s.change(ctx, func() error { return s.storage.Store(ctx, key, data) }); err != nil {
		return fmt.Errorf("storing %s: %w", key, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, name string) error {
	key := path.Join(s.Prefix, name)
	err := s.change(ctx, func() error { return s.storage.Delete(ctx, key) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// change runs a call that writes.
func (s *Store) change(ctx context.Context, call func() error) error {
	if s.revoked.Load() {
		return ErrRevoked
	}
	_, err := within(ctx, func() (struct{}, error) {
		s.writes.Add(1)
		defer s.writes.Add(-1)
		return struct{}{}, call()
	})
	return err
}
