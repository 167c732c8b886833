package store

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// Storage is the part of certmagic's Storage that is used. Keys are paths with slashes. A value is stored whole
// or not at all, and is never modified. Load's error matches [fs.ErrNotExist] if there is no value.
type Storage interface {
	Store(ctx context.Context, key string, value []byte) error
	Load(ctx context.Context, key string) ([]byte, error)
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, path string, recursive bool) ([]string, error)
}

// NewMemory returns a Storage that lasts as long as the process.
func NewMemory() Storage { return &memory{} }

// Delete deletes a value, if there is one: some storages return an error of their own where there is none.
func Delete(ctx context.Context, s Storage, key string) error {
	err := s.Delete(ctx, key)
	if err == nil {
		return nil
	}
	_, missing := s.Load(ctx, key)
	if errors.Is(missing, fs.ErrNotExist) {
		return nil
	}
	return err
}

type memory struct{ values sync.Map }

func (m *memory) Store(_ context.Context, key string, value []byte) error {
	m.values.Store(key, value)
	return nil
}

func (m *memory) Load(_ context.Context, key string) ([]byte, error) {
	value, ok := m.values.Load(key)
	if !ok {
		return nil, fs.ErrNotExist
	}
	return value.([]byte), nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.values.Delete(key)
	return nil
}

func (m *memory) List(_ context.Context, folder string, _ bool) (keys []string, err error) {
	for key := range m.values.Range {
		if strings.HasPrefix(key.(string), folder+"/") {
			keys = append(keys, key.(string))
		}
	}
	return keys, nil
}

// IsBounded says that the storage needs no bounds.
func (m *memory) IsBounded() {}

func (s *Store) load(ctx context.Context, name string) ([]byte, error) {
	return s.storage.Load(ctx, path.Join(s.Prefix, name))
}

// write stores a value, or deletes it if it is nil. Callers run exclusively.
func (s *Store) write(ctx context.Context, name string, value []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	key := path.Join(s.Prefix, name)
	if value == nil {
		return Delete(ctx, s.storage, key)
	}
	return s.storage.Store(ctx, key, value)
}

// exclusively runs a function that writes while no other does. What it abandons holds up what is written later: see
// [Bounded].
func (s *Store) exclusively(ctx context.Context, run func() error) error {
	if !s.lock.Take(ctx) {
		return context.Cause(ctx)
	}
	defer s.lock.Release()
	err := run()
	// Whoever's context has ended is told so, whatever the storage made of it.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
