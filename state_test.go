package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// failingStorage fails with an error while there is one.
type failingStorage struct {
	store.Storage
	err error
}

func (s *failingStorage) Load(ctx context.Context, key string) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Storage.Load(ctx, key)
}

// commitTo opens the records and writes a generation with a meta.
func commitTo(t *testing.T, r *records, meta string) error {
	t.Helper()
	if _, _, err := r.open(t.Context(), time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	r.generation = r.generation.WithDocuments([]byte(meta), nil)
	return r.commit()
}

// TestLease: one refresh at a time has the records. Whoever does not give them back in time
// may not write any more, and may give them back without harm.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st siteState
		st.records.Store(newRecords(store.NewMemory(), "site"))
		acquire := func(ctx context.Context, want *records, wantErr error, after time.Duration) *records {
			t.Helper()
			begun := time.Now()
			got, err := st.acquire(ctx)
			if want != nil && got != want || !errors.Is(err, wantErr) || time.Since(begun) != after {
				t.Errorf("got other records: %t, %v after %s", got != want, err, time.Since(begun))
			}
			return got
		}
		first := acquire(t.Context(), st.records.Load(), nil, 0)
		if err := commitTo(t, first, `{}`); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(leasePatience-time.Second, first.lease.Release)
		acquire(t.Context(), first, nil, leasePatience-time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		acquire(ctx, nil, context.DeadlineExceeded, time.Second)

		next := acquire(t.Context(), nil, nil, leasePatience)
		if err := commitTo(t, first, `{"settings":1}`); next == first || !errors.Is(err, context.Canceled) {
			t.Errorf("whose lease has ended writes on: %v", err)
		}
		if err := commitTo(t, next, `{"settings":2}`); err != nil {
			t.Errorf("whose lease began: %v", err)
		}
		first.lease.Release()
		time.AfterFunc(time.Second, next.lease.Release)
		acquire(t.Context(), next, nil, time.Second)
		_ = st.Destruct()
	})
}

// TestRecordsOpen: what is kept is there after a restart; where the storage fails, it is opened
// later.
func TestRecordsOpen(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	storage := &failingStorage{Storage: store.NewMemory()}
	r := newRecords(storage, "site")
	if err := commitTo(t, r, `{"settings":1,"selected":2}`); err != nil {
		t.Fatal(err)
	}
	again := newRecords(storage, "site")
	if snapshot, m, err := again.open(ctx, now, nil); err != nil || snapshot != nil || m == nil || m.Settings != 1 || again.settings != 2 {
		t.Errorf("got %v, %+v, %v", snapshot, m, err)
	}
	if _, m, err := again.open(ctx, now, nil); m != nil || err != nil {
		t.Errorf("opened again: got %+v, %v", m, err)
	}

	broken := errors.New("broken")
	storage.err = broken
	late := newRecords(storage, "site")
	for _, step := range []struct {
		after time.Duration
		err   error // of the storage
		want  error
		open  bool
	}{{0, broken, broken, false}, {retryOpening - 1, nil, nil, false}, {retryOpening, broken, broken, false}, {2 * retryOpening, nil, nil, true}} {
		storage.err = step.err
		_, _, err := late.open(ctx, now.Add(step.after), nil)
		if !errors.Is(err, step.want) || (late.store != nil) != step.open {
			t.Errorf("after %s: got %v, open %t", step.after, err, late.store != nil)
		}
	}
	if len(late.generation.Meta()) == 0 {
		t.Error("what was kept is not there")
	}
}

// slowStorage takes its time.
type slowStorage struct {
	store.Storage
	manifest, load, store atomic.Int64 // nanoseconds
}

func (s *slowStorage) Load(ctx context.Context, key string) ([]byte, error) {
	if strings.HasSuffix(key, "manifest.json") {
		time.Sleep(time.Duration(s.manifest.Load()))
	} else {
		time.Sleep(time.Duration(s.load.Load()))
	}
	return s.Storage.Load(ctx, key)
}

func (s *slowStorage) Store(ctx context.Context, key string, value []byte) error {
	time.Sleep(time.Duration(s.store.Load()))
	return s.Storage.Store(ctx, key, value)
}

