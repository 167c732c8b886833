package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"sync/atomic"
)

// version is that of manifests, and oldest the first one that is read: chunks tell by themselves how old they are.
const (
	version = 3
	oldest  = 2
)

// manifest describes a generation. It is stored as a line of JSON and, on the next line, its hash.
type manifest struct {
	Version   int              `json:"version"`
	Settings  uint64           `json:"settings,string"`
	Routes    uint64           `json:"routes,string"`
	Meta      json.RawMessage  `json:"meta,omitempty"`
	Chunks    []Chunk          `json:"chunks"`
	Documents []StoredDocument `json:"documents,omitempty"`

	lost bool // see Generation.Lost; not stored
}

// Chunk describes the records of one run of paths: from First, "" in the first, up to the next chunk's First.
type Chunk struct {
	First  string  `json:"first"`
	Count  int     `json:"count"`
	Digest uint64  `json:"digest,string"`    // of the candidates in its range; 0: there are none, or it is not known
	Due    int64   `json:"due"`              // when its first page is due, in Unix seconds
	Moved  int64   `json:"moved,omitempty"`  // the latest of Record.Moved; 0: no record has one
	Object *object `json:"object,omitempty"` // has the records: equal Names, equal records; nil: there are none

	Workload
}

// Workload is what the records of a chunk mean for those who plan fetches, so that they need not read them.
type Workload struct {
	Upstream int   `json:"upstream,omitempty"` // pages of upstreams that were fetched
	Hubs     int   `json:"hubs,omitempty"`     // fetches of hubs among them a day
	Urgent   int64 `json:"urgent,omitempty"`   // when the first page is due by confirmation or failure; 0: none is

	// Followed is when the links were followed of the page for which that is longest ago; 0: none has links.
	Followed int64 `json:"followed,omitempty"`
}

// add adds a record.
func (w *Workload) add(rec *Record) {
	if rec.Fetched == 0 || rec.Absent != 0 || rec.Flags&(Blocked|Disallowed) != 0 {
		return // it is not fetched again
	}
	if rec.Flags&Made != 0 {
		w.Upstream++
		w.Hubs += hubFetches(rec)
	}
	switch rec.Cause {
	case ByConfirmation, ByFailure, ByWrite:
		w.Urgent = earliest(w.Urgent, rec.Due)
	}
	hasLinks := rec.Status == 200 && rec.Flags&Document != 0 || rec.Status/100 == 3
	if hasLinks {
		w.Followed = earliest(w.Followed, rec.FollowedAt())
	}
}

// hubFetches returns how often a page of an upstream is fetched a day because it is a hub. Hubs of the site itself take
// nothing of what known pages of upstreams may take.
func hubFetches(rec *Record) int {
	if rec.Cause != ByHub || rec.Due <= rec.Fetched {
		return 0
	}
	return int(daySeconds / (rec.Due - rec.Fetched))
}

// earliest returns the earlier of two times of which 0 is none.
func earliest(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

const daySeconds = 24 * 3600

// Sum returns the workload of several chunks.
func Sum(chunks []Chunk) (all Workload) {
	for i := range chunks {
		c := &chunks[i].Workload
		all.Upstream += c.Upstream
		all.Hubs += c.Hubs
		all.Urgent = earliest(all.Urgent, c.Urgent)
		all.Followed = earliest(all.Followed, c.Followed)
	}
	return all
}

// StoredDocument is one of the caller's own values that are kept with the records.
type StoredDocument struct {
	Name   string          `json:"name"`
	Meta   json.RawMessage `json:"meta,omitempty"`
	Object *object         `json:"object"`
}

// NewDocument returns a document of data, which is not nil and must not be modified later. It is held in memory
// until a Commit has written it. meta is JSON or empty.
func NewDocument(name string, meta json.RawMessage, data []byte) StoredDocument {
	return StoredDocument{name, meta, newObject(data)}
}

// object is a value in the storage, named by its content. Generations share it.
type object struct {
	Name    string                 `json:"name"` // key below the prefix: folder and hash
	fresh   atomic.Pointer[[]byte] // the value, until a Commit has written it
	damaged atomic.Bool
}

func newObject(data []byte) *object {
	o := &object{Name: folder + Hash(data)}
	o.fresh.Store(&data)
	return o
}

// Hash returns the first 16 bytes of the SHA-256 of data, in hexadecimal, by which objects are named.
func Hash(data []byte) string { return fmt.Sprintf("%.16x", sha256.Sum256(data)) }

// ObjectName returns the key of an object by its hash, below the prefix of a store.
func ObjectName(hash string) string { return folder + hash }

// ObjectsOf returns the hashes of the objects that an encoded manifest names; none if it is no manifest of this version.
func ObjectsOf(encoded []byte) (hashes []string) {
	m, err := decodeManifest(encoded)
	if err != nil {
		return nil
	}
	for name := range m.objects() {
		hashes = append(hashes, path.Base(name))
	}
	return hashes
}

// IsManifest reports whether data are an encoded manifest.
func IsManifest(data []byte) bool {
	_, err := decodeManifest(data)
	return err == nil
}

var namePattern = regexp.MustCompile("^" + folder + "[0-9a-f]{32}$")

// objects returns all objects of the generation, by name.
func (m manifest) objects() map[string]*object {
	all := make(map[string]*object)
	for _, c := range m.Chunks {
		if c.Object != nil {
			all[c.Object.Name] = c.Object
		}
	}
	for _, d := range m.Documents {
		all[d.Object.Name] = d.Object
	}
	return all
}

// sound returns the manifest without what is damaged: chunks are empty instead.
func (m manifest) sound() manifest {
	m.Chunks = slices.Clone(m.Chunks)
	for i, c := range m.Chunks {
		if c.Object != nil && c.Object.damaged.Load() {
			m.Chunks[i] = Chunk{First: c.First}
			m.lost = true
		}
	}
	isDamaged := func(d StoredDocument) bool { return d.Object.damaged.Load() }
	m.Documents = slices.DeleteFunc(slices.Clone(m.Documents), isDamaged)
	return m
}

func emptyManifest() manifest { return manifest{Chunks: []Chunk{{}}} }

func (m manifest) encode() ([]byte, error) {
	m.Version = version
	line, err := json.Marshal(m)
	return fmt.Appendf(line, "\n%s\n", Hash(line)), err
}

// decodeManifest undoes encode. With an error, the manifest is an empty one.
func decodeManifest(data []byte) (m manifest, err error) {
	line, sum, _ := bytes.Cut(data, []byte{'\n'})
	err = json.Unmarshal(line, &m)
	if err != nil {
		return emptyManifest(), err
	}
	if string(sum) != Hash(line)+"\n" || !m.isValid() {
		return emptyManifest(), errors.New("modified, or of another version")
	}
	return m, nil
}

// isValid reports whether a manifest can be one: its hash only says that somebody wrote it as it is.
func (m manifest) isValid() bool {
	if m.Version < oldest || m.Version > version || len(m.Chunks) == 0 {
		return false
	}
	last := ""
	for i, c := range m.Chunks {
		isInOrder := (i > 0) == (c.First > last) // the first begins with ""
		isNone := c.Count == 0 && c.Object == nil
		if !isInOrder || c.Count < 0 || !isNone && !c.Object.isValid() {
			return false
		}
		last = c.First
	}
	isBad := func(d StoredDocument) bool { return !d.Object.isValid() }
	return !slices.ContainsFunc(m.Documents, isBad)
}

// isValid reports whether the name may become a key of the storage.
func (o *object) isValid() bool { return o != nil && namePattern.MatchString(o.Name) }
