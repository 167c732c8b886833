package record

import (
	"bytes"
	"encoding/binary"
	"path"
	"reflect"
	"runtime"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

func pack(raw []byte) []byte { return compressor.EncodeAll(raw, nil) }

func FuzzDecodeChunk(f *testing.F) {
	for _, records := range [][]Record{realistic(20), {full("/a"), full("/b")}, {{}}} {
		raw, err := cbor.Marshal(records)
		if err != nil {
			f.Fatal(err)
		}
		raw = binary.BigEndian.AppendUint32(append(raw, 0x5a), uint32(len(records)*hashesSize+1))
		raw = append(raw, make([]byte, len(records)*hashesSize+1)...)
		f.Add(raw, false)
		f.Add(pack(raw), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, packed bool) {
		if !packed { // what was compressed gets little past the decompressor
			data = pack(data)
		}
		records, err := decodeChunk(data)
		if err != nil {
			return
		}
		got, err := decodeChunk(encode(t, records))
		if err != nil || len(got) != len(records) {
			t.Fatalf("%d records, %v", len(got), err)
		}
		for i := range records { // empty slices and nil are the same
			a, b := records[i], got[i]
			if len(a.Images) == 0 && len(a.Alternates) == 0 && !reflect.DeepEqual(a.Path, b.Path) || a.Text != b.Text {
				t.Errorf("got %+v, want %+v", b, a)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	s := open(f, NewMemory())
	g := put(f, s.Last(), realistic(9), 9).WithDocuments([]byte(`{"a":[1]}`), []StoredDocument{NewDocument("a", nil, nil)})
	encoded, err := g.state.Load().encode()
	if err != nil {
		f.Fatal(err)
	}
	line, _, _ := bytes.Cut(encoded, []byte{'\n'})
	f.Add(line)
	f.Add([]byte(`{"version":3,"chunks":[{"first":""},{"first":"/a","count":1,"object":{"name":"store/00"}}],"documents":[{"name":"b"}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := decodeManifest(seal(line))
		if err != nil {
			return
		}
		for _, o := range m.objects() {
			if path.Join(folder, path.Base(o.Name)) != o.Name || len(path.Base(o.Name)) != 32 {
				t.Errorf("an object is named %q", o.Name)
			}
		}
		encoded, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decodeManifest(encoded); err != nil || len(again.Chunks) != len(m.Chunks) {
			t.Errorf("%+v: %v", again, err)
		}
	})
}

// TestBombs decodes a few bytes that ask for many.
func TestBombs(t *testing.T) {
	array := func(n int) []byte { return []byte{0x9a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }
	images := func(n int) []byte { // one record with n empty images
		return append(append([]byte{0xa1, 0x18, 26}, array(n)...), bytes.Repeat([]byte{0x60}, n)...)
	}
	many := bytes.Repeat(images(maxChunkRecords), maxDecoded/(maxChunkRecords+8))
	for _, test := range []struct {
		name string
		most uint64 // bytes allocated
		data []byte
	}{
		{"zeros", 12 << 20, pack(make([]byte, 64<<20))},
		{"frames of zeros", 5 * maxDecoded, bytes.Repeat(pack(make([]byte, 1<<20)), 64)},
		{"more records than there are", 1 << 16, pack(array(1 << 30))},
		{"records of nothing", 8 << 20, pack(append(array(maxChunkRecords), bytes.Repeat([]byte{0xa0}, maxChunkRecords)...))},
		{"too many records", 12 << 20, pack(append(array(1<<20), bytes.Repeat([]byte{0xa0}, 1<<20)...))},
		{"too many images", 12 << 20, pack(append(array(1), images(1<<20)...))},
		{"empty images", 20 * maxDecoded, pack(append(array(maxDecoded/(maxChunkRecords+8)), many...))},
		{"arrays in arrays", 12 << 20, pack(bytes.Repeat([]byte{0x81}, 1<<20))},
		{"an endless array", 12 << 20, pack(append([]byte{0x9f}, bytes.Repeat([]byte{0xa0}, 1<<20)...))},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decodeChunk(test.data)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > test.most {
				t.Errorf("%d bytes of %d were allocated, error %v", n, test.most, err)
			}
		})
	}
}
