package model

import (
	"context"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
)

// storage is a storage that processes share: a folder with faults.
type storage struct{}

func (*storage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.model", New: func() caddy.Module { return new(storage) }}
}

func (*storage) CertMagicStorage() (certmagic.Storage, error) {
	m := running.Load()
	return &faulty{certmagic.FileStorage{Path: m.shared}, m}, nil
}

// faulty has faults and a lock of its own: that of a folder goes by the times of files, which are real ones.
type faulty struct {
	certmagic.FileStorage
	*model
}

func (s *faulty) Store(ctx context.Context, key string, value []byte) error {
	if err := s.faults.call(ctx, ofStorage); err != nil {
		return err
	}
	return s.FileStorage.Store(ctx, key, value)
}

func (s *faulty) Load(ctx context.Context, key string) ([]byte, error) {
	if err := s.faults.call(ctx, ofStorage); err != nil {
		return nil, err
	}
	return s.FileStorage.Load(ctx, key)
}

func (s *faulty) List(ctx context.Context, prefix string, recursive bool) ([]string, error) {
	if err := s.faults.call(ctx, ofStorage); err != nil {
		return nil, err
	}
	return s.FileStorage.List(ctx, prefix, recursive)
}

func (s *faulty) Delete(ctx context.Context, key string) error {
	if err := s.faults.call(ctx, ofStorage); err != nil {
		return err
	}
	return s.FileStorage.Delete(ctx, key)
}

// Lock does not panic: that this ends the process is not held against it, as locks will go.
func (s *faulty) Lock(ctx context.Context, _ string) error {
	if is, _ := s.faults.of(ofStorage); is == panicking {
		return errOnPurpose
	}
	if err := s.faults.call(ctx, ofStorage); err != nil {
		return err
	}
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *faulty) Unlock(context.Context, string) error {
	select {
	case <-s.lock:
	default:
	}
	return nil
}
