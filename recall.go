package sitemap

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// documentNote is what is kept of a document besides its bytes.
type documentNote struct {
	Kind     documentKind `json:"kind"`
	Size     int64        `json:"size"`
	TextSize int64        `json:"text,omitempty"`
	ETag     string       `json:"etag"`
	Modified int64        `json:"modified"`
	Pages    int          `json:"pages,omitempty"`
	First    string       `json:"first,omitempty"`
	Newest   int64        `json:"newest,omitempty"`
	Day      bool         `json:"day,omitempty"`
}

// The names of documents in a book: the index's, and what goes before a shard's suffix.
const (
	indexTitle = "index"
	shardTitle = "shard"
)

func titleOf(d *document) string {
	if d.suffix == "" {
		return indexTitle
	}
	return shardTitle + d.suffix
}

// shelve puts a snapshot into a draft, to be served after a restart as it is.
func (s *Snapshot) shelve(d *state.Draft) error {
	for _, doc := range s.bySuffix {
		title := titleOf(doc)
		if d.KeepDocument(title, doc.sum) {
			continue
		}
		note, err := json.Marshal(documentNote{
			Kind: doc.kind, Size: doc.size, TextSize: doc.textSize, ETag: doc.etag, Modified: doc.modified.Unix(),
			Pages: doc.pages, First: doc.first, Newest: doc.newest.lastMod, Day: doc.newest.day,
		})
		if err != nil {
			return err
		}
		if err := d.PutDocument(title, doc.sum, note, doc.gzip); err != nil {
			return fmt.Errorf("writing the state: %w", err)
		}
	}
	return nil
}

// recalled is the snapshot of a book; nil: it has none.
func recalled(ctx context.Context, book *state.Book) (*Snapshot, error) {
	n, err := readNotes(book)
	if err != nil {
		return nil, err
	}
	all, err := book.Documents(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var index *document
	var shards []*document
	for _, kept := range all {
		d, err := recalledDocument(kept)
		switch {
		case err != nil:
			return nil, err
		case d.suffix == "":
			index = d
		default:
			shards = append(shards, d)
		}
	}
	if index == nil || (index.kind == kindURLSet) != (len(shards) == 0) {
		return nil, fmt.Errorf("%w: the documents do not belong together", state.ErrUnusable)
	}
	slices.SortFunc(shards, func(a, b *document) int { return strings.Compare(a.first, b.first) })
	var names Snapshot
	for _, r := range n.Retired {
		names.retired = append(names.retired, retiredName{r.Suffix, r.First, time.Unix(r.At, 0)})
	}
	if len(shards) == 0 {
		return newSnapshot(nil, []*document{index}, &names, time.Time{}), nil
	}
	return newSnapshot(index, shards, &names, time.Time{}), nil
}

func recalledDocument(kept state.Document) (*document, error) {
	d := &document{sum: kept.Sum, gzip: kept.Data}
	if kept.Name != indexTitle {
		d.suffix = strings.TrimPrefix(kept.Name, shardTitle)
		if !isShardSuffix(d.suffix) {
			return nil, fmt.Errorf("%w: '%.40s' is no document's name", state.ErrUnusable, kept.Name)
		}
	}
	var note documentNote
	if err := json.Unmarshal(kept.Meta, &note); err != nil {
		return nil, fmt.Errorf("%w: %w", state.ErrUnusable, err)
	}
	d.kind, d.size, d.textSize, d.etag = note.Kind, note.Size, note.TextSize, note.ETag
	d.modified = time.Unix(note.Modified, 0).UTC()
	d.pages, d.first, d.newest = note.Pages, note.First, newestPage{note.Newest, note.Day}
	d.setHeaders()
	return d, nil
}

// statePrefix is where what is known of a site's pages is kept, a folder whose name
// says which site it is.
func (s *site) statePrefix() string {
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s.base, "https://"), "http://")))
	sum := keyOf(s.handler.identity(), s.id.address)
	return strings.TrimLeft(name[:min(len(name), 80)], ".") + "-" + hex.EncodeToString([]byte(sum[:8]))
}

// recall serves what was served before a restart.
func (s *site) recall(ctx context.Context) {
	if s.visitors || s.handler.settings.manners.off {
		return
	}
	if s.shelf.lock(ctx) != nil {
		return
	}
	defer s.shelf.unlock()
	err := s.shelf.open(ctx)
	book := s.shelf.book.Load()
	if book == nil {
		return
	}
	var snapshot *Snapshot
	if err == nil {
		if snapshot, err = recalled(ctx, book); err != nil {
			s.shelf.book.Store(book.Fresh())
		}
	}
	s.sayState(err)
	if snapshot == nil {
		return
	}
	s.hold(keyOf("recalled", s.shelfKey))
	held := s.held.Load()
	if held.snapshot.CompareAndSwap(nil, snapshot) {
		n, _ := readNotes(book) // as recalled did
		held.recalled.Store(&n.Settings)
	}
	s.markReady()
}

// keep commits what was learnt in a refresh that is believed. Under the shelf's lock.
func (s *site) keep(ctx context.Context, result outcome) {
	sh := s.shelf
	book := sh.book.Load()
	if book == nil {
		return
	}
	var err error
	switch {
	case result.book != nil:
		if book, err = result.book.Commit(ctx); err != nil {
			result.discard(ctx)
		}
	case result.snapshot == nil:
		book, err = withoutDocuments(ctx, book)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.sayState(err)
			sh.drop(err)
		}
		return
	}
	sh.book.Store(book)
	sh.changed.Store(false)
	for i := range s.verifiers {
		if result.book != nil {
			s.verifiers[i].due.Store(0)
		}
	}
	s.app.library.check()
}

// withoutDocuments is a book that serves nothing after a restart.
func withoutDocuments(ctx context.Context, book *state.Book) (*state.Book, error) {
	d := book.Draft(ctx, 1)
	defer d.Abort()
	if err := book.Records(ctx, d.Keep); err != nil {
		return nil, err
	}
	return d.Commit(ctx)
}
