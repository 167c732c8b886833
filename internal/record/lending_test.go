package record

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// faulty is a storage that takes its time, or fails to load.
type faulty struct {
	Storage
	manifest, load, store time.Duration
	err                   error
}

func (f faulty) Load(ctx context.Context, key string) ([]byte, error) {
	pause := f.load
	if strings.HasSuffix(key, "manifest.json") {
		pause = f.manifest
	}
	time.Sleep(pause)
	if f.err != nil {
		return nil, f.err
	}
	return f.Storage.Load(ctx, key)
}

func (f faulty) Store(ctx context.Context, key string, value []byte) error {
	time.Sleep(f.store)
	return f.Storage.Store(ctx, key, value)
}

// texts are documents.
type texts []string

func (d texts) Documents() (meta json.RawMessage, documents []StoredDocument, err error) {
	for i, text := range d {
		documents = append(documents, NewDocument(fmt.Sprint(i), nil, []byte(text)))
	}
	if d == nil {
		return nil, nil, nil
	}
	return json.RawMessage(fmt.Sprint(len(d))), documents, nil
}

// restore appends the documents of a generation, which are damaged unless they are all.
func (d *texts) restore(ctx context.Context, n json.RawMessage, g *Generation) error {
	for i := range g.Documents() {
		data, err := g.Document(ctx, i)
		if err != nil {
			return err
		}
		*d = append(*d, string(data))
	}
	if string(n) != fmt.Sprint(len(g.Documents())) {
		return ErrDamaged
	}
	return nil
}

// records are those of a new store.
func records(storage Storage, prefix string) *Records { return New(storage, prefix).current.Load() }

// openRecords opens the records, and returns the meta that is kept.
func openRecords(t *testing.T, r *Records) (meta string, err error) {
	err = r.Open(t.Context(), &meta, nil, new(texts).restore)
	return meta, err
}

// learn makes a generation of paths.
func learn(r *Records, paths ...string) {
	w := r.Generation.Writer()
	var all []Record
	for _, path := range paths {
		all = append(all, Record{Path: path})
	}
	w.Put("", all, nil, nil)
	r.Generation, _ = w.Generation()
}

// write opens the records, and writes a meta.
func write(t *testing.T, r *Records, meta string) error {
	t.Helper()
	if _, err := openRecords(t, r); err != nil {
		t.Fatal(err)
	}
	return r.Write(texts(nil), meta, false)
}

// TestLease: one refresh at a time has the records. Whoever does not give them back in time
// may not write any more, and may give them back without harm.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(NewMemory(), "site")
		acquire := func(ctx context.Context, want *Records, wantErr error, after time.Duration) *Records {
			t.Helper()
			begun := time.Now()
			got, err := s.Acquire(ctx)
			if want != nil && got != want || !errors.Is(err, wantErr) || time.Since(begun) != after {
				t.Errorf("got other records: %t, %v after %s", got != want, err, time.Since(begun))
			}
			return got
		}
		first := acquire(t.Context(), s.current.Load(), nil, 0)
		if err := write(t, first, ""); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(leasePatience-time.Second, first.Release)
		acquire(t.Context(), first, nil, leasePatience-time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		acquire(ctx, nil, context.DeadlineExceeded, time.Second)

		next := acquire(t.Context(), nil, nil, leasePatience)
		if err := write(t, first, "late"); next == first || !errors.Is(err, context.Canceled) {
			t.Errorf("whose lease has ended writes on: %v", err)
		}
		if err := write(t, next, "next"); err != nil {
			t.Errorf("whose lease began: %v", err)
		}
		first.Release()
		time.AfterFunc(time.Second, next.Release)
		acquire(t.Context(), next, nil, time.Second)
		s.Close()
	})
}

// TestOpen: what is kept is there after a restart; where the storage fails, it is opened later.
func TestOpen(t *testing.T) {
	storage, broken := NewMemory(), errors.New("broken")
	r := records(storage, "site")
	if err := write(t, r, "kept"); err != nil {
		t.Fatal(err)
	}
	again := records(storage, "site")
	for i, want := range []string{"kept", ""} {
		if meta, err := openRecords(t, again); err != nil || meta != want {
			t.Errorf("opened %d times: got %q, %v", i+1, meta, err)
		}
	}
	late := records(faulty{Storage: storage, err: broken}, "site")
	if meta, err := openRecords(t, late); !errors.Is(err, broken) || meta != "" || late.Write(texts(nil), "lost", false) != nil {
		t.Errorf("where it fails: got %q, %v", meta, err)
	}
	late.store.storage = storage
	if meta, err := openRecords(t, late); err != nil || meta != "kept" {
		t.Errorf("where it failed before: got %q, %v", meta, err)
	}
}

