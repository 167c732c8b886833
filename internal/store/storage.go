package store

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

// Storage is the part of certmagic's Storage that is used. Keys are paths with slashes.
// A value is stored whole or not at all, and every later Load sees it. Values are not
// modified, neither by the Storage nor by its users.
type Storage interface {
	Store(ctx context.Context, key string, value []byte) error

	// Load returns an error that matches fs.ErrNotExist where there is no such value.
	Load(ctx context.Context, key string) ([]byte, error)

	Delete(ctx context.Context, key string) error

	// List returns the keys below a folder; recursive: those in its folders too.
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

func (m *memory) List(_ context.Context, path string, recursive bool) ([]string, error) {
	var keys []string
	for key := range m.values.Range {
		rest, below := strings.CutPrefix(key.(string), path+"/")
		if below && (recursive || !strings.Contains(rest, "/")) {
			keys = append(keys, key.(string))
		}
	}
	return keys, nil
}

// within runs one call of a Storage and returns no later than ctx ends. A call that
// ignores ctx, as on a hung disk, is abandoned: its goroutine ends when the call does.
func within[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("the storage panicked: %v", p)
			}
			done <- r
		}()
		r.value, r.err = call()
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
