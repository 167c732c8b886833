package replica

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

// errMalformed is the error of a value that the leader soon writes again.
var errMalformed = errors.New("what says who leads is damaged")

// read reads current; zero: there is none, or a malformed one for long.
func (n *Node) read(ctx context.Context) (current, error) {
	data, err := n.shared().Load(ctx, path.Join(n.Prefix, currentKey))
	isMissing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isMissing {
		return current{}, err
	}
	var c current
	err = json.Unmarshal(data, &c)
	if err == nil && c.Term > 0 {
		return c, nil
	}
	isRecent := time.Since(n.seenAt) < deadPolls*n.poll()
	if !isMissing && isRecent && n.role == follows {
		return current{}, errMalformed
	}
	clear(n.named) // the storage has lost all, or is down: a write tells
	return current{}, nil
}

// write writes current. The caller has the turn.
func (n *Node) write(ctx context.Context, next current, becomes role) error {
	begun := time.Now()
	n.beat++ // also after a write that has failed, which may be done yet
	next.Beat = n.beat
	next.Poll = n.poll()
	n.seeWritten = func() { n.see(next, begun, becomes) }
	data, _ := json.Marshal(next) // which has no field that fails
	err := n.shared().Store(ctx, path.Join(n.Prefix, currentKey), data)
	if err == nil {
		n.seeWritten()
	}
	return err
}
