// Package storages has storages for Caddy that tests of a fleet share: Redis, and one with faults.
package storages

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
	"github.com/redis/go-redis/v9"
)

func init() {
	caddy.RegisterModule(new(redisStorage))
}

// redisStorage is a storage on a Redis server. In what may surprise, it behaves as public modules do: a List of nothing is
// no error, Delete deletes a single key, and the client tries again on its own and does not heed the deadline of a
// context. It connects when it is first used.
//
//	storage redis_test <socket>
type redisStorage struct {
	Socket string `json:"socket"`

	client *redis.Client
}

const keyPrefix = "caddy/"

func (*redisStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.redis_test", New: func() caddy.Module { return new(redisStorage) }}
}

func (r *redisStorage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&r.Socket) {
		return d.ArgErr()
	}
	return nil
}

func (r *redisStorage) Provision(caddy.Context) error {
	r.client = redis.NewClient(&redis.Options{Network: "unix", Addr: r.Socket})
	return nil
}

func (r *redisStorage) Cleanup() error { return r.client.Close() }

func (r *redisStorage) CertMagicStorage() (certmagic.Storage, error) { return r, nil }

func (r *redisStorage) Store(ctx context.Context, key string, value []byte) error {
	return r.client.Set(ctx, keyPrefix+key, value, 0).Err()
}

func (r *redisStorage) Load(ctx context.Context, key string) ([]byte, error) {
	value, err := r.client.Get(ctx, keyPrefix+key).Bytes()
	if errors.Is(err, redis.Nil) {
		err = fs.ErrNotExist
	}
	return value, err
}

func (r *redisStorage) Delete(ctx context.Context, key string) error {
	return r.client.Del(ctx, keyPrefix+key).Err()
}

func (r *redisStorage) Exists(ctx context.Context, key string) bool {
	_, err := r.Load(ctx, key)
	return err == nil
}

func (r *redisStorage) List(ctx context.Context, folder string, recursive bool) (keys []string, err error) {
	found := r.client.Scan(ctx, 0, keyPrefix+folder+"/*", 100).Iterator()
	for found.Next(ctx) {
		name, _ := strings.CutPrefix(found.Val(), keyPrefix+folder+"/")
		if !recursive {
			name, _, _ = strings.Cut(name, "/")
		}
		keys = append(keys, path.Join(folder, name))
	}
	slices.Sort(keys)
	return slices.Compact(keys), found.Err()
}

func (r *redisStorage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	value, err := r.Load(ctx, key)
	return certmagic.KeyInfo{Key: key, Size: int64(len(value)), IsTerminal: true}, err
}

// Lock implements [certmagic.Storage]: these tests have no certificates, and sitemaps need no locks.
func (*redisStorage) Lock(context.Context, string) error { return errors.New("no lock is granted") }

// Unlock implements [certmagic.Storage].
func (*redisStorage) Unlock(context.Context, string) error { return nil }
