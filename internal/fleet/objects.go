package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// An object is an immutable value that is named by the hash of its content. It is stored in parts of 256 KiB: the first
// that is smaller, or after which there is none, is the last.
const (
	partSize     = 256 << 10
	folder       = "objects"
	manifestName = "manifest.json" // in a store's keys
	garbageKey   = "garbage"
	maxGarbage   = 12_000 // objects
	digits       = 12
	collectFor   = 5 * time.Second // in a commit
)

var (
	hashPattern   = regexp.MustCompile("^[0-9a-f]{32}$")
	partPattern   = regexp.MustCompile(`^[0-9a-f]{32}\.[0-9]+$`)
	objectPattern = regexp.MustCompile(`"object":\{"name":"store/([0-9a-f]{32})"\}`)
)

func partName(object string, part int) string { return fmt.Sprintf("%s.%d", object, part) }

// storeObject stores the parts of an object, but for those that are stored.
func (n *Node) storeObject(ctx context.Context, name string, data []byte, stored map[string]bool) (err error) {
	for i := 0; err == nil && (i == 0 || i*partSize < len(data)); i++ {
		if part := partName(name, i); !stored[part] {
			err = n.write(ctx, path.Join(folder, part), data[i*partSize:min((i+1)*partSize, len(data))])
		}
	}
	return err
}

