package replica

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	toldFolder = "told"
	maxTold    = 64 << 10
)

// toldValue is what a process has told, by its hash, and since when it is the same.
type toldValue struct {
	hash  string
	since time.Time
}

// errTooMuch is the error of what is too large to be told.
var errTooMuch = errors.New("more than 64 KiB are to be told")

// Tell stores what only this process knows, such as of its visitors, for the leader: at most 64 KiB.
func (n *Node) Tell(ctx context.Context, data []byte) error {
	if len(data) > maxTold {
		return errTooMuch
	}
	return n.shared().Store(ctx, path.Join(n.Prefix, toldFolder, n.ID), data)
}

// Told yields what other processes have told, where that is new. What is the same for an hour is deleted: its process is
// gone, or knows nothing new. Nothing is told by a storage that lists nothing.
func (n *Node) Told(ctx context.Context, yield func(data []byte)) error {
	keys, err := n.shared().List(ctx, path.Join(n.Prefix, toldFolder), false)
	if err != nil {
		return nil // as before anybody has told anything
	}
	for _, key := range keys {
		id := path.Base(key)
		if id == n.ID || id == toldFolder {
			continue
		}
		key := path.Join(n.Prefix, toldFolder, id)
		data, err := n.shared().Load(ctx, key)
		if err != nil {
			return err
		}
		if err := n.takeTold(ctx, key, data, yield); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) takeTold(ctx context.Context, key string, data []byte, yield func(data []byte)) error {
	last, isKnown := n.told[key]
	hash := hashOf(data)
	if !isKnown || last.hash != hash {
		n.told[key] = toldValue{hash, time.Now()}
		yield(data)
		return nil
	}
	if time.Since(last.since) < keepFor {
		return nil
	}
	delete(n.told, key)
	return store.Delete(ctx, n.shared(), key)
}
