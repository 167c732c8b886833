package record

import (
	"context"
	"errors"
	"io/fs"
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