// TestLateOpen: what is kept of a large site, or on a slow disk, takes longer to read than requests
// shall wait. It is read once these need not wait any more.
func TestLateOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := NewMemory()
		r := records(storage, "")
		_, _ = openRecords(t, r)
		learn(r, "/old")
		if err := write(t, r, "kept"); err != nil {
			t.Fatal(err)
		}
		late := records(faulty{Storage: storage, manifest: time.Minute}, "")
		begun := time.Now()
		if _, err := openRecords(t, late); err == nil || time.Since(begun) > openPatience {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
		learn(late, "/new")
		late.store.storage = faulty{Storage: storage, load: 3 * time.Second}
		_, err := openRecords(t, late)
		for rec, err2 := range late.Generation.Records(t.Context()) {
			if err = cmp.Or(err, err2); err != nil || rec.Path != "/old" {
				t.Errorf("got %+v, %v, want what was kept", rec, err)
			}
		}
		time.Sleep(time.Hour)
	})
}

// TestSlowCommit: what takes long to write is written in the end. It is an error that a storage does not respond, not
// that there is much to write.
func TestSlowCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := records(faulty{Storage: NewMemory(), store: 900 * time.Millisecond}, "")
		_, _ = openRecords(t, r)
		var documents []StoredDocument
		for i := range 100 {
			documents = append(documents, NewDocument(fmt.Sprint(i), nil, []byte(fmt.Sprint(i))))
		}
		r.Generation = r.Generation.WithDocuments([]byte(`{}`), documents)
		for i, want := range []error{nil, ErrHung, nil, nil} {
			if err := r.Commit(false); err != want || r.Unsaved != (i < 2) {
				t.Errorf("commit %d: got %v, unsaved %t, want %v", i, err, r.Unsaved, want)
			}
			time.Sleep(time.Minute)
		}
		if got := len(r.store.Last().Documents()); got != 100 {
			t.Errorf("%d documents are written", got)
		}
	})
}

// failing is a storage on which nothing can be written while err is set.
type failing struct {
	Storage
	err error
}

func (f *failing) Store(ctx context.Context, key string, value []byte) error {
	if f.err != nil {
		return f.err
	}
	return f.Storage.Store(ctx, key, value)
}

// TestFailedCommit: a commit that failed is still to be done, until one succeeds.
func TestFailedCommit(t *testing.T) {
	full := errors.New("no space left on device")
	storage := &failing{Storage: NewMemory(), err: full}
	r := records(storage, "site")
	if err := write(t, r, "kept"); !errors.Is(err, full) || !r.Unsaved {
		t.Errorf("fails: got %v, unsaved %t, want %v", err, r.Unsaved, full)
	}
	if err := r.Commit(false); !errors.Is(err, full) || !r.Unsaved {
		t.Errorf("fails again: got %v, unsaved %t, want %v", err, r.Unsaved, full)
	}
	storage.err = nil
	if err := r.Commit(false); err != nil || r.Unsaved {
		t.Errorf("succeeds: got %v, unsaved %t", err, r.Unsaved)
	}
	if meta, err := openRecords(t, records(storage, "site")); err != nil || meta != "kept" {
		t.Errorf("after a restart: got %q, %v, want %q", meta, err, "kept")
	}
}

// TestFailedSave: what could not be stored is stored by the next Save, though it is the same.
func TestFailedSave(t *testing.T) {
	full := errors.New("no space left on device")
	storage := &failing{Storage: NewMemory(), err: full}
	f := NewFile(storage, "a.json")
	encode := func() ([]byte, error) { return []byte("value"), nil }
	if err := f.Save(t.Context(), encode); !errors.Is(err, full) {
		t.Errorf("fails: got %v, want %v", err, full)
	}
	storage.err = nil
	if err := f.Save(t.Context(), encode); err != nil {
		t.Errorf("succeeds: got %v", err)
	}
	got, err := storage.Load(t.Context(), "a.json")
	if err != nil || string(got) != "value" {
		t.Errorf("got %q, %v, want %q", got, err, "value")
	}
}

// TestTurn: a call that was canceled while another one had the file is an error, and does nothing.
func TestTurn(t *testing.T) {
	f := NewFile(NewMemory(), "a.json")
	f.turn.Take(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	called := false
	err := f.Save(ctx, func() ([]byte, error) { called = true; return nil, nil })
	if called || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; it has done something: %t", err, called)
	}
}

