package store

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
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

type memory struct{ values sync.Map }

func (m *memory) Store(_ context.Context, key string, value []byte) error {
	m.values.Store(key, value)
	return nil
}

func (m *memory) Load(_ context.Context, key string) ([]byte, error) {
	if value, ok := m.values.Load(key); ok {
		return value.([]byte), nil
	}
	return nil, fs.ErrNotExist
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

// load reads a value, and gives up where the storage does not respond, as a network disk that is gone.
func (s *Store) load(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("the storage does not respond"))
	defer cancel()
	var data []byte
	var err error
	if !wait.OrLeave(ctx, 0, func() { data, err = s.storage.Load(ctx, path.Join(s.Prefix, name)) }) || ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return data, err
}

// write stores a value, or deletes it if it is nil. Callers run exclusively.
func (s *Store) write(ctx context.Context, name string, value []byte) error {
	switch key := path.Join(s.Prefix, name); {
	case ctx.Err() != nil:
		return ctx.Err()
	case value == nil:
		return s.storage.Delete(ctx, key)
	default:
		return s.storage.Store(ctx, key, value)
	}
}

// exclusively runs a function that writes while no other does. If the disk hangs, it is abandoned when ctx ends,
// but nothing else is written until it has returned: else it could overwrite something newer.
func (s *Store) exclusively(ctx context.Context, run func() error) error {
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	var err error
	if !wait.OrLeave(ctx, 0, func() {
		defer func() { <-s.lock }()
		err = run()
	}) || ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
