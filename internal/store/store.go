// Package store keeps what is known of a site's pages, and the site's documents, on a
// Storage: records in immutable chunks that are named by their content, and a manifest
// that is written last. Whatever ends the process, a whole generation is found.
package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Errors match these, besides those of the storage and of contexts.
var (
	ErrDamaged    = errors.New("damaged or missing")
	ErrRevoked    = errors.New("writing was revoked")
	ErrSuperseded = errors.New("deleted, since a later generation was committed")
	ErrOrder      = errors.New("out of order")
	ErrTooLarge   = errors.New("a record is too large")
)

// Names below the prefix: the folder of the manifest and of all chunks and documents, and
// the one of what was set aside, which has maxSetAside places.
const (
	folder       = "store"
	manifestName = folder + "/manifest.json"
	setAsideName = "damaged"
	maxSetAside  = 8
)

// ManifestKey returns the key of the manifest of the store with a prefix.
func ManifestKey(prefix string) string { return path.Join(prefix, manifestName) }

// Options are the options of [Open].
type Options struct {
	Prefix  string                      // of all keys; nothing else is touched
	Damaged func(key string, err error) // is called once for each damaged object; nil: nothing is
}

// Store keeps the generations of one site. It is safe for concurrent use.
type Store struct {
	Options
	storage  Storage
	last     atomic.Pointer[Generation]
	revoked  atomic.Bool
	setAside atomic.Int32  // how many objects were
	lock     chan struct{} // is held by the one goroutine that writes
}

// Open reads what is kept under a prefix. A damaged manifest is set aside, and the Store
// is then empty. An error is the storage's or ctx's.
func Open(ctx context.Context, storage Storage, o Options) (*Store, error) {
	s := &Store{Options: o, storage: storage, lock: make(chan struct{}, 1)}
	data, err := s.load(ctx, manifestName)
	m, malformed := decodeManifest(data)
	switch {
	case err == nil && malformed != nil, errors.Is(err, syscall.EISDIR):
		s.replace(ctx, manifestName, data, cmp.Or(err, malformed))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("opening %s: %w", o.Prefix, err)
	}
	if malformed != nil {
		m = manifest{Chunks: []Chunk{{}}}
	}
	s.last.Store(s.generation(m))
	return s, nil
}

// Last returns the generation that was committed last, an empty one if there is none.
func (s *Store) Last() *Generation { return s.last.Load() }

// Revoke makes the Store write no more, not even the rest of a Commit that is running.
func (s *Store) Revoke() { s.revoked.Store(true) }

// Commit makes g the generation that the next Open finds, and then deletes what only
// earlier ones have. If it fails, the one before is found. The error matches ErrRevoked or
// ErrSuperseded, or is the storage's or ctx's.
func (s *Store) Commit(ctx context.Context, g *Generation) error {
	if err := s.exclusively(ctx, func() error { return s.commit(ctx, g) }); err != nil {
		return fmt.Errorf("writing %s: %w", s.Prefix, err)
	}
	return nil
}

// commit writes what the storage does not have, then the manifest. What is not needed is
// deleted after that, and before: Commits that a full disk failed may have left much.
func (s *Store) commit(ctx context.Context, g *Generation) error {
	encoded, err := g.state.Load().encode()
	if err != nil {
		return err
	}
	found, err := s.load(ctx, manifestName)
	if err != nil && !errors.Is(err, syscall.EISDIR) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	objects := g.state.Load().objects()
	if !bytes.Equal(encoded, found) {
		standing, _ := decodeManifest(found) // not Last's if its Commit failed at the very end
		last := s.Last().state.Load().objects()
		if err := s.clean(ctx, objects, last, standing.objects()); err != nil {
			return err
		}
		if err := s.writeObjects(ctx, objects, last); err != nil {
			return err
		}
		if err := s.write(ctx, manifestName, encoded); err != nil {
			return err
		}
	}
	s.last.Store(g)
	for _, o := range objects {
		o.fresh.Store(nil)
	}
	_ = s.clean(ctx, objects) // what remains is left to the next Commit
	return nil
}

// writeObjects writes the objects that the last committed generation does not have.
func (s *Store) writeObjects(ctx context.Context, objects, last map[string]*object) error {
	for name, o := range objects {
		if last[name] != nil {
			continue
		}
		data := o.fresh.Load()
		if data == nil {
			return fmt.Errorf("%s: %w", o.key(), ErrSuperseded)
		}
		if err := s.write(ctx, o.key(), *data); err != nil {
			return err
		}
	}
	return nil
}

// clean deletes all but the manifest and some objects.
func (s *Store) clean(ctx context.Context, keep ...map[string]*object) error {
	keys, err := s.storage.List(ctx, path.Join(s.Prefix, folder), false)
	for _, key := range keys {
		name := path.Join(folder, path.Base(key))
		kept := func(objects map[string]*object) bool { return objects[path.Base(key)] != nil }
		if err == nil && name != manifestName && !slices.ContainsFunc(keep, kept) {
			err = s.write(ctx, name, nil)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// read returns the data of an object. Errors are as of [Generation.Load].
func (s *Store) read(ctx context.Context, o *object) ([]byte, error) {
	if data := o.fresh.Load(); data != nil {
		return *data, nil
	}
	if o.lost() {
		return nil, fmt.Errorf("%s: %w", o.key(), ErrDamaged)
	}
	data, err := s.load(ctx, o.key())
	switch {
	case err == nil && nameOf(data) == o.name:
		return data, nil
	case err == nil:
		err = errors.New("content does not match the name")
	case errors.Is(err, fs.ErrNotExist) && s.Last().state.Load().objects()[o.name] == nil:
		return nil, fmt.Errorf("%s: %w", o.key(), ErrSuperseded)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EISDIR):
		return nil, err
	}
	return nil, s.lose(ctx, o, data, err)
}

// lose sets an object aside if that was not done before, and returns an error that
// matches ErrDamaged.
func (s *Store) lose(ctx context.Context, o *object, data []byte, cause error) error {
	if !o.damaged.Swap(true) {
		s.replace(ctx, o.key(), data, cause)
	}
	return fmt.Errorf("%s: %w: %w", o.key(), ErrDamaged, cause)
}

// replace reports that what has a name is damaged, moves its data, if it has any, to the
// next place for what is set aside, and frees the name.
func (s *Store) replace(ctx context.Context, name string, data []byte, cause error) {
	if s.Damaged != nil {
		s.Damaged(path.Join(s.Prefix, name), cause)
	}
	place := strconv.Itoa(int(s.setAside.Add(1)-1) % maxSetAside)
	_ = s.exclusively(ctx, func() error {
		if data != nil {
			if err := s.write(ctx, path.Join(setAsideName, place), data); err != nil {
				return err
			}
		}
		return s.write(ctx, name, nil)
	})
}
