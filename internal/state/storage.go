package state

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// Storage keeps values by key. Keys are paths with slashes. A value is stored
// whole or not at all, and what was stored is seen by every later Load.
type Storage interface {
	Store(ctx context.Context, key string, value []byte) error

	// Load's error is fs.ErrNotExist where there is no such value.
	Load(ctx context.Context, key string) ([]byte, error)

	Delete(ctx context.Context, key string) error

	// List returns the keys below a folder; recursive: those in its folders, too.
	List(ctx context.Context, prefix string, recursive bool) ([]string, error)
}

// memory is a Storage for what has no place on disk.
type memory struct {
	mu     sync.RWMutex
	values map[string][]byte
}

// NewMemory returns a Storage that lasts as long as the process.
func NewMemory() Storage { return &memory{values: make(map[string][]byte)} }

func (m *memory) Store(_ context.Context, key string, value []byte) error {
	value = slices.Clone(value)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
	return nil
}

func (m *memory) Load(_ context.Context, key string) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	value, ok := m.values[key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(value), nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

func (m *memory) List(_ context.Context, prefix string, recursive bool) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var keys []string
	for key := range m.values {
		if isBelow(key, prefix, recursive) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func isBelow(key, prefix string, recursive bool) bool {
	rest, ok := strings.CutPrefix(key, prefix+"/")
	return ok && rest != "" && (recursive || !strings.Contains(rest, "/"))
}
