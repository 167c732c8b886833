package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestDoubt: an object is given up after three tries over ten minutes at least.
func TestDoubt(t *testing.T) {
	for name, test := range map[string]struct {
		minutes []int // when it could not be read
		want    bool
	}{
		"once":                       {[]int{0}, false},
		"twice":                      {[]int{0, 60}, false},
		"three times in a moment":    {[]int{0, 0, 0}, false},
		"three times in less":        {[]int{0, 5, 9}, false},
		"three times in ten minutes": {[]int{0, 5, 10}, true},
		"three times in a day":       {[]int{0, 600, 1400}, true},
		"often in ten minutes":       {[]int{0, 2, 4, 6, 8, 10}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			storage := &patched{Storage: NewMemory()}
			s := open(t, storage)
			commit(t, s, put(t, s.Last(), realistic(100), 100))
			storage.errs = map[string]error{s.Last().Chunks()[0].Object.Name: syscall.EIO}
			begun := time.Now()
			for i, minute := range test.minutes {
				time.Sleep(time.Duration(minute)*time.Minute - time.Since(begun))
				_, err := s.Last().Load(t.Context(), 0)
				isLast := i == len(test.minutes)-1
				if got := errors.Is(err, ErrDamaged); got != (isLast && test.want) {
					t.Errorf("%s: given up after %d tries: %t", name, i+1, got)
				}
			}
		})
	}
}

// patched is a storage some of whose keys cannot be loaded.
type patched struct {
	Storage
	errs map[string]error // by a part of the key; errHangs: it hangs
}

var errHangs = errors.New("hangs")

func (p *patched) Load(ctx context.Context, key string) ([]byte, error) {
	for part, err := range p.errs {
		if !strings.Contains(key, part) {
			continue
		}
		if err == errHangs {
			time.Sleep(24 * time.Hour)
		}
		return nil, err
	}
	return p.Storage.Load(ctx, key)
}

// TestUnreadable: what cannot be read for ten minutes, while the rest can, is damaged, also where the store is opened again
// each time. An outage never is, nor is an error that is not of the object alone.
func TestUnreadable(t *testing.T) {
	records := realistic(4000)
	for name, test := range map[string]struct {
		errs   map[string]error // "chunk", "document", "manifest", all "objects", or "" for all
		isLost bool
	}{
		"chunk":               {map[string]error{"chunk": syscall.EIO}, true},
		"stale chunk":         {map[string]error{"chunk": fmt.Errorf("reading: %w", syscall.ESTALE)}, true},
		"hung chunk":          {map[string]error{"chunk": errHangs}, false}, // while a call hangs, nothing tells
		"document":            {map[string]error{"document": syscall.EIO}, true},
		"one of both":         {map[string]error{"document": syscall.EIO, "chunk": syscall.EIO}, true},
		"manifest, too":       {map[string]error{"chunk": syscall.EIO, "manifest": syscall.EIO}, false},
		"all objects":         {map[string]error{"objects": syscall.EIO}, false},
		"permission":          {map[string]error{"chunk": os.ErrPermission}, false},
		"too many open files": {map[string]error{"chunk": syscall.EMFILE}, false},
		"full":                {map[string]error{"chunk": syscall.ENOSPC}, false},
		"read-only":           {map[string]error{"chunk": syscall.EROFS}, false},
		"hung storage":        {map[string]error{"": errHangs}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage := &patched{Storage: NewMemory()}
				s := open(t, storage)
				documents := []StoredDocument{NewDocument("a", nil, []byte("a")), NewDocument("b", nil, []byte("b"))}
				commit(t, s, put(t, s.Last(), records, 1500).WithDocuments(nil, documents))
				chunk := s.Last().Chunks()[1]
				names := map[string]string{"chunk": chunk.Object.Name, "document": documents[1].Object.Name, "manifest": ManifestName}
				storage.errs = make(map[string]error)
				for part, err := range test.errs {
					if key, ok := names[part]; ok {
						part = key
					}
					storage.errs[part] = err
					if part == "objects" {
						for name := range s.Last().state.Load().objects() {
							storage.errs[name] = err
						}
					}
				}
				_, chunkFails := test.errs["chunk"]
				damaged := 0
				s = New(storage, prefix)
				read := func() error {
					err := s.Open(t.Context(), func(string, error) { damaged++ })
					if err != nil {
						return err
					}
					if _, err = all(s.Last()); err == nil {
						_, err = s.Last().Document(t.Context(), 1)
					}
					if !errors.Is(err, ErrDamaged) {
						return err
					}
					_, rest := all(s.Last())
					if g := s.Last(); rest != nil || chunkFails != (g.Len() == len(records)-chunk.Count) || g.Lost() != chunkFails {
						t.Errorf("%v, %d records, lost: %t", rest, g.Len(), g.Lost())
					}
					commit(t, s, put(t, s.Last(), records, 1500))
					storage.errs = nil
					expect(t, open(t, storage).Last(), records)
					return err
				}
				begun := time.Now()
				var err error
				for time.Since(begun) < 5*time.Hour && !errors.Is(err, ErrDamaged) {
					err = read()
					if err == nil {
						t.Fatal("no error")
					}
					time.Sleep(20 * time.Minute)
				}
				after := time.Since(begun)
				if got := errors.Is(err, ErrDamaged); got != test.isLost || got && (after < minSpan || after > 2*time.Hour) {
					t.Errorf("got %v after %s, want it damaged: %t", err, after, test.isLost)
				}
				if test.isLost != (damaged == 1) {
					t.Errorf("%d objects are damaged", damaged)
				}
				time.Sleep(25 * time.Hour)
			})
		})
	}
}

// TestReadAgain: what was read meanwhile is not given up.
func TestReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &patched{Storage: NewMemory()}
		s := open(t, storage)
		commit(t, s, put(t, s.Last(), realistic(100), 100))
		s = open(t, storage)
		for i := range 20 {
			storage.errs = map[string]error{s.Last().Chunks()[0].Object.Name: syscall.EIO}
			if i%3 == 2 {
				storage.errs = nil
			}
			if _, err := s.Last().Load(t.Context(), 0); errors.Is(err, ErrDamaged) || (err == nil) != (i%3 == 2) {
				t.Errorf("%d: got %v", i, err)
			}
			time.Sleep(30 * time.Minute)
		}
	})
}
