package replica

import (
	"context"
	"errors"
	"path"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	toldFolder = "told"
	maxTold    = 64 << 10
)

// errTooMuch is the error of what is too large to be told.
var errTooMuch = errors.New("more than 64 KiB are to be told")

// Tell stores what only this process knows, such as of its visitors, for the leader: at most 64 KiB.
func (n *Node) Tell(ctx context.Context, data []byte) error {
	if len(data) > maxTold {
		return errTooMuch
	}
	return n.shared().Store(ctx, path.Join(n.Prefix, toldFolder, n.ID), data)
}

// Told yields what other processes have told, once. Nothing is told by a storage that lists nothing.
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
		if err == nil {
			err = store.Delete(ctx, n.shared(), key)
		}
		if err != nil {
			return err
		}
		yield(data)
	}
	return nil
}
