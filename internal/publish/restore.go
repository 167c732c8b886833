package publish

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/shard"
)

// Stored is a document as it is stored.
type Stored struct {
	Name string          // of a file, such as "sitemap-0123456789ab.xml.gz"
	Meta json.RawMessage // a [Document] without its bytes
	Gzip []byte          // shared with the document
}

const storedStem = "sitemap" // what names of stored documents begin with

// snapshotMeta is what a snapshot says besides its documents.
type snapshotMeta struct {
	Retired []retired      `json:"retired,omitempty"`
	LeftOut map[string]int `json:"left_out,omitempty"`
}

var errMalformed = errors.New("malformed")

// Documents returns the snapshot in the form from which [Restore] makes it again.
func (s *Snapshot) Documents() (meta json.RawMessage, documents []Stored, err error) {
	for _, d := range s.all() {
		meta, err := json.Marshal(d)
		if err != nil {
			return nil, nil, err
		}
		documents = append(documents, Stored{storedStem + d.Suffix + FormGzip.Extension(), meta, d.Gzip})
	}
	meta, err = json.Marshal(snapshotMeta{s.retired, s.LeftOut})
	return meta, documents, err
}

// Restore makes the snapshot of what [Snapshot.Documents] returned. What cannot be of a snapshot is an error.
// Documents are not decompressed: whoever stores bytes knows whether they are the same.
func Restore(meta json.RawMessage, documents []Stored) (*Snapshot, error) {
	var m snapshotMeta
	if err := json.Unmarshal(meta, &m); err != nil {
		return nil, fmt.Errorf("restoring the sitemap: %w", err)
	}
	all := make(map[string]*Document)
	var shards []*Document
	for _, stored := range documents {
		d, err := stored.document()
		if err != nil || all[d.Suffix] != nil {
			return nil, fmt.Errorf("restoring document '%.40s': %w", stored.Name, cmp.Or(err, errMalformed))
		}
		if all[d.Suffix] = d; d.Suffix != "" {
			shards = append(shards, d)
		}
	}
	slices.SortFunc(shards, func(a, b *Document) int { return strings.Compare(a.First, b.First) })
	index := all[""]
	ok := index != nil && index.Index == (len(shards) > 0) && len(m.Retired) <= maxRetired
	for i, d := range shards {
		ok = ok && !d.Index && (i == 0 || d.First > shards[i-1].First)
	}
	for _, r := range m.Retired {
		ok = ok && isShardSuffix(r.Suffix) && strings.HasPrefix(r.First, "/")
	}
	if !ok {
		return nil, fmt.Errorf("restoring the sitemap: %w", errMalformed)
	}
	return newSnapshot(index, shards, &Snapshot{retired: m.Retired}, time.Time{}, m.LeftOut), nil
}

func (stored Stored) document() (*Document, error) {
	d := &Document{Gzip: stored.Gzip}
	if err := json.Unmarshal(stored.Meta, d); err != nil {
		return nil, err
	}
	suffix, form, ok := ParseName(stored.Name, storedStem)
	if !ok || form != FormGzip || !d.valid() {
		return nil, errMalformed
	}
	d.Suffix = suffix
	d.setHeaders()
	return d, nil
}

// valid reports whether a document can say this, and its gzip ends with its size (RFC 1952, section 2.3.1).
func (d *Document) valid() bool {
	end := len(d.Gzip) - 4
	switch {
	case end < 14, int64(binary.LittleEndian.Uint32(d.Gzip[end:])) != d.Size, d.Size > maxBytes,
		d.ETag == "", strings.Trim(d.ETag, "0123456789abcdefghijklmnopqrstuvwxyz") != "",
		d.Modified.IsZero(), d.Modified != d.Modified.UTC().Truncate(time.Second):
		return false
	case d.Index:
		return d.Pages == 0 && d.First == "" && d.TextSize == 0
	}
	return d.Pages > 0 && d.Pages <= shard.DefaultMaxPages && strings.HasPrefix(d.First, "/") &&
		d.TextSize > 0 && d.TextSize < d.Size
}
