package sitemap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// newState is the state of a site that keeps its records in a storage.
func newState(storage store.Storage) *siteState {
	st := &siteState{idle: make(chan *records, 1)}
	st.reset(storage, "site")
	return st
}

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
	return r.store.Commit(t.Context(), r.generation)
}

// TestLease: one refresh at a time has the records. Whoever does not give them back in time
// may not write any more, and may give them back without harm.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newState(store.NewMemory())
		first, err := st.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := commitTo(t, first, `{}`); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(leasePatience-time.Second, func() { st.release(first) })
		begun := time.Now()
		second, err := st.acquire(t.Context())
		if err != nil || second != first || time.Since(begun) != leasePatience-time.Second {
			t.Errorf("got other records: %t, %v after %s", second != first, err, time.Since(begun))
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		if _, err := st.acquire(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}

		begun = time.Now()
		third, err := st.acquire(t.Context())
		if err != nil || third == second || time.Since(begun) != leasePatience {
			t.Errorf("got the same records: %t, %v after %s", third == second, err, time.Since(begun))
		}
		if err := second.store.Commit(t.Context(), second.generation.WithDocuments([]byte(`{"settings":1}`), nil)); !errors.Is(err, store.ErrRevoked) {
			t.Errorf("whose lease has ended writes on: %v", err)
		}
		if err := commitTo(t, third, `{"settings":2}`); err != nil {
			t.Errorf("whose lease began: %v", err)
		}
		st.release(second)
		select {
		case <-st.idle:
			t.Error("whose lease has ended gives back what others have")
		default:
		}
		st.release(third)
		if last, err := st.acquire(t.Context()); err != nil || last != third {
			t.Errorf("got other records: %t, %v", last != third, err)
		}
	})
}

// TestRecordsOpen: what is kept is there after a restart; where the storage fails, it is opened
// later.
func TestRecordsOpen(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	storage := &failingStorage{Storage: store.NewMemory()}
	r := &records{storage: storage, prefix: "site"}
	if err := commitTo(t, r, `{"settings":1,"selected":2,"aliases":["http://b.example"]}`); err != nil {
		t.Fatal(err)
	}
	again := &records{storage: storage, prefix: "site"}
	if snapshot, m, err := again.open(ctx, now, nil); err != nil || snapshot != nil || m == nil || m.Settings != 1 || again.settings != 2 || len(m.Aliases) != 1 {
		t.Errorf("got %v, %+v, %v", snapshot, m, err)
	}
	if _, m, err := again.open(ctx, now, nil); m != nil || err != nil {
		t.Errorf("opened again: got %+v, %v", m, err)
	}

	broken := errors.New("broken")
	storage.err = broken
	late := &records{storage: storage, prefix: "site"}
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
	warm := &records{storage: store.NewMemory(), generation: emptyGeneration(t.Context())}
	put := func(r *records, path string) {
		w := r.generation.Writer()
		w.Put("", []store.Record{{Path: path}}, nil, nil)
		r.generation, _ = w.Generation()
	}
	put(warm, "/warm")
	synctest.Test(t, func(t *testing.T) {
		storage := &slowStorage{Storage: store.NewMemory()}
		r := &records{storage: storage}
		if err := commitTo(t, r, `{}`); err != nil {
			t.Fatal(err)
		}
		put(r, "/old")
		if err := r.store.Commit(t.Context(), r.generation); err != nil {
			t.Fatal(err)
		}
		storage.manifest.Store(int64(time.Minute))
		storage.load.Store(int64(3 * time.Second))
		late := &records{storage: storage}
		begun := time.Now()
		if _, _, err := late.open(t.Context(), time.Now(), nil); err == nil || time.Since(begun) > openPatience {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		late.generation = emptyGeneration(t.Context())
		put(late, "/new")
		time.Sleep(time.Hour)
		storage.manifest.Store(int64(0))
		if _, _, err := late.open(t.Context(), time.Now(), nil); err != nil || late.generation.Len() != 2 {
			t.Errorf("got %d records, %v", late.generation.Len(), err)
		}
		time.Sleep(time.Hour)
	})
}

// TestSlowCommit: what takes long to write is written in the end.
func TestSlowCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &slowStorage{Storage: store.NewMemory()}
		r := &records{storage: storage}
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
			_ = r.commit(t.Context(), t.Context())
			time.Sleep(time.Minute)
		}
		if got := len(r.store.Last().Documents()); got != 100 {
			t.Errorf("%d documents are written", got)
		}
		time.Sleep(time.Hour)
	})
}

// countingContext counts the functions that wait for its end.
type countingContext struct {
	context.Context
	waiting atomic.Int64
}

