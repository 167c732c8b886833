package state

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
)

const crashVar = "STATE_CRASH_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(crashVar); folder != "" {
		if err := writeForever(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeForever commits generation after generation and says so.
func writeForever(folder string) error {
	ctx := context.Background()
	b, err := Open(ctx, &certmagic.FileStorage{Path: folder}, "site")
	if err != nil {
		return err
	}
	g, err := generationOf(ctx, b)
	for err == nil {
		fmt.Println(g)
		g++
		b, err = advance(ctx, b, g)
	}
	return err
}

// TestKill kills a process that writes, at any moment, and opens what it left.
func TestKill(t *testing.T) {
	times, most := 40, 60*time.Millisecond
	if slow {
		times, most = 5, time.Second
	}
	folder := t.TempDir()
	st := &certmagic.FileStorage{Path: folder}
	last := 0
	for i := range times {
		wait := rand.N(most)
		said := killWriter(t, folder, wait)
		b, err := Open(context.Background(), st, "site")
		if err != nil {
			t.Fatalf("kill %d, after %v: %v", i, wait, err)
		}
		g, err := generationOf(context.Background(), b)
		if err != nil {
			t.Fatalf("kill %d, after %v: %v", i, wait, err)
		}
		if g < said || g > said+1 || g < last {
			t.Fatalf("kill %d, after %v: generation %d, after %d was committed", i, wait, g, said)
		}
		last = g
	}
	if last == 0 {
		t.Errorf("generation %d after all", last)
	}
	// What was left of values and halves of them goes with the next commit.
	before := len(must(filepath.Glob(filepath.Join(folder, "site/state/*")))(t))
	b := must(Open(context.Background(), st, "site"))(t)
	b, err := advance(context.Background(), b, last+1)
	if err != nil {
		t.Fatal(err)
	}
	expectTidyFiles(t, b)
	t.Logf("%d generations, %d files before the last of them", last, before)
}

func expectTidyFiles(t *testing.T, b *Book) {
	t.Helper()
	want := map[string]bool{b.manifestKey(): true}
	b.allRefs(func(r ref) { want[b.key(r.name)] = true })
	keys := must(b.storage.List(context.Background(), b.folder, true))(t)
	if len(keys) != len(want) {
		t.Errorf("%d files, want %d", len(keys), len(want))
	}
}

// killWriter lets a process write for a while after it has committed something, and
// returns what it said last.
func killWriter(t *testing.T, folder string, wait time.Duration) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashVar+"="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the writer said nothing")
	}
	timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	line := lines.Text()
	for lines.Scan() {
		line = lines.Text()
	}
	_ = cmd.Wait()
	said, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return said
}
