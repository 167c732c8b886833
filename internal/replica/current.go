package replica

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

const currentKey = "current"

// current is the value that says who leads, and what is the newest. Later ones are greater.
type current struct {
	Term     uint64        `json:"term"`               // greater by one at each claim
	Node     string        `json:"node"`               // ID of the leader
	Name     string        `json:"name"`               // of its machine
	Beat     uint64        `json:"beat"`               // greater by one at each write of the leader
	Poll     time.Duration `json:"poll"`               // between two writes, in nanoseconds
	Manifest string        `json:"manifest,omitempty"` // object; "": nothing is stored
	Value    string        `json:"value,omitempty"`    // object; "": there is none
	Resigned bool          `json:"resigned,omitempty"` // anyone may lead at once
}

func (c current) compare(d current) int {
	return cmp.Or(cmp.Compare(c.Term, d.Term), strings.Compare(c.Node, d.Node), cmp.Compare(c.Beat, d.Beat))
}

// read reads current; zero: there is none, or a malformed one.
func (n *Node) read(ctx context.Context) (c current, err error) {
	data, err := n.shared().Load(ctx, path.Join(n.Prefix, currentKey))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	malformed := json.Unmarshal(data, &c)
	isRecent := time.Since(n.seenAt) < deadPolls*n.poll()
	if malformed != nil && err == nil && isRecent && !n.claimed {
		return current{}, fmt.Errorf("reading who leads: %w", malformed) // the leader writes it again
	}
	if malformed != nil || c.Term == 0 {
		return current{}, nil // which a storage may say that is down: a write tells
	}
	n.isReached.Store(true)
	return c, nil
}

// write writes current. The caller has the turn.
func (n *Node) write(ctx context.Context, next current) error {
	begun := time.Now()
	next.Beat++
	next.Poll = n.poll()
	data, _ := json.Marshal(next) // which has no field that fails
	err := n.shared().Store(ctx, path.Join(n.Prefix, currentKey), data)
	n.seen.Beat = max(n.seen.Beat, next.Beat) // a write that has failed may be done yet
	if err != nil {
		return err
	}
	n.isReached.Store(true)
	n.seen = next
	n.seenAt = begun
	n.wroteAt = begun
	if n.leadsUntil.Load() != nil {
		until := begun.Add((deadPolls - 1) * next.Poll)
		n.leadsUntil.Store(&until)
	}
	return nil
}
