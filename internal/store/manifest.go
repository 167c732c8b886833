package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync/atomic"
)

const version = 1

// manifest is what a generation consists of. It is stored as a line of JSON and, on the
// next line, the SHA-256 of the first.
type manifest struct {
	Version   int              `json:"version"`
	Settings  uint64           `json:"settings,string"`
	Routes    uint64           `json:"routes,string"`
	Meta      json.RawMessage  `json:"meta,omitempty"`
	Chunks    []Chunk          `json:"chunks"`
	Documents []StoredDocument `json:"documents,omitempty"`
}

// Chunk describes the records of one run of paths, from First up to the next chunk's
// First. The first chunk's First is "".
type Chunk struct {
	First  string  `json:"first"`
	Count  int     `json:"count"`
	Digest uint64  `json:"digest,string"`    // of the candidates in its range; 0: not known
	Due    int64   `json:"due"`              // when its first page is due, in Unix seconds
	Object *object `json:"object,omitempty"` // holds the records; nil: there are none
}

// StoredDocument is one of the caller's own values that are kept with the records.
type StoredDocument struct {
	Name   string          `json:"name"`
	Meta   json.RawMessage `json:"meta,omitempty"`
	Object *object         `json:"object"`
}

// NewDocument returns a document of data, which must not be modified any more. It is held
// in memory until a Commit has written it. meta is JSON or empty.
func NewDocument(name string, meta json.RawMessage, data []byte) StoredDocument {
	return StoredDocument{name, meta, newObject(data)}
}

// object is a value in the storage, named by its content. Generations share it.
type object struct {
	name    string                 // the first 16 bytes of its SHA-256, in hexadecimal
	fresh   atomic.Pointer[[]byte] // until a Commit has written it
	damaged atomic.Bool
}

func newObject(data []byte) *object {
	if data == nil {
		data = []byte{}
	}
	o := &object{name: nameOf(data)}
	o.fresh.Store(&data)
	return o
}

func nameOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func (o *object) key() string { return path.Join(folder, o.name) }

// lost reports whether the object is damaged; nil is not.
func (o *object) lost() bool { return o != nil && o.damaged.Load() }

func (o *object) MarshalText() ([]byte, error) { return []byte(o.name), nil }

func (o *object) UnmarshalText(text []byte) error {
	if b, err := hex.DecodeString(string(text)); err != nil || len(b) != 16 {
		return fmt.Errorf("%q is not an object's name", text)
	}
	o.name = string(text)
	return nil
}

// objects returns by name what must be stored for the generation to be whole.
func (m *manifest) objects() map[string]*object {
	all := make(map[string]*object)
	for _, c := range m.Chunks {
		if c.Object != nil && !c.Object.lost() {
			all[c.Object.name] = c.Object
		}
	}
	for _, d := range m.Documents {
		if !d.Object.lost() {
			all[d.Object.name] = d.Object
		}
	}
	return all
}

// withoutLost returns the manifest with empty chunks in the place of damaged ones.
func (m manifest) withoutLost() manifest {
	m.Chunks = slices.Clone(m.Chunks)
	for i, c := range m.Chunks {
		if c.Object.lost() {
			m.Chunks[i] = Chunk{First: c.First}
		}
	}
	return m
}

func (m manifest) encode() ([]byte, error) {
	m = m.withoutLost()
	m.Version = version
	m.Documents = slices.DeleteFunc(slices.Clone(m.Documents), func(d StoredDocument) bool { return d.Object.lost() })
	line, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return append(append(line, '\n'), checksum(line)...), nil
}

func checksum(line []byte) string { return fmt.Sprintf("\"%x\"\n", sha256.Sum256(line)) }

func decodeManifest(data []byte) (manifest, error) {
	line, sum, _ := bytes.Cut(data, []byte{'\n'})
	var m manifest
	if string(sum) != checksum(line) {
		return m, errors.New("truncated, modified or not a manifest")
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, err
	}
	if m.Version != version {
		return m, fmt.Errorf("version %d instead of %d", m.Version, version)
	}
	if len(m.Chunks) == 0 || m.Chunks[0].First != "" {
		return m, errors.New("no first chunk")
	}
	for i, c := range m.Chunks {
		if i > 0 && c.First <= m.Chunks[i-1].First || c.Count < 0 || (c.Count > 0) != (c.Object != nil) {
			return m, fmt.Errorf("chunk %d is malformed", i)
		}
	}
	for i, d := range m.Documents {
		if d.Object == nil {
			return m, fmt.Errorf("document %d has no object", i)
		}
	}
	return m, nil
}
