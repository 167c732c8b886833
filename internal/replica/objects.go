package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	folder    = "objects"
	partSize  = 256 << 10 // which any storage takes
	keepFor   = time.Hour // what is not named any more: a slow process may still load it
	listEvery = time.Hour
	atOnce    = 100 // objects that a poll deletes at most
)

// garbage is what a leader knows of the objects in the storage.
type garbage struct {
	stored  map[string]bool      // what the storage has of what current names; nil: that is not known
	dropped map[string]time.Time // since when objects are not named any more
	listed  time.Time
}

// Push makes what the local store has the newest. The error matches ErrFollows if another process leads.
func (n *Node) Push(ctx context.Context) error {
	if !n.turn.Take(ctx) {
		return ctx.Err()
	}
	defer n.turn.Release()
	c, err := n.read(ctx)
	if err != nil {
		return err
	}
	if n.leadsUntil.Load() == nil || c.compare(n.seen) > 0 {
		return ErrFollows // the next step follows
	}
	if c.Term == 0 {
		n.garbage.stored = nil // the storage has lost all
	}
	return n.push(ctx)
}

// push stores what the storage does not have, and then says that it is the newest.
func (n *Node) push(ctx context.Context) error {
	manifest, err := n.manifest(ctx)
	if err != nil {
		return err
	}
	value, err := n.local(ctx, n.Value)
	if err != nil {
		return err
	}
	next := n.seen
	next.Manifest = hashOf(manifest)
	next.Value = hashOf(value)
	names := named(manifest, next.Value)
	loaded := map[string][]byte{next.Manifest: manifest, next.Value: value}
	for name := range names {
		// What takes long is no reason for another process to lead.
		if time.Since(n.wroteAt) > n.poll() {
			err = n.write(ctx, n.seen)
			if err != nil {
				return err
			}
			next.Beat = n.seen.Beat
		}
		if n.garbage.stored[name] {
			continue
		}
		err = n.pushObject(ctx, name, loaded[name])
		if err != nil {
			return fmt.Errorf("pushing %s: %w", name, err)
		}
	}
	isNew := next.Manifest != n.seen.Manifest
	err = n.write(ctx, next)
	if err != nil {
		return err
	}
	for name := range n.garbage.stored {
		n.garbage.dropped[name] = time.Now()
	}
	for name := range names {
		delete(n.garbage.dropped, name)
	}
	n.garbage.stored = names
	if isNew {
		n.notePush()
	}
	return nil
}

// pushObject stores an object, which is loaded from the local store if data is nil.
func (n *Node) pushObject(ctx context.Context, name string, data []byte) (err error) {
	if data == nil {
		data, err = n.Local.Load(ctx, path.Join(n.Records, store.ObjectName(name)))
	}
	if err != nil {
		return err
	}
	if hashOf(data) != name {
		return store.ErrDamaged
	}
	return n.storeObject(ctx, name, data)
}

// pullNewer loads what is the newest into the local store, unless that has it.
func (n *Node) pullNewer(ctx context.Context) (isChanged bool, err error) {
	manifest, err := n.manifest(ctx)
	if err != nil {
		return false, err
	}
	value, err := n.local(ctx, n.Value)
	if err != nil {
		return false, err
	}
	// The value comes first: who loads the records is told by their change to load it, too.
	hasValue := n.seen.Value == "" || n.seen.Value == hashOf(value)
	if !hasValue {
		err = n.pullObject(ctx, n.seen.Value, n.Value)
	}
	hasManifest := n.seen.Manifest == "" || n.seen.Manifest == hashOf(manifest)
	if err == nil && !hasManifest {
		err = n.pull(ctx, named(manifest, ""))
	}
	isMissing := !hasValue || !hasManifest
	return isMissing && err == nil, err
}

