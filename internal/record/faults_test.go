package record

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/goleak"
)

var errDisk = errors.New("input/output error")

// errDone is of an operation that was done for all that.
var errDone = fmt.Errorf("done, but %w", errDisk)

// flaky is a Storage whose operations fail with the error of before, if that is not nil.
type flaky struct {
	Storage
	before func(op, key string) error
}

func (f *flaky) do(op, key string, do func() error) error {
	var err error
	if f.before != nil {
		if err = f.before(op, key); err != nil && err != errDone {
			return err
		}
	}
	return errors.Join(do(), err)
}

func (f *flaky) Store(ctx context.Context, key string, value []byte) error {
	return f.do("store", key, func() error { return f.Storage.Store(ctx, key, value) })
}

func (f *flaky) Load(ctx context.Context, key string) (data []byte, err error) {
	err = f.do("load", key, func() (err error) { data, err = f.Storage.Load(ctx, key); return err })
	return data, err
}

func (f *flaky) Delete(ctx context.Context, key string) error {
	return f.do("delete", key, func() error { return f.Storage.Delete(ctx, key) })
}

func (f *flaky) List(ctx context.Context, path string, recursive bool) (keys []string, err error) {
	err = f.do("list", path, func() (err error) { keys, err = f.Storage.List(ctx, path, recursive); return err })
	return keys, err
}

// numbered are the records and the document of a site that all tell generation n.
func numbered(n int) ([]Record, []StoredDocument) {
	records := realistic(4500)[3000:] // two chunks, of which the second stays
	for i := range records[:600] {
		records[i].Text = uint64(n)
	}
	document := NewDocument("index", nil, []byte(strings.Repeat(strconv.Itoa(n), 1000)))
	return records[n%7:], []StoredDocument{document, NewDocument("constant", nil, []byte("constant"))}
}

// advance makes generation n.
func advance(t testing.TB, g *Generation, n int) *Generation {
	records, documents := numbered(n)
	return put(t, g, records, 1000).WithDocuments([]byte(strconv.Itoa(n)), documents)
}

// number checks that a generation is whole and returns its number; 0: it is empty.
func number(t testing.TB, g *Generation) int {
	t.Helper()
	if len(g.Meta()) == 0 {
		expect(t, g, nil)
		return 0
	}
	n, err := strconv.Atoi(string(g.Meta()))
	if err != nil {
		t.Fatal(err)
	}
	records, documents := numbered(n)
	expect(t, g, records)
	for i, d := range documents {
		if data, err := g.Document(ctx, i); err != nil || folder+Hash(data) != d.Object.Name {
			t.Errorf("document %d of generation %d: %.20q, %v", i, n, data, err)
		}
	}
	return n
}

// TestFaults lets the nth operation fail, for every n: done all the same or not, alone or
// with all that follow, as if the process had ended there. What is stored is a whole
// generation all the time, and never one before the last that was committed.
func TestFaults(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 4
	}
	for _, test := range []struct {
		name          string
		done, forever bool
	}{{"once", false, false}, {"once, but done", true, false}, {"from then on", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			for n, failed := 0, true; failed && !t.Failed(); n += step {
				memory := NewMemory()
				s := open(t, memory)
				commit(t, s, advance(t, s.Last(), 1))
				failed = false
				left := n
				storage := &flaky{Storage: memory, before: func(string, string) error {
					if left--; left >= 0 || failed && !test.forever {
						return nil
					}
					failed = true
					if test.done {
						return errDone
					}
					return errDisk
				}}
				s = New(storage, prefix)
				err := s.Open(ctx, func(key string, err error) { t.Errorf("operation %d: %s is damaged: %v", n, key, err) })
				if err != nil {
					if number(t, open(t, memory).Last()) != 1 {
						t.Errorf("operation %d: another generation", n)
					}
					continue
				}
				g := advance(t, s.Last(), 2)
				err = s.Commit(ctx, g)
				storage.before = nil
				switch got := number(t, open(t, memory).Last()); {
				case err == nil && got != 2, got != 1 && got != 2, got == 2 && err != nil && !test.done:
					t.Errorf("operation %d: generation %d after %v", n, got, err)
				case err != nil && !errors.Is(err, errDisk):
					t.Errorf("operation %d: %v", n, err)
				case number(t, s.Last()) != got && !test.done:
					t.Errorf("operation %d: generation %d is stored, but not the last", n, got)
				}
				g = advance(t, g, 3)
				commit(t, s, g)
				if number(t, open(t, memory).Last()) != 3 || len(files(t, memory)) != len(g.state.Load().objects())+1 {
					t.Errorf("operation %d: not generation 3, or not tidy: %q", n, files(t, memory))
				}
			}
		})
	}
}

