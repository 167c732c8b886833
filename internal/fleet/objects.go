package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// An object is an immutable value that is named by the hash of its content. It is stored in parts of 256 KiB: the first
// that is smaller, or after which there is none, is the last.
const (
	partSize     = 256 << 10
	folder       = "objects"
	manifestName = "manifest.json" // in a store's keys
	garbageKey   = "garbage"       // of versions before the ledger
	maxProbes    = 3
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

	// A part that is smaller than the others, or none, is the last.
	for i := 0; err == nil && len(data) == i*partSize; i++ {
		var part []byte
		part, err = n.read(ctx, path.Join(folder, partName(name, i)))
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
	// A storage may show a new value of current before the objects that were stored before it.
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
	data, err := n.read(ctx, path.Join(folder, partName(object, 0)))
	return err == nil && data != nil
}

// named returns the names of a manifest's object and of those that it names.
func (n *Node) named(manifest string, data []byte) map[string]bool {
	names := map[string]bool{manifest: true}
	if n.Value {
		return names
	}
	for _, match := range objectPattern.FindAllSubmatch(data, -1) {
		names[string(match[1])] = true
	}
	return names
}

// namesOf returns what a manifest names; nil: it cannot be loaded. If there is none, it is what the one before has
// named, which the storage may have lost.
func (n *Node) namesOf(ctx context.Context, manifest string) map[string]bool {
	n.mu.Lock()
	names := n.names
	isKnown := names != nil && n.namedBy == manifest
	n.mu.Unlock()
	if isKnown || manifest == "" {
		return names
	}
	data, err := n.object(ctx, manifest)
	if err != nil {
		return nil
	}
	names = n.named(manifest, data)
	n.know(manifest, names)
	return names
}

// know remembers what a manifest names.
func (n *Node) know(manifest string, names map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names = names
	n.namedBy = manifest
}

// Store implements [store.Storage]. Storing the manifest commits the generation, with all objects that it names: see
// [Node.Settled]. The error matches ErrLost if there is a newer one than was adopted. Other values than objects are not
// kept.
func (n *Node) Store(ctx context.Context, key string, value []byte) error {
	name := path.Base(key)
	isManifest := name == manifestName
	if isManifest {
		name = store.Hash(value)
	}
	if !hashPattern.MatchString(name) {
		return nil
	}
	n.mu.Lock()
	n.uncopied[name] = value
	n.mu.Unlock()
	// Objects are stored by the commit, which enters them into the ledger first.
	if isManifest {
		return n.commit(ctx, name, n.named(name, value))
	}
	return nil
}

// storeNew stores the objects that a commit has and the storage does not have yet.
func (n *Node) storeNew(ctx context.Context, named map[string]bool) error {
	n.mu.Lock()
	objects := maps.Clone(n.uncopied)
	n.mu.Unlock()
	for name, data := range objects {
		if !named[name] {
			continue
		}
		err := n.storeObject(ctx, name, data, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// Load implements [store.Storage]. The manifest is that of the newest generation, which the next commit follows after
// [Node.Adopt]. If the storage fails before the node has seen any, it is that of the local copies. If it is lost, there
// is none.
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

// Adopt says that the node goes on from the manifest that it has loaded last, or begins anew if there was none. There
// may be a newer one already: see [Node.Newer]. If some is damaged, this node refreshes the site at once.
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
	// Only now, as others can load what was committed: a slow disk of this node does not hold them up.
	for name, data := range uncopied {
		n.copies.store(ctx, path.Join(folder, name), data)
	}
	n.copies.setCurrent(ctx, c)
	names := n.namesOf(ctx, c.Manifest)
	if names != nil {
		n.copies.keep(ctx, names)
	}
}

// Delete implements [store.Storage]. It does nothing: what this node does not need any more, others may.
func (n *Node) Delete(context.Context, string) error { return nil }

// List implements [store.Storage]. It lists nothing.
func (n *Node) List(context.Context, string, bool) ([]string, error) { return nil, nil }