// TestFile: what is unchanged is not written again, save where a write has failed. A storage that hangs holds up nobody for long.
func TestFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &faulty{Storage: NewMemory()}
		f := NewFile(storage, "a.json")
		written := 0
		save := func(patience time.Duration, value string) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			return f.Save(ctx, func() ([]byte, error) {
				written++
				return []byte(value), nil
			})
		}
		if loaded, err := f.Load(t.Context()); loaded != nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("at first: %q, %v", loaded, err)
		}
		if err := save(time.Second, "old"); err != nil {
			t.Error(err)
		}
		storage.store = 5 * time.Second
		begun := time.Now()
		if err := save(time.Second, "old"); err != nil || time.Since(begun) > 0 {
			t.Errorf("unchanged: %v after %s", err, time.Since(begun))
		}
		if err := save(time.Second, "new"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("hangs: %v after %s", err, time.Since(begun))
		}
		// It is not known whether that was written.
		if err := save(time.Hour, "old"); err != nil || time.Since(begun) != 10*time.Second || written != 4 {
			t.Errorf("after that: %v after %s", err, time.Since(begun))
		}
		if loaded, err := f.Load(t.Context()); string(loaded) != "old" || err != nil {
			t.Errorf("loaded: %q, %v", loaded, err)
		}
		storage.store = time.Minute
		begun = time.Now()
		if err := save(time.Hour, "hung"); !errors.Is(err, ErrHung) || time.Since(begun) > time.Minute {
			t.Errorf("hangs: %v after %s", err, time.Since(begun))
		}
		time.Sleep(time.Minute)
		broken := errors.New("broken")
		if err := f.Save(t.Context(), func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
			t.Errorf("broken: %v", err)
		}
		if loaded, err := f.Load(t.Context()); string(loaded) != "hung" || err != nil {
			t.Errorf("loaded: %q, %v", loaded, err)
		}
	})
}