func (c *countingContext) AfterFunc(func()) func() bool {
	c.waiting.Add(1)
	return func() bool { c.waiting.Add(-1); return true }
}

// TestCommitsLeaveNothing behind in the site's context once they have ended.
func TestCommitsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &slowStorage{Storage: store.NewMemory()}
		r := &records{storage: storage}
		if _, _, err := r.open(t.Context(), time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		storage.store.Store(int64(2 * commitWait))
		done := make(chan struct{})
		defer close(done)
		site := &countingContext{Context: doneContext{t.Context(), done}}
		for range 3 {
			if err := r.commit(t.Context(), site); !errors.Is(err, errHung) {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if n := site.waiting.Load(); n != 0 {
			t.Errorf("%d functions wait", n)
		}
	})
}

// doneContext ends with a channel, which makes its descendants register with its AfterFunc.
type doneContext struct {
	context.Context
	done chan struct{}
}

func (c doneContext) Done() <-chan struct{} { return c.done }

// TestRestoreSnapshot: what was published is served from its documents after a restart.
func TestRestoreSnapshot(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	storage := store.NewMemory()
	snapshot := snapshotOf(t, 2, "/a", "/b", "/c", "/d", "/e")
	run := &refreshRun{site: s, records: &records{storage: storage, prefix: "site"}, begun: b.clock}
	for range 2 { // the second time nothing is new
		if _, _, err := run.records.open(t.Context(), b.clock, nil); err != nil {
			t.Fatal(err)
		}
		if err := run.write(t.Context(), &result{snapshot: snapshot, outcome: refreshChanged}, 7); err != nil {
			t.Fatal(err)
		}
	}
	later := &records{storage: storage, prefix: "site"}
	got, m, err := later.open(t.Context(), b.clock, func(key string, err error) { t.Errorf("damaged: %s, %v", key, err) })
	if err != nil || !snapshot.Equal(got) || later.settings != 7 || m.Settings != s.selectDigest(nil) {
		t.Errorf("got %+v, %+v, %v", got, m, err)
	}
	var empty *publish.Snapshot
	run.records.generation = later.generation
	run.records.store = later.store
	if err := run.write(t.Context(), &result{snapshot: empty, outcome: refreshEmpty}, 8); err != nil {
		t.Fatal(err)
	}
	if got, _, err := (&records{storage: storage, prefix: "site"}).open(t.Context(), b.clock, nil); got != nil || err != nil {
		t.Errorf("once nothing is published: got %v, %v", got, err)
	}
}

// TestOpenStorage: where records are kept, if anywhere.
func TestOpenStorage(t *testing.T) {
	t.Setenv("SITEMAP_STATE", t.TempDir())
	a := &App{logger: zap.NewNop()}
	for state, want := range map[string]bool{"off": false, "": true, "{env.SITEMAP_STATE}": true, "/var/lib/caddy": true} {
		a.State = state
		if got := openStorage(stateFolder(a.State, a.logger)); (got != nil) != want {
			t.Errorf("%q: got %v", state, got)
		}
	}
}

// TestOldState: what an earlier version has left is named once, and left alone.
func TestOldState(t *testing.T) {
	folder := t.TempDir()
	core, logs := observer.New(zapcore.InfoLevel)
	logOldState(folder, zap.New(core))
	old := filepath.Join(folder, "example.com-0123456789abcdef")
	for _, name := range []string{filepath.Join(old, "state"), filepath.Join(folder, "sites", "example.com-0123456789abcdef", "store")} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	logOldState(folder, zap.New(core))
	if got := logs.FilterField(zap.String("first", old)).FilterField(zap.Int("folders", 1)).Len(); got != 1 || logs.Len() != 1 {
		t.Errorf("got %v", logs.All())
	}
	if _, err := os.Stat(filepath.Join(old, "state")); err != nil {
		t.Error(err)
	}
}

// TestStateOfSites: sites of the same URL have states of their own, and those that only
// visitors named are kept in memory.
func TestStateOfSites(t *testing.T) {
	b := newBench(t, nil)
	b.app.storage = &failingStorage{Storage: store.NewMemory()}
	named, visited := b.site("named.example"), b.site("visited.example")
	if named.state.current.storage != b.app.storage || visited.state.current.storage == b.app.storage {
		t.Error("the named site is in memory, or the other one is not")
	}
	if named.state.current.prefix == visited.state.current.prefix {
		t.Error("two sites share a folder")
	}
	b.app.mu.Lock()
	defer b.app.mu.Unlock()
	other := acquireState(b.app, &named.identity)
	defer func() { _, _ = states.Delete(other.key) }()
	if other == named.state || other.current.prefix == named.state.current.prefix {
		t.Error("two handlers' sites of the same URL share their state")
	}
}
