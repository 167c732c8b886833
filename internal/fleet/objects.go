package fleet

import (
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
	maxProbes    = 3
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
	for i := 0; i == 0 || i*partSize < len(data); i++ {
		part := partName(name, i)
		if stored[part] {
			continue
		}
		end := min((i+1)*partSize, len(data))
		err = n.write(ctx, path.Join(folder, part), data[i*partSize:end])
		if err != nil {
			return err
		}
	}
	return nil
}

// object returns the content of an object. The error matches fs.ErrNotExist only if it is lost.
func (n *Node) object(ctx context.Context, name string) (data []byte, err error) {
	n.mu.Lock()
	data, isUncopied := n.uncopied[name]
	n.mu.Unlock()
	if isUncopied {
		return data, nil
	}
	data = n.copies.object(ctx, name)
	if data != nil {
		return data, nil
	}
	for i := 0; err == nil && len(data) == i*partSize; i++ {
		var part []byte
		part, err = n.load(ctx, path.Join(folder, partName(name, i)))
		data = append(data, part...)
	}
	if store.Hash(data) == name {
		n.copies.store(ctx, path.Join(folder, name), data)
		return data, nil
	}
	if err == nil {
		_, err = n.readCurrent(ctx) // it may only have been deleted since, or not be visible yet
	}
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.Now().Sub(n.changedAt) < settleFor {
		return nil, errEarly
	}
	return nil, fmt.Errorf("object %s: %w", name, fs.ErrNotExist)
}

// Probe implements [store.Prober]: local copies say nothing of the storage. It tries some objects, not all.
func (n *Node) Probe(ctx context.Context, names []string) (manifest, object bool) {
	c, err := n.readCurrent(ctx)
	if err != nil || c.Generation == 0 {
		return false, false
	}
	manifest = n.isReadable(ctx, c.Manifest)
	if !manifest {
		return false, false
	}
	for _, name := range names[:min(len(names), maxProbes)] {
		if n.isReadable(ctx, path.Base(name)) {
			return true, true
		}
	}
	return true, false
}

// isReadable reports whether the first part of an object can be loaded.
func (n *Node) isReadable(ctx context.Context, object string) bool {
	data, err := n.load(ctx, path.Join(folder, partName(object, 0)))
	return err == nil && data != nil
}

// named returns the names of a manifest's object and of those that it names.
func (n *Node) named(ctx context.Context, manifest string) (map[string]bool, error) {
	data, err := n.object(ctx, manifest)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{manifest: true}
	for _, match := range objectPattern.FindAllSubmatch(data, -1) {
		names[string(match[1])] = true
	}
	return names, nil
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
	data, err := n.load(ctx, garbageKey)
	if err != nil {
		return time.Time{}
	}
	var last garbage
	malformed := json.Unmarshal(data, &last)
	if malformed == nil && now.Sub(last.Listed).Abs() < day {
		return last.Listed
	}
	names, err := n.named(ctx, manifest)
	if err != nil {
		return time.Time{}
	}
	keys, err := do(ctx, n, callList, "", func(ctx context.Context, s Shared) ([]string, error) {
		return s.List(ctx, path.Join(n.Prefix, folder), false)
	})
	if err != nil {
		return time.Time{}
	}
	// A node that did not wait for the lock may name other objects.
	c, err := n.readCurrent(ctx)
	if err != nil || c.Manifest != manifest {
		return time.Time{}
	}
	next := garbage{now, make(map[string]bool)}
	stored, err := n.sweep(ctx, keys, names, last, next)
	if err != nil {
		return time.Time{}
	}
	for name := range names {
		data := n.copies.object(ctx, name)
		if data == nil {
			continue
		}
		err = n.storeObject(ctx, name, data, stored)
		if err != nil {
			return time.Time{}
		}
	}
	encoded, _ := json.Marshal(next) // which has no field that fails
	err = n.write(ctx, garbageKey, encoded)
	if err != nil {
		return time.Time{}
	}
	return now
}

// sweep deletes what was garbage the last time, too, and adds what is to next. It returns the parts that were listed.
func (n *Node) sweep(ctx context.Context, keys []string, names map[string]bool, last, next garbage) (stored map[string]bool, err error) {
	stored = make(map[string]bool)
	for _, key := range keys {
		part := path.Base(key)
		stored[part] = true
		name, _, _ := strings.Cut(part, ".")
		if names[name] || !partPattern.MatchString(part) {
			continue
		}
		if last.Objects[name[:digits]] {
			err = n.write(ctx, path.Join(folder, part), nil)
		} else if len(next.Objects) < maxGarbage {
			next.Objects[name[:digits]] = true
		}
		if err != nil {
			return nil, err
		}
	}
	return stored, nil
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
	err := n.storeObject(ctx, name, value, nil)
	if err != nil {
		return err
	}
	// Other nodes wait for the commit, so it does not wait for local copies.
	n.mu.Lock()
	n.uncopied[name] = value
	n.mu.Unlock()
	if path.Base(key) == manifestName {
		return n.commit(ctx, name)
	}
	return nil
}

// Load implements [store.Storage]. The manifest is that of the newest generation, which the next commit follows after
// [Node.Adopt]. If the storage fails before the node has seen any, it is that of the local copies. If it is lost, there is
// none.
func (n *Node) Load(ctx context.Context, key string) (data []byte, err error) {
	name := path.Base(key)
	if name != manifestName {
		return n.object(ctx, name)
	}
	_, err = n.readCurrent(ctx)
	seen, _ := n.newest()
	if err != nil && seen.Generation == 0 {
		seen = n.copies.current(ctx)
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
	uncopied := n.uncopied
	n.uncopied = make(map[string][]byte)
	n.mu.Unlock()
	if !isOther || c.Manifest == "" {
		return
	}
	for name, data := range uncopied {
		n.copies.store(ctx, path.Join(folder, name), data)
	}
	n.copies.setCurrent(ctx, c)
	names, err := n.named(ctx, c.Manifest)
	if err == nil {
		n.copies.keep(ctx, names)
	}
}

// Delete implements [store.Storage]. It does nothing: what this node does not need any more, others may.
func (n *Node) Delete(context.Context, string) error { return nil }

// List implements [store.Storage]. It lists nothing.
func (n *Node) List(context.Context, string, bool) ([]string, error) { return nil, nil }
