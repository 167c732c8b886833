package store

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
)

func write(t testing.TB, g *Generation, records []Record) *Generation {
	t.Helper()
	w := g.Writer()
	w.Put("", records, nil, nil)
	next, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func all(t testing.TB, g *Generation) []Record {
	t.Helper()
	var records []Record
	for r, err := range g.Records(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, *r)
	}
	return records
}

func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	storage := NewMemory()
	s, err := Open(ctx, storage, Options{Prefix: "a/b"})
	if err != nil {
		t.Fatal(err)
	}
	records := realistic(20_000)
	g := write(t, s.Last(), records).WithDocuments(json.RawMessage(`{"a":1}`), []StoredDocument{NewDocument("x", nil, []byte("data"))})
	if err := s.Commit(ctx, g); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(ctx, storage, Options{Prefix: "a/b"}); err != nil {
		t.Fatal(err)
	}
	if got := all(t, s.Last()); !reflect.DeepEqual(got, records) {
		t.Error("other records")
	}
	t.Log(len(s.Last().Chunks()))
}
