// Package record keeps the records and the documents of a site on a [Storage]: records in immutable chunks that
// are named by the hash of their content, and a manifest that is written last. Whenever the process ends, a
// whole generation is found. It lends them to one refresh at a time: see [Records].
package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"sync"
	"sync/atomic"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Errors match these, besides those of the storage and of contexts.
var (
	ErrDamaged    = errors.New("damaged or missing")
	ErrSuperseded = errors.New("deleted, since a later generation was committed")
)

// Names below the prefix. All are in one folder, as are the leftovers of a Storage that was killed.
const (
	folder = "store/" // of chunks and documents

	// ManifestName is the key, below the prefix of a store, of the value that names them.
	ManifestName = folder + "manifest.json"
)

// Store keeps the generations of one site. It is safe for concurrent use.
type Store struct {
	storage Storage
	prefix  string // of all keys; nothing else is touched
	damaged atomic.Pointer[func(key string, err error)]
	doubts  sync.Map                   // of objects, by name
	last    atomic.Pointer[Generation] // that was committed
	lock    wait.Slots                 // of the one goroutine that writes
	current atomic.Pointer[Records]
}

// New returns a Store of what is below a prefix of a storage. It is empty until Open. The storage may hang: see [Bounded].
func New(storage Storage, prefix string) *Store {
	s := &Store{storage: Bounded(storage), prefix: prefix, lock: wait.NewSlots(1)}
	s.last.Store(s.empty())
	s.current.Store(s.newRecords())
	return s
}

// empty returns a generation without records.
func (s *Store) empty() *Generation { return s.generation(emptyManifest()) }

// Open reads which generation was committed last. If the manifest is damaged, there is none. damaged is called once for each damaged
// object; nil: it is not. The error is the storage's or ctx's.
func (s *Store) Open(ctx context.Context, damaged func(key string, err error)) error {
	if !s.lock.Take(ctx) {
		return context.Cause(ctx)
	}
	defer s.lock.Release()
	data, err := s.load(ctx, ManifestName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.damaged.Store(&damaged)
	// Without a manifest, the site begins anew: its chunks alone do not say which of them belong together.
	m, malformed := decodeManifest(data)
	if err == nil && malformed != nil {
		_ = s.lose(&object{Name: ManifestName}, malformed)
	}
	s.last.Store(s.generation(m))
	return nil
}

// Last returns the generation that was committed last, an empty one if there is none.
func (s *Store) Last() *Generation { return s.last.Load() }

// Commit makes g the generation that the next Open finds, and then deletes the objects that only earlier ones have.
// If it fails, or ctx ends, nothing more is written, and Open finds the one before. The error matches ErrSuperseded,
// or is the storage's or ctx's.
func (s *Store) Commit(ctx context.Context, g *Generation) error {
	if !s.lock.Take(ctx) {
		return context.Cause(ctx)
	}
	defer s.lock.Release()
	return s.commit(ctx, g)
}

// commit is [Store.Commit] for the holder of lock.
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
		err := s.storage.Store(ctx, s.key(name), *data)
		if err != nil {
			return err
		}
	}

	// The manifest makes all of it the last generation, at once.
	err = s.storage.Store(ctx, s.key(ManifestName), encoded)
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
	keys, err := s.storage.List(ctx, s.key(folder), false)
	if err != nil {
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
		err := Delete(ctx, s.storage, key)
		if err != nil {
			return
		}
	}
}

func (s *Store) key(name string) string { return path.Join(s.prefix, name) }

func (s *Store) load(ctx context.Context, name string) ([]byte, error) {
	return s.storage.Load(ctx, s.key(name))
}

// read returns the data of an object. Errors are as of [Generation.Load].
func (s *Store) read(ctx context.Context, o *object) ([]byte, error) {
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
		s.doubts.Delete(o.Name)
		return data, nil
	}
	isMissing := errors.Is(err, fs.ErrNotExist)
	others := s.Last().state.Load().objects()
	isNamed := others[o.Name] != nil
	delete(others, o.Name)
	switch {
	case isMissing && !isNamed: // it was deleted by a later commit
		return nil, fmt.Errorf("%s: %w", o.Name, ErrSuperseded)
	case isMissing, s.isUnreadable(ctx, o, others, err):
		return nil, s.lose(o, err)
	}
	return nil, err // the storage may fail for now
}

// lose reports an object as damaged, once. The error matches ErrDamaged.
func (s *Store) lose(o *object, cause error) error {
	wasKnown := o.damaged.Swap(true) // generations share the object
	damaged := s.damaged.Load()
	if !wasKnown && damaged != nil && *damaged != nil {
		(*damaged)(s.key(o.Name), cause)
	}
	return fmt.Errorf("%s: %w: %w", o.Name, ErrDamaged, cause)
}
