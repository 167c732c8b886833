package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// version is that of all that is stored. It rises when the fields of [Record] change.
const version = 1

// manifest is what a generation consists of. It is stored as a line of JSON and, as
// another, the SHA-256 of the first.
type manifest struct {
	Version   int                `json:"version"`
	Settings  uint64             `json:"settings,string"`
	Routes    uint64             `json:"routes,string"`
	Meta      json.RawMessage    `json:"meta,omitempty"`
	Chunks    []manifestChunk    `json:"chunks"`
	Documents []manifestDocument `json:"documents,omitempty"`
}

type manifestChunk struct {
	Chunk
	Object string `json:"object,omitempty"` // its name; "": there are no records
}

type manifestDocument struct {
	StoredDocument
	Object string `json:"object"`
}

// encode returns the manifest of a generation, without what is damaged.
func (g *Generation) encode() ([]byte, error) {
	m := manifest{Version: version, Settings: g.settings, Routes: g.routes, Meta: g.meta}
	for _, c := range g.Chunks() {
		stored := manifestChunk{Chunk: c}
		if c.blob != nil {
			stored.Object = c.blob.name
			if c.blob.damaged.Load() {
				stored = manifestChunk{Chunk: Chunk{First: c.First}}
			}
		}
		m.Chunks = append(m.Chunks, stored)
	}
	for _, d := range g.documents {
		if !d.blob.damaged.Load() {
			m.Documents = append(m.Documents, manifestDocument{d, d.blob.name})
		}
	}
	line, err := json.Marshal(&m)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return append(append(line, '\n'), checksum(line)...), nil
}

func checksum(line []byte) []byte {
	sum := sha256.Sum256(line)
	return []byte("\"" + hex.EncodeToString(sum[:]) + "\"\n")
}

// decodeManifest undoes encode.
func decodeManifest(data []byte) (*Generation, error) {
	line, sum, _ := bytes.Cut(data, []byte{'\n'})
	if !bytes.Equal(sum, checksum(line)) {
		return nil, errors.New("truncated, or not a manifest")
	}
	var m manifest
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, err
	}
	if m.Version != version {
		return nil, fmt.Errorf("version %d instead of %d", m.Version, version)
	}
	if len(m.Chunks) == 0 || m.Chunks[0].First != "" {
		return nil, errors.New("no first chunk")
	}
	g := &Generation{settings: m.Settings, routes: m.Routes, meta: m.Meta}
	chunks := make([]Chunk, len(m.Chunks))
	for i, c := range m.Chunks {
		switch {
		case i > 0 && c.First <= chunks[i-1].First:
			return nil, errors.New("chunks are out of order")
		case c.Count < 0 || c.Count > maxChunkRecords || (c.Count > 0) != isName(c.Object):
			return nil, fmt.Errorf("chunk %d has %d records in object %q", i, c.Count, c.Object)
		}
		chunks[i] = c.Chunk
		if c.Count > 0 {
			chunks[i].blob = &blob{name: c.Object}
		}
	}
	g.chunks.Store(&chunks)
	for i, d := range m.Documents {
		if !isName(d.Object) {
			return nil, fmt.Errorf("document %d has object %q", i, d.Object)
		}
		d.blob = &blob{name: d.Object}
		g.documents = append(g.documents, d.StoredDocument)
	}
	return g, nil
}