// TestDocuments: what was written is restored after a restart, however long each document takes.
func TestDocuments(t *testing.T) {
	storage := NewMemory()
	written := texts{"a", "b", "c"}
	for _, want := range []texts{written, written, nil} { // the second time nothing is new
		r := records(storage, "site")
		if _, err := openRecords(t, r); err != nil || r.Write(want, "kept", false) != nil {
			t.Fatal(err)
		}
		slow := faulty{Storage: storage, load: patience - 1}
		synctest.Test(t, func(t *testing.T) {
			var got texts
			err := records(slow, "site").Open(t.Context(), new(string), func(key string, err error) { t.Errorf("damaged: %s, %v", key, err) }, got.restore)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestLeaseOfReplaced: who waits for records that are replaced meanwhile gets those that replace them.
func TestLeaseOfReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(NewMemory(), "site")
		acquire := func() *Records {
			r, err := s.Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			return r
		}
		begun := time.Now()
		stuck := acquire()
		time.AfterFunc(leasePatience+500*time.Millisecond, stuck.Release)

		var late *Records
		done := make(chan struct{})
		time.AfterFunc(time.Second, func() { // and waits for stuck until that is released, after it was replaced
			late = acquire()
			close(done)
		})
		next := acquire()
		time.AfterFunc(time.Second, next.Release)
		<-done
		if late != next || time.Since(begun) != leasePatience+time.Second {
			t.Errorf("got the records that were replaced: %t, after %s", late == stuck, time.Since(begun))
		}
		late.Release()
		s.Close()
	})
}

// TestClose: nothing is committed after Close.
func TestClose(t *testing.T) {
	s := New(NewMemory(), "site")
	r, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := write(t, r, "before"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := r.Write(texts(nil), "after", false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// unreadable is a storage of which one key cannot be loaded.
type unreadable struct {
	Storage
	key string
	err error
}

func (u *unreadable) Load(ctx context.Context, key string) ([]byte, error) {
	if u.key != "" && strings.HasSuffix(key, u.key) {
		return nil, u.err
	}
	return u.Storage.Load(ctx, key)
}

// TestUnreadableAtStart: after a restart, a document or the records that cannot be read hold up the site for ten minutes, not for
// good, whatever happens to the lease meanwhile. What else is stored is kept.
func TestUnreadableAtStart(t *testing.T) {
	for _, isDocument := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			storage := &unreadable{Storage: NewMemory(), err: syscall.EIO}
			before := records(storage, "site")
			if _, err := openRecords(t, before); err != nil {
				t.Fatal(err)
			}
			learn(before, "/a")
			if err := before.Write(texts{"a", "b", "c"}, "kept", false); err != nil {
				t.Fatal(err)
			}
			storage.key = before.Generation.Chunks()[0].Object.Name
			if isDocument {
				storage.key = before.Generation.Documents()[1].Object.Name
			}
			s := New(storage, "site")
			begun := time.Now()
			var damaged []string
			for i := 0; ; i++ {
				r, err := s.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var meta string
				err = r.Open(t.Context(), &meta, func(key string, _ error) { damaged = append(damaged, key) }, new(texts).restore)
				if err == nil && !isDocument {
					_, err = r.Generation.Load(t.Context(), 0)
				}
				if errors.Is(err, ErrDamaged) {
					if !r.isOpen || isDocument && meta != "kept" || r.Generation.Lost() == isDocument || len(damaged) != 1 || !strings.HasSuffix(damaged[0], storage.key) {
						t.Errorf("opened: %t, %q, %q is damaged", r.isOpen, meta, damaged)
					}
					if err := r.Commit(false); err != nil || r.Unsaved {
						t.Errorf("committed: %v", err)
					}
					break
				}
				if !errors.Is(err, syscall.EIO) || time.Since(begun) > 2*time.Hour {
					t.Fatalf("after %s: %v", time.Since(begun), err)
				}
				if i%3 > 0 { // else the next one waits for the lease, and replaces it
					r.Release()
				}
				time.Sleep(20 * time.Minute)
			}
			if time.Since(begun) < 10*time.Minute {
				t.Errorf("it is given up after %s", time.Since(begun))
			}
			again := records(storage, "site")
			_, err := openRecords(t, again)
			if isLost := errors.Is(err, ErrDamaged); isLost != isDocument {
				t.Errorf("after another restart: %v", err)
			}
			s.Close()
		})
	}
}

func numberedPaths(n int) (paths []string) {
	for i := range n {
		paths = append(paths, fmt.Sprintf("/%d", i))
	}
	return paths
}

// TestBegunInMemory: what a site that began in memory has found replaces what is kept only if it is more than twice as
// much.
func TestBegunInMemory(t *testing.T) {
	for found, want := range map[int]int{1: 2, 3: 2, 4: 2, 5: 5} {
		storage := NewMemory()
		before := records(storage, "site")
		_, _ = openRecords(t, before)
		learn(before, numberedPaths(2)...)
		if err := before.Write(texts(nil), "kept", false); err != nil {
			t.Fatal(err)
		}
		late := records(storage, "site")
		learn(late, numberedPaths(found)...)
		if _, err := openRecords(t, late); err != nil {
			t.Fatal(err)
		}
		isMore := want == found
		if got := late.Generation.Len(); got != want || late.Unsaved != isMore {
			t.Errorf("found %d: got %d records, unsaved %t, want %d, %t", found, got, late.Unsaved, want, isMore)
		}
	}
}

// TestForget: what another process has written replaces all that is known.
func TestForget(t *testing.T) {
	storage := NewMemory()
	r := records(storage, "site")
	if _, err := openRecords(t, r); err != nil {
		t.Fatal(err)
	}
	learn(r, numberedPaths(5)...)
	other := records(storage, "site")
	if _, err := openRecords(t, other); err != nil {
		t.Fatal(err)
	}
	learn(other, "/x", "/y")
	if err := other.Write(texts{"x"}, "theirs", Waits); err != nil {
		t.Fatal(err)
	}
	r.Reopen()
	var meta string
	var got texts
	err := r.Open(t.Context(), &meta, nil, got.restore)
	if err != nil || !slices.Equal(got, texts{"x"}) || meta != "theirs" || r.Generation.Len() != 2 || r.Unsaved {
		t.Errorf("got %v, %q, %q, %d records", err, got, meta, r.Generation.Len())
	}
}

// TestOpenWaits: what is committed on the side is what is read after it, not before it.
func TestOpenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := NewMemory()
		r := records(faulty{Storage: storage, store: 900 * time.Millisecond}, "")
		_, _ = openRecords(t, r)
		learn(r, "/a")
		if err := r.Write(texts{"a", "b"}, "kept", false); err != nil || !r.Unsaved {
			t.Errorf("got %v, unsaved %t", err, r.Unsaved)
		}
		r.Reopen()
		if _, err := openRecords(t, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while a commit goes on: got %v", err)
		}
		time.Sleep(time.Minute)
		if meta, err := openRecords(t, r); err != nil || meta != "kept" || r.Generation.Len() != 1 {
			t.Errorf("got %q, %v, %d records", meta, err, r.Generation.Len())
		}
	})
}

// TestFileOfAnother: what another process has stored since is overwritten, though this one has stored the same value before.
func TestFileOfAnother(t *testing.T) {
	storage := NewMemory()
	f := NewFile(storage, "a.json")
	save := func() error { return f.Save(t.Context(), func() ([]byte, error) { return []byte("mine"), nil }) }
	err := errors.Join(save(), storage.Store(t.Context(), "a.json", []byte("theirs")))
	if data, loading := f.Load(t.Context()); err != nil || loading != nil || string(data) != "theirs" {
		t.Errorf("got %q, %v, %v", data, err, loading)
	}
	if err := save(); err != nil {
		t.Error(err)
	}
	if data, err := f.Load(t.Context()); err != nil || string(data) != "mine" {
		t.Errorf("got %q, %v", data, err)
	}
}
