package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	folder    = "objects"
	partSize  = 256 << 10 // which any storage takes
	keepFor   = time.Hour // what is not named any more: a slow process may still load it
	listEvery = time.Hour
	atOnce    = 100 // objects that a poll deletes at most
)

// Push makes what the local store has the newest. The error matches ErrFollows if another process leads.
func (n *Node) Push(ctx context.Context) error {
	if !n.turn.Take(ctx) {
		return ctx.Err()
	}
	defer n.turn.Release()
	if n.role != leads {
		return ErrFollows
	}
	_, err := n.step(ctx)
	n.isUnserved = n.isUnserved || err != nil
	if err == nil && n.role != leads {
		return ErrFollows
	}
	return err
}

// push stores what the storage does not have, and then says that the leader lives, and what is the newest.
func (n *Node) push(ctx context.Context, has local) error {
	for name, key := range has.keys {
		if n.named[name] != "" {
			continue
		}
		// What takes long is no reason for another process to lead.
		if time.Since(n.seenAt) > n.poll() {
			err := n.write(ctx, n.seen, leads)
			if err != nil {
				return err
			}
		}
		err := n.pushObject(ctx, name, has)
		if err != nil {
			return fmt.Errorf("pushing %s: %w", name, err)
		}
		n.named[name] = key // so the next push goes on where this one fails
	}
	next := n.seen
	next.Manifest = has.manifest
	next.Value = has.value
	isNew := next.Manifest != n.seen.Manifest
	err := n.write(ctx, next, leads)
	if err != nil {
		return err
	}
	n.name(has.keys)
	if isNew {
		n.notePush()
	}
	return nil
}

// pushObject stores an object that the local storage has.
func (n *Node) pushObject(ctx context.Context, name string, has local) (err error) {
	data, isLoaded := has.loaded[name]
	if !isLoaded {
		data, err = n.Local.Load(ctx, has.keys[name])
	}
	if err != nil {
		return err
	}
	if record.Hash(data) != name {
		return record.ErrDamaged
	}
	for i := 0; i == 0 || i*partSize < len(data); i++ {
		part := n.partKey(name, i)
		n.parts[part] = time.Now()
		err = n.shared().Store(ctx, part, data[i*partSize:min((i+1)*partSize, len(data))])
		if err != nil {
			return err
		}
	}
	return nil
}

// pullNewer loads what is the newest into the local store, unless that has it.
func (n *Node) pullNewer(ctx context.Context) (isChanged bool, err error) {
	has, err := n.local(ctx)
	if err != nil {
		return false, err
	}
	isValueNew := n.seen.Value != "" && n.seen.Value != has.value
	isNew := n.seen.Manifest != "" && n.seen.Manifest != has.manifest
	// The value comes first: who loads the records is told by their change to load it, too.
	if isValueNew {
		err = n.pullObject(ctx, n.seen.Value, n.Value)
	}
	if isNew && err == nil {
		err = n.pull(ctx, has)
	}
	return (isValueNew || isNew) && err == nil, err
}

// pull loads the newest generation into the local store: the manifest last.
func (n *Node) pull(ctx context.Context, has local) error {
	release, err := n.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	manifest, err := n.object(ctx, n.seen.Manifest)
	if err != nil {
		return err
	}
	for name, key := range n.keysOf(manifest) {
		if has.keys[name] != "" {
			continue
		}
		err = n.pullObject(ctx, name, key)
		if err != nil {
			return err
		}
	}
	return n.Local.Store(ctx, n.manifestKey(), manifest)
}

// pullObject loads an object into the local storage, unless that has it. What cannot be read there is loaded again.
func (n *Node) pullObject(ctx context.Context, name, key string) error {
	data, _ := n.Local.Load(ctx, key)
	if record.Hash(data) == name {
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
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		data = append(data, part...)
	}
	if record.Hash(data) != name {
		return nil, fmt.Errorf("object %s is missing, damaged or not visible yet", name)
	}
	return data, nil
}

// partKey returns the key of a part of an object.
func (n *Node) partKey(object string, i int) string {
	return path.Join(n.Prefix, folder, fmt.Sprintf("%s.%d", object, i))
}

// objectOf returns the name of the object that has a part, by its key.
func objectOf(part string) string {
	object, _, _ := strings.Cut(path.Base(part), ".")
	return object
}

// name notes which objects current names from now on.
func (n *Node) name(keys map[string]string) {
	for part := range n.parts {
		if n.named[objectOf(part)] != "" {
			n.parts[part] = time.Now()
		}
	}
	for object := range n.named {
		n.parts[n.partKey(object, 0)] = time.Now()
	}
	n.named = keys
}

// look finds out whether the storage has lost what was pushed, as just before current was written again, or amid a push: any
// object may tell.
func (n *Node) look(ctx context.Context) error {
	for object := range n.named { // in no order
		_, err := n.shared().Load(ctx, n.partKey(object, 0))
		if errors.Is(err, fs.ErrNotExist) {
			clear(n.named)
			return nil
		}
		return err
	}
	return nil
}

// collect deletes what was not named for an hour. What cannot be deleted is tried again at the next poll.
func (n *Node) collect(ctx context.Context) {
	if time.Since(n.listed) > listEvery {
		n.list(ctx)
	}
	deleted := 0
	for part, at := range n.parts {
		isKept := n.named[objectOf(part)] != "" || time.Since(at) < keepFor
		if isKept {
			continue
		}
		isLate := time.Since(n.seenAt) > n.poll()/2 // it is to write current in time
		if isLate || deleted == atOnce || record.Delete(ctx, n.shared(), part) != nil {
			return
		}
		delete(n.parts, part)
		deleted++
	}
}

// list looks for what earlier leaders have left, and for what is lost, which the next poll pushes.
func (n *Node) list(ctx context.Context) {
	keys, _ := n.shared().List(ctx, path.Join(n.Prefix, folder), false)
	n.listed = time.Now()
	lost := maps.Clone(n.named)
	for _, key := range keys {
		part := path.Join(n.Prefix, folder, path.Base(key)) // some storages list the folder, too
		delete(lost, objectOf(part))
		_, isKnown := n.parts[part]
		if !isKnown {
			n.parts[part] = time.Now()
		}
	}
	isOfUse := lost[n.seen.Manifest] == "" // as where nothing is published yet
	n.mu.Lock()
	n.status.NoList = !isOfUse
	n.mu.Unlock()
	if !isOfUse {
		return
	}
	for object := range lost {
		delete(n.named, object)
	}
}
