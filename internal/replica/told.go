package replica

import (
	"context"
	"crypto/rand"
	"path"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	toldFolder = "told"
	writtenKey = "written"
)

// Tell stores what only this process knows, such as of its visitors, for the leader.
func (n *Node) Tell(ctx context.Context, data []byte) error {
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
			err = record.Delete(ctx, n.shared(), key)
		}
		if err != nil {
			return err
		}
		yield(data)
	}
	return nil
}

// TellWrite tells the leader that something may have been saved. HearsWrite does not hear it.
func (n *Node) TellWrite(ctx context.Context) error {
	id := rand.Text()
	n.written.Store(id)
	return n.shared().Store(ctx, path.Join(n.Prefix, writtenKey), []byte(id))
}

// HearsWrite reports whether another process has told of a write since the last call.
func (n *Node) HearsWrite(ctx context.Context) bool {
	data, err := n.shared().Load(ctx, path.Join(n.Prefix, writtenKey))
	// Around a reload, two configurations may poll.
	return err == nil && n.written.Swap(string(data)) != string(data)
}