// object returns the content of an object. The error matches fs.ErrNotExist only if it is lost.
func (n *Node) object(ctx context.Context, name string) (data []byte, err error) {
	local := path.Join(folder, name)
	if data, err = n.Local.Load(ctx, local); err == nil && store.Hash(data) == name {
		return data, nil
	}
	data, err = nil, nil
	for i := 0; err == nil && len(data) == i*partSize; i++ {
		var part []byte
		part, err = n.load(ctx, path.Join(folder, partName(name, i)))
		data = append(data, part...)
	}
	if store.Hash(data) == name {
		_ = n.Local.Store(ctx, local, data)
		return data, nil
	}
	if err == nil {
		_, err = n.readCurrent(ctx) // it may only have been deleted since, or not be visible yet
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && n.Now().Sub(n.changedAt) < settleFor {
		err = errEarly
	}
	return nil, cmp.Or(err, fmt.Errorf("object %s: %w", name, fs.ErrNotExist))
}

// named returns the names of a manifest's object and of those that it names.
func (n *Node) named(ctx context.Context, manifest string) (map[string]bool, error) {
	data, err := n.object(ctx, manifest)
	names := map[string]bool{manifest: true}
	for _, match := range objectPattern.FindAllSubmatch(data, -1) {
		names[string(match[1])] = true
	}
	return names, err
}

// garbage is a value that says which objects were found unnamed, by the first digits of their names.
type garbage struct {
	Listed  time.Time       `json:"listed"`
	Objects map[string]bool `json:"objects"`
}

// collect lists the parts of objects once a day. It deletes those that were unnamed the day before, too, and stores again
// what is named and not listed. The node that has just committed does so, while it has the lock, for five seconds at most.
// It returns when all was done; zero: the next commit goes on.
func (n *Node) collect(ctx context.Context, manifest string, now time.Time) (done time.Time) {
	ctx, cancel := context.WithTimeout(ctx, collectFor)
	defer cancel()
	last, next, stored := garbage{}, garbage{now, make(map[string]bool)}, make(map[string]bool)
	data, err := n.load(ctx, garbageKey)
	if json.Unmarshal(data, &last) == nil && now.Sub(last.Listed).Abs() < day {
		return last.Listed
	}
	names, err2 := n.named(ctx, manifest)
	keys, err3 := do(ctx, n, func(ctx context.Context, s Shared) ([]string, error) {
		return s.List(ctx, path.Join(n.Prefix, folder), false)
	})
	c, err4 := n.readCurrent(ctx) // a node that did not wait for the lock may name other objects
	if err = cmp.Or(err, err2, err3, err4); err != nil || c.Manifest != manifest {
		return done
	}
	for _, key := range keys {
		part := path.Base(key)
		stored[part] = true
		switch name, _, _ := strings.Cut(part, "."); {
		case names[name], !partPattern.MatchString(part):
		case last.Objects[name[:digits]]:
			err = cmp.Or(err, n.write(ctx, path.Join(folder, part), nil))
		case len(next.Objects) < maxGarbage:
			next.Objects[name[:digits]] = true
		}
	}
	for name := range names {
		if data, missing := n.Local.Load(ctx, path.Join(folder, name)); missing == nil && store.Hash(data) == name {
			err = cmp.Or(err, n.storeObject(ctx, name, data, stored))
		}
	}
	if data, _ = json.Marshal(next); err == nil && n.write(ctx, garbageKey, data) == nil {
		return now
	}
	return done
}

// Store implements [store.Storage]. Storing the manifest commits the generation: see [Node.Settled]. The error matches
// ErrLost if there is a newer one than was adopted. Other values than objects are not kept.
func (n *Node) Store(ctx context.Context, key string, value []byte) error {
	name := path.Base(key)
	if name == manifestName {
		name = store.Hash(value)
	}
	if !hashPattern.MatchString(name) {
		return nil
	}
	_ = n.Local.Store(ctx, path.Join(folder, name), value) // else it is loaded again
	err := n.storeObject(ctx, name, value, nil)
	if err == nil && path.Base(key) == manifestName {
		err = n.commit(ctx, name)
	}
	return err
}

// Load implements [store.Storage]. The manifest is that of the newest generation, which the next commit follows after
// [Node.Adopt]. If the storage fails before the node has seen any, it is that of the local copies. If it is lost, there is
// none.
func (n *Node) Load(ctx context.Context, key string) (data []byte, err error) {
	if name := path.Base(key); name != manifestName {
		return n.object(ctx, name)
	}
	_, err = n.readCurrent(ctx)
	seen, _ := n.newest()
	if err != nil && seen.Generation == 0 {
		kept, _ := n.Local.Load(ctx, currentKey)
		seen = decodeCurrent(kept)
		n.see(seen)
	}
	if seen.Generation > 0 {
		data, err = n.object(ctx, seen.Manifest)
	} else if err == nil {
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		n.lose(seen)
		seen = current{}
	} else if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.loaded = seen
	n.mu.Unlock()
	if n.Value {
		n.Adopt(ctx, false)
	}
	return data, err
}

// Adopt says that the node goes on from the manifest that it has loaded last, or begins anew if there was none. There may
// be a newer one already: see [Node.Newer]. If some is damaged, this node refreshes the site at once.
func (n *Node) Adopt(ctx context.Context, isDamaged bool) {
	n.mu.Lock()
	loaded := n.loaded
	n.mu.Unlock()
	if isDamaged {
		n.lose(loaded)
		loaded = current{}
	}
	n.adopt(ctx, loaded)
}

// adopt makes the node go on from a generation. Of others, no local copies are kept.
func (n *Node) adopt(ctx context.Context, c current) {
	n.mu.Lock()
	isOther := c.Manifest != n.have
	n.have = c.Manifest
	n.mu.Unlock()
	if !isOther || c.Manifest == "" {
		return
	}
	data, _ := json.Marshal(c)
	_ = n.Local.Store(ctx, currentKey, data)
	names, err := n.named(ctx, c.Manifest)
	keys, _ := n.Local.List(ctx, folder, false)
	for _, key := range keys {
		if name := path.Base(key); err == nil && !names[name] {
			_ = n.Local.Delete(ctx, path.Join(folder, name)) // else the next time
		}
	}
}

// Delete implements [store.Storage]. It does nothing: what this node does not need any more, others may.
func (n *Node) Delete(context.Context, string) error { return nil }

// List implements [store.Storage]. It lists nothing.
func (n *Node) List(context.Context, string, bool) ([]string, error) { return nil, nil }