// TestReadErrors reads while the storage fails: nothing is taken for damaged.
func TestReadErrors(t *testing.T) {
	s := open(t, NewMemory())
	commit(t, s, advance(t, s.Last(), 1))
	damaged := func(key string, err error) { t.Errorf("%s is damaged: %v", key, err) }
	s.damaged.Store(&damaged)
	sound := s.storage
	for _, want := range []error{errDisk, os.ErrPermission, context.DeadlineExceeded, syscall.EMFILE, syscall.ENOTDIR} {
		s.storage = &flaky{Storage: sound, before: func(string, string) error { return want }}
		_, err := s.Last().Load(ctx, 0)
		_, err2 := s.Last().Document(ctx, 0)
		_, err3 := all(s.Last())
		err4 := New(s.storage, prefix).Open(ctx, nil)
		for i, err := range []error{err, err2, err3, err4} {
			if !errors.Is(err, want) || errors.Is(err, ErrDamaged) {
				t.Errorf("%d: error %v, want %v", i, err, want)
			}
		}
	}
	s.storage = sound
	if number(t, s.Last()) != 1 {
		t.Error("another generation")
	}
}

// TestCommitEnds with its context: nothing is written once that has ended before the nth operation, for every n.
func TestCommitEnds(t *testing.T) {
	for n, ended := 0, true; ended; n++ {
		memory := NewMemory()
		s := open(t, memory)
		commit(t, s, advance(t, s.Last(), 1))
		ctx, cancel := context.WithCancel(t.Context())
		ended = false
		left := n
		s.storage = Bounded(&flaky{Storage: memory, before: func(op, key string) error {
			if ended && (op == "store" || op == "delete") {
				t.Errorf("operation %d: %s %s after the end", n, op, key)
			}
			if left--; left < 0 && !ended {
				ended = true
				if op == "load" || op == "list" {
					cancel()
				} else {
					defer cancel() // during a write
				}
			}
			return nil
		}})
		err := s.Commit(ctx, advance(t, s.Last(), 2))
		s.storage.(*bounded).worker.Take(t.Context()) // what was under way has ended
		s.storage.(*bounded).worker.Release()
		if got := number(t, open(t, memory).Last()); got == 1 && !errors.Is(err, context.Canceled) {
			t.Errorf("operation %d: generation %d, error %v", n, got, err)
		}
		cancel()
	}
}

// TestHungDisk lets one operation after the other hang. Nothing waits longer than its
// context, and nothing that comes later is overtaken.
func TestHungDisk(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, op := range []string{"load", "list", "store", "delete"} {
		memory := NewMemory()
		s := open(t, memory)
		commit(t, s, advance(t, s.Last(), 1))
		g := advance(t, s.Last(), 2)
		hung, free := make(chan struct{}), make(chan struct{})
		var once sync.Once
		s.storage = Bounded(&flaky{Storage: memory, before: func(o, key string) error {
			if o == op {
				once.Do(func() { close(hung); <-free })
			}
			return nil
		}})
		limited, cancel := context.WithCancel(ctx)
		go func() { <-hung; cancel() }()
		// Once the manifest is written, what is left to be deleted is no error.
		want := map[string]error{"store": context.Canceled}[op]
		if err := s.Commit(limited, g); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", op, err, want)
		}
		if op == "load" {
			if err := New(s.storage, prefix).Open(limited, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if _, err := advance(t, g, 4).Load(limited, 0); err != nil {
				t.Errorf("a fresh chunk: %v", err)
			}
		}
		stopped, cancel := context.WithCancel(ctx)
		cancel()
		if err := s.Commit(stopped, g); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", op, err)
		}
		done := make(chan error)
		go func() { done <- s.Commit(ctx, advance(t, g, 3)) }()
		close(free)
		if err := <-done; err != nil || number(t, open(t, memory).Last()) != 3 {
			t.Errorf("%s: %v, or not generation 3", op, err)
		}
	}
}