// pull loads the newest generation into the local store, which has some objects: the manifest last.
func (n *Node) pull(ctx context.Context, has map[string]bool) error {
	release, err := n.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	manifest, err := n.object(ctx, n.seen.Manifest)
	if err != nil {
		return err
	}
	for _, name := range store.ObjectsOf(manifest) {
		if has[name] {
			continue
		}
		err = n.pullObject(ctx, name, path.Join(n.Records, store.ObjectName(name)))
		if err != nil {
			return err
		}
	}
	err = n.Local.Store(ctx, path.Join(n.Records, store.ManifestName), manifest)
	if err == nil {
		n.note(func(s *Status) { s.Pulled = time.Now() })
	}
	return err
}

// pullObject loads an object into the local storage, unless that has it. What cannot be read there is loaded again.
func (n *Node) pullObject(ctx context.Context, name, key string) error {
	data, _ := n.local(ctx, key)
	if hashOf(data) == name {
		return nil
	}
	data, err := n.object(ctx, name)
	if err != nil {
		return err
	}
	return n.Local.Store(ctx, key, data)
}

// object loads an object, in its parts: one that is smaller than partSize is the last.
func (n *Node) object(ctx context.Context, name string) (data []byte, err error) {
	for i := 0; len(data) == i*partSize; i++ {
		part, err := n.shared().Load(ctx, n.partKey(name, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(part) == 0 {
			break
		}
		data = append(data, part...)
	}
	if hashOf(data) != name {
		return nil, fmt.Errorf("object %s is missing, damaged or not visible yet", name)
	}
	return data, nil
}

func (n *Node) storeObject(ctx context.Context, name string, data []byte) error {
	for i := 0; i == 0 || i*partSize < len(data); i++ {
		part := data[i*partSize : min((i+1)*partSize, len(data))]
		err := n.shared().Store(ctx, n.partKey(name, i), part)
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) partKey(name string, i int) string {
	return path.Join(n.Prefix, folder, fmt.Sprintf("%s.%d", name, i))
}

// named returns the names of a manifest, nil: none, of what it names, and of a value.
func named(manifest []byte, value string) map[string]bool {
	names := make(map[string]bool)
	if manifest != nil {
		names[hashOf(manifest)] = true
	}
	if value != "" {
		names[value] = true
	}
	for _, name := range store.ObjectsOf(manifest) {
		names[name] = true
	}
	return names
}

// collect deletes what was not named for an hour. What cannot be deleted is tried again at the next poll.
func (n *Node) collect(ctx context.Context) {
	if time.Since(n.garbage.listed) > listEvery {
		n.list(ctx)
	}
	deleted := 0
	for name, at := range n.garbage.dropped {
		if time.Since(at) < keepFor {
			continue
		}
		if deleted == atOnce || n.deleteObject(ctx, name) != nil {
			return
		}
		delete(n.garbage.dropped, name)
		deleted++
	}
}

// list looks for what earlier leaders have left. What is lost is stored again by the next push.
func (n *Node) list(ctx context.Context) {
	keys, err := n.shared().List(ctx, path.Join(n.Prefix, folder), false)
	n.garbage.listed = time.Now()
	there := make(map[string]bool)
	for _, key := range keys {
		name, _, _ := strings.Cut(path.Base(key), ".")
		there[name] = true
	}
	isOfUse := err == nil && there[n.seen.Manifest]
	n.note(func(s *Status) { s.NoList = !isOfUse && n.seen.Manifest != "" })
	if !isOfUse {
		return
	}
	for name := range there {
		_, isKnown := n.garbage.dropped[name]
		if !n.garbage.stored[name] && !isKnown {
			n.garbage.dropped[name] = time.Now()
		}
	}
	for name := range n.garbage.stored {
		if !there[name] {
			n.garbage.stored = nil // the next poll pushes all
			return
		}
	}
}

// deleteObject deletes an object, the first of its parts, by which it is found, last.
func (n *Node) deleteObject(ctx context.Context, name string) error {
	last := 0
	for ; ; last++ {
		part, err := n.shared().Load(ctx, n.partKey(name, last))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(part) < partSize {
			break
		}
	}
	for i := last; i >= 0; i-- {
		err := store.Delete(ctx, n.shared(), n.partKey(name, i))
		if err != nil {
			return err
		}
	}
	return nil
}
