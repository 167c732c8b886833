package state

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// What a decoder takes from strangers, it must write and read again just so.

func FuzzPiece(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{1, 2, 30, 300} {
		f.Add(encodePiece(randomRecords(r, n, "/")))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := decodePiece(b)
		if err != nil {
			return
		}
		again, err := decodePiece(encodePiece(records))
		if err != nil || !reflect.DeepEqual(again, records) {
			t.Fatalf("got %+v, error %v, want %+v", again, err, records)
		}
	})
}

func FuzzDetails(f *testing.F) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{1, 5, 100} {
		var entries []entry
		for i := range n {
			entries = append(entries, entry{i * 3, *randomDetails(r)})
		}
		if b := encodeDetails(f, entries); b != nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, _, err := decodeDetails(b)
		if err != nil {
			return
		}
		strings := 0
		for _, e := range entries {
			strings += len(e.details.Links) + 2*len(e.details.Alternates) + len(e.details.Images)
		}
		if strings >= groupStrings {
			return // it would be written as several
		}
		again, _, err := decodeDetails(encodeDetails(t, entries))
		if err != nil || !reflect.DeepEqual(again, entries) {
			t.Fatalf("got %+v, error %v, want %+v", again, err, entries)
		}
	})
}

// encodeDetails writes entries that fit into one group.
func encodeDetails(t testing.TB, entries []entry) []byte {
	t.Helper()
	var group []byte
	w := newDetailsWriter(func(b []byte) error {
		if group != nil {
			t.Fatal("a second group")
		}
		group = b
		return nil
	})
	for i := range entries {
		if err := w.add(entries[i].record, "/", &entries[i].details); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	return group
}

func FuzzManifest(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 5))
	b := write(f, empty(f), randomRecords(r, 9000, "/"), 1)
	f.Add(b.encode(), false)
	raw := b.encode()
	f.Add(headOf(compress(nil, raw), len(raw), nil), true)
	f.Add(headOf(nil, len(raw), blob{refOf(raw)}), true)
	f.Fuzz(func(t *testing.T, data []byte, head bool) {
		if head {
			packed, size, split, err := readHead(data)
			if err != nil {
				return
			}
			packed2, size2, split2, err := readHead(headOf(packed, size, split))
			if err != nil || string(packed2) != string(packed) || size2 != size || !reflect.DeepEqual(split2, split) {
				t.Fatalf("got %q, %d, %v, error %v", packed2, size2, split2, err)
			}
			if data, err = unpack(packed, size); err != nil {
				return
			}
		}
		m, err := readManifest(data)
		if err != nil {
			return
		}
		again, err := readManifest(m.encode())
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("got %+v, error %v, want %+v", again, err, m)
		}
	})
}
