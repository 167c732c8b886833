// Package store keeps the records and the documents of a site on a [Storage]: records in immutable chunks that
// are named by the hash of their content, and a manifest that is written last. Whenever the process ends, a
// whole generation is found.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Errors match these, besides those of the storage and of contexts.
var (
	ErrDamaged    = errors.New("damaged or missing")
	ErrSuperseded = errors.New("deleted, since a later generation was committed")
	ErrOrder      = errors.New("out of order")
)

// Names below the prefix. All are in one folder, as are the leftovers of a Storage that was killed.
const (
	folder = "store/" // of chunks and documents

	// ManifestName is the key, below the prefix of a store, of the value that names them.
	ManifestName = folder + "manifest.json"
)

// Options are the options of [Open].
type Options struct {
	Prefix  string                      // of all keys; nothing else is touched
	Damaged func(key string, err error) // called once for each damaged object; nil: not called
	Now     func() time.Time            // nil: time.Now
	Doubts  *Doubts                     // of earlier Stores of the site, too; nil: there are none
}

// Store keeps the generations of one site. It is safe for concurrent use.
type Store struct {
	Options
	storage Storage
	last    atomic.Pointer[Generation]
	lock    wait.Slots // of the one goroutine that writes
}

// Open opens the store under a prefix of a storage. If the manifest is damaged, the Store is empty. An error is the storage's
// or ctx's. The storage may hang: see [Bounded].
func Open(ctx context.Context, storage Storage, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Doubts == nil {
		o.Doubts = new(Doubts)
	}
	s := &Store{Options: o, storage: Bounded(storage), lock: wait.NewSlots(1)}
	data, err := s.load(ctx, ManifestName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// Without a manifest, the site begins anew: its chunks alone do not say which of them belong together.
	m, malformed := decodeManifest(data)
	if err == nil && malformed != nil {
		_ = s.lose(&object{Name: ManifestName}, malformed)
	}
	s.last.Store(s.generation(m))
	return s, nil
}

// Last returns the generation that was committed last, an empty one if there is none.
func (s *Store) Last() *Generation { return s.last.Load() }

// Commit makes g the generation that the next Open finds, and then deletes the objects that only earlier ones have.
// If it fails, or ctx ends, nothing more is written, and Open finds the one before. The error matches ErrSuperseded,
// or is the storage's or ctx's.
func (s *Store) Commit(ctx context.Context, g *Generation) error {
	return s.exclusively(ctx, func() error { return s.commit(ctx, g) })
}

func (s *Store) commit(ctx context.Context, g *Generation) error {
	defer s.clean(ctx)
	m := g.state.Load().sound()
	last := s.Last().state.Load().sound().objects()
	encoded, err := m.encode()
	if err != nil {
		return err
	}

	// Write what the last generation does not have. Nothing refers to it yet.
	for name, o := range m.objects() {
		if last[name] != nil {
			continue
		}
		data := o.fresh.Load()
		if data == nil {
			return fmt.Errorf("%s: %w", name, ErrSuperseded)
		}
		err := s.write(ctx, name, *data)
		if err != nil {
			return err
		}
	}

	// The manifest makes all of it the last generation, at once.
	err = s.write(ctx, ManifestName, encoded)
	if err != nil {
		return err
	}
	s.last.Store(g)

	// From here on, the objects are read from the storage.
	for _, o := range m.objects() {
		o.fresh.Store(nil)
	}
	return nil
}

// clean deletes objects that belong neither to the last generation nor to the stored one, which differ if a Commit
// failed at its very end. What it cannot delete is left to the next Commit.
func (s *Store) clean(ctx context.Context) {
	keys, err := s.storage.List(ctx, path.Join(s.Prefix, folder), false)
	if err != nil || len(keys) == 0 { // a storage that others use, too, lists nothing
		return
	}
	// What is stored is asked, not remembered: the write of a manifest that failed may have been done.
	data, err := s.load(ctx, ManifestName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	stored, _ := decodeManifest(data)
	keep := stored.objects()
	maps.Copy(keep, s.Last().state.Load().objects())
	for _, key := range keys {
		name := folder + path.Base(key)
		if name == ManifestName || keep[name] != nil {
			continue
		}
		err := s.write(ctx, name, nil)
		if err != nil {
			return
		}
	}
}

// read returns the data of an object. Errors are as of [Generation.Load].
func (s *Store) read(ctx context.Context, o *object) ([]byte, error) {
	data, err := s.fetch(ctx, o)
	if isUnreadable(err) {
		return nil, s.doubt(ctx, o, err)
	}
	return data, err
}

// fetch is as read, but gives up nothing that cannot be read.
func (s *Store) fetch(ctx context.Context, o *object) ([]byte, error) {
	if data := o.fresh.Load(); data != nil {
		return *data, nil
	}
	if o.damaged.Load() {
		return nil, fmt.Errorf("%s: %w", o.Name, ErrDamaged)
	}
	data, err := s.load(ctx, o.Name)
	if err == nil {
		if folder+Hash(data) != o.Name {
			return nil, s.lose(o, errors.New("content does not match the name"))
		}
		s.Doubts.forget(o.Name)
		return data, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err // the storage may fail for now: see doubt
	}
	// An object that no committed generation names was deleted by a later commit.
	isNamed := s.Last().state.Load().objects()[o.Name] != nil
	if !isNamed {
		return nil, fmt.Errorf("%s: %w", o.Name, ErrSuperseded)
	}
	return nil, s.lose(o, err)
}

// lose reports an object as damaged, once. The error matches ErrDamaged.
func (s *Store) lose(o *object, cause error) error {
	wasKnown := o.damaged.Swap(true) // generations share the object
	if !wasKnown && s.Damaged != nil {
		s.Damaged(path.Join(s.Prefix, o.Name), cause)
	}
	return fmt.Errorf("%s: %w: %w", o.Name, ErrDamaged, cause)
}