// TestConcurrency reads generations while later ones are committed.
func TestConcurrency(t *testing.T) {
	s := open(t, NewMemory())
	damaged := func(key string, err error) { t.Errorf("%s is damaged: %v", key, err) }
	s.damaged.Store(&damaged)
	commit(t, s, advance(t, s.Last(), 1))
	if len(s.Last().Chunks()) < 2 {
		t.Fatal("one chunk")
	}
	stop, superseded := make(chan struct{}), 0
	var readers sync.WaitGroup
	readers.Go(func() {
		for last := 0; ; {
			g := s.Last()
			_, err := all(g)
			if n, _ := strconv.Atoi(string(g.Meta())); err == nil && n < last {
				t.Errorf("generation %d after %d", n, last)
			} else if err == nil {
				last = n
			} else if superseded++; !errors.Is(err, ErrSuperseded) {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for n := 2; n < 12; n++ {
		commit(t, s, advance(t, s.Last(), n))
	}
	old := s.Last()
	commit(t, s, advance(t, old, 12))
	close(stop)
	readers.Wait()
	if err := s.Commit(ctx, old.WithDocuments(nil, nil)); !errors.Is(err, ErrSuperseded) {
		t.Errorf("an old generation was committed: %v", err)
	}
	if _, err := all(old); !errors.Is(err, ErrSuperseded) || number(t, s.Last()) != 12 {
		t.Errorf("an old generation: %v", err)
	}
}

const killedFolder = "STORE_TEST_FOLDER"

func TestMain(m *testing.M) {
	folder := os.Getenv(killedFolder)
	t := new(testing.T)
	code := 1 // of what fails here: it ends this goroutine alone, and the tests would hang before they begin
	defer func() { os.Exit(code) }()
	if folder == "" {
		// What the compressors share is made outside of any bubble of fake time.
		warm := open(t, NewMemory())
		commit(t, warm, put(t, warm.Last(), realistic(1), 1))
		expect(t, open(t, warm.storage).Last(), realistic(1))
		code = m.Run()
		return
	}
	for s, n := open(t, &certmagic.FileStorage{Path: folder}), 1; ; n++ {
		commit(t, s, advance(t, s.Last(), n))
		fmt.Println(n)
	}
}

// isLong asks for as many kills as find what is rare.
var isLong = os.Getenv("SITEMAP_LONG") != ""

// TestKill kills a process that commits generation after generation, at any moment.
func TestKill(t *testing.T) {
	kills := 2
	switch {
	case testing.Short():
		kills = 1
	case isLong:
		kills = 6
	}
	for range kills {
		storage := &certmagic.FileStorage{Path: t.TempDir()}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killedFolder+"="+storage.Path)
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			t.Fatal(err)
		}
		told, lines := "0", bufio.NewScanner(out)
		for lines.Scan() {
			if told == "0" {
				time.AfterFunc(rand.N(200*time.Millisecond), func() { _ = cmd.Process.Kill() })
			}
			told = lines.Text()
		}
		_ = cmd.Wait()
		s := open(t, storage)
		n, _ := strconv.Atoi(told)
		if got := number(t, s.Last()); n == 0 || got != n && got != n+1 {
			t.Errorf("generation %d after %d", got, n)
		}
		commit(t, s, advance(t, s.Last(), n+2))
		if got := len(files(t, storage)); got != len(s.Last().state.Load().objects())+1 {
			t.Errorf("not tidy: %q", files(t, storage))
		}
	}
}