// TestLateOpen: what is kept of a large site, or on a slow disk, takes longer to read than requests
// shall wait. It is read once these need not wait any more.
func TestLateOpen(t *testing.T) {
	warm := newRecords(store.NewMemory(), "")
	_, _, _ = warm.open(t.Context(), time.Now(), nil)
	put := func(r *records, path string) {
		w := r.generation.Writer()
		w.Put("", []store.Record{{Path: path}}, nil, nil)
		r.generation, _ = w.Generation()
	}
	put(warm, "/warm")
	synctest.Test(t, func(t *testing.T) {
		storage := &slowStorage{Storage: store.NewMemory()}
		r := newRecords(storage, "")
		if err := commitTo(t, r, `{}`); err != nil {
			t.Fatal(err)
		}
		put(r, "/old")
		if err := r.store.Commit(t.Context(), r.generation); err != nil {
			t.Fatal(err)
		}
		storage.manifest.Store(int64(time.Minute))
		storage.load.Store(int64(3 * time.Second))
		late := newRecords(storage, "")
		begun := time.Now()
		if _, _, err := late.open(t.Context(), time.Now(), nil); err == nil || time.Since(begun) > openPatience {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		late.generation = warm.store.Last()
		put(late, "/new")
		time.Sleep(time.Hour)
		storage.manifest.Store(int64(0))
		_, _, err := late.open(t.Context(), time.Now(), nil)
		for rec, err2 := range late.generation.Records(t.Context()) {
			if err = cmp.Or(err, err2); err != nil || rec.Path != "/old" {
				t.Errorf("got %+v, %v, want what was kept", rec, err)
			}
		}
		time.Sleep(time.Hour)
	})
}

// TestSlowCommit: what takes long to write is written in the end.
func TestSlowCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &slowStorage{Storage: store.NewMemory()}
		r := newRecords(storage, "")
		if _, _, err := r.open(t.Context(), time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		var documents []store.StoredDocument
		for i := range 100 {
			documents = append(documents, store.NewDocument(fmt.Sprint(i), nil, []byte(fmt.Sprint(i))))
		}
		r.generation = r.generation.WithDocuments([]byte(`{}`), documents)
		storage.store.Store(int64(time.Second))
		for range 5 {
			_ = r.commit()
			time.Sleep(time.Minute)
		}
		if got := len(r.store.Last().Documents()); got != 100 {
			t.Errorf("%d documents are written", got)
		}
		time.Sleep(time.Hour)
	})
}

// TestRestoreSnapshot: what was published is served from its documents after a restart.
func TestRestoreSnapshot(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	storage := store.NewMemory()
	snapshot := snapshotOf(t, 2, "/a", "/b", "/c", "/d", "/e")
	run := &refreshRun{site: s, records: newRecords(storage, "site"), begun: b.clock}
	s.state.report.Store(new(report.Report))
	for range 2 { // the second time nothing is new
		if _, _, err := run.records.open(t.Context(), b.clock, nil); err != nil {
			t.Fatal(err)
		}
		if err := run.write(&result{snapshot: snapshot, settings: 7}); err != nil {
			t.Fatal(err)
		}
	}
	later := newRecords(storage, "site")
	got, m, err := later.open(t.Context(), b.clock, func(key string, err error) { t.Errorf("damaged: %s, %v", key, err) })
	if err != nil || !snapshot.Equal(got) || later.settings != 7 || m.Settings != s.digest() {
		t.Errorf("got %+v, %+v, %v", got, m, err)
	}
	run.records.generation = later.generation
	run.records.store = later.store
	if err := run.write(&result{settings: 8}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := (newRecords(storage, "site")).open(t.Context(), b.clock, nil); got != nil || err != nil {
		t.Errorf("once nothing is published: got %v, %v", got, err)
	}
}

// TestStateOfSites: sites of the same URL have states of their own, and those that only
// visitors named are kept in memory.
func TestStateOfSites(t *testing.T) {
	b := newBench(t, nil)
	b.app.storage = &failingStorage{Storage: store.NewMemory()}
	named, visited := b.site("named.example"), b.site("visited.example")
	if named.state.records.Load().storage != b.app.storage || visited.state.records.Load().storage == b.app.storage {
		t.Error("the named site is in memory, or the other one is not")
	}
	if named.state.records.Load().prefix == visited.state.records.Load().prefix {
		t.Error("two sites share a folder")
	}
	b.app.mu.Lock()
	defer b.app.mu.Unlock()
	other := acquireState(b.app, &named.identity)
	defer func() { _, _ = states.Delete(other.key) }()
	if other == named.state || other.records.Load().prefix == named.state.records.Load().prefix {
		t.Error("two handlers' sites of the same URL share their state")
	}
}
