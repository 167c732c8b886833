package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// maxNeighbors is how many other sites are found: a state folder has one for each name that was ever configured.
const maxNeighbors = 20_000

// IsBare reports whether the site has no records, neither in its storage, which is open, nor in memory. Where processes
// share the site, it never is: see [Shared] for what they inherit.
func (r *Records) IsBare() bool {
	return r.store != nil && r.shared == nil && r.Generation.Len() == 0
}

// Neighbors returns the prefixes of other sites in the same folder of the storage, in order.
func (r *Records) Neighbors(ctx context.Context) ([]string, error) {
	keys, err := r.storage.List(ctx, path.Dir(r.prefix), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", path.Dir(r.prefix), err)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == r.prefix })
	slices.Sort(keys)
	return keys[:min(len(keys), maxNeighbors)], nil
}

// Peek returns the records of a neighbor, and decodes the meta of its last [Records.Write] into meta. Nothing of it is
// changed, also where it is damaged. The generation is nil if there is none.
func (r *Records) Peek(ctx context.Context, prefix string, meta any) (*store.Generation, error) {
	opened, err := store.Open(ctx, readOnly{r.storage}, store.Options{Prefix: prefix, Now: r.now})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", prefix, err)
	}
	g := opened.Last()
	if g.Len() == 0 || len(g.Meta()) == 0 { // or the manifest is damaged
		return nil, nil
	}
	err = json.Unmarshal(g.Meta(), &kept{Meta: meta})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", prefix, err)
	}
	return g, nil
}

// readOnly is a storage of which nothing is changed: what is damaged is not set aside.
type readOnly struct{ store.Storage }

func (readOnly) Store(context.Context, string, []byte) error { return nil }

func (readOnly) Delete(context.Context, string) error { return nil }
