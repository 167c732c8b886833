package sitemap

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recordedWriter keeps what is written, each time apart.
type recordedWriter struct{ writes []string }

func (w *recordedWriter) Write(p []byte) (int, error) {
	w.writes = append(w.writes, string(p))
	return len(p), nil
}

// TestCheckOutputAge is that a line is written at once where few come, and soon where
// no other follows it.
func TestCheckOutputAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w recordedWriter
		o := &checkOutput{w: &w}
		wrote := func(want ...string) {
			t.Helper()
			synctest.Wait()
			o.mu.Lock() // which guards w, too
			defer o.mu.Unlock()
			if !slices.Equal(w.writes, want) {
				t.Fatalf("got %q, want %q", w.writes, want)
			}
		}
		o.line("a")
		wrote("a\n")
		o.line("b")
		time.Sleep(maxHeldAge - 1)
		o.line("c")
		wrote("a\n")
		time.Sleep(time.Nanosecond)
		wrote("a\n", "b\nc\n")
		time.Sleep(maxHeldAge)
		o.line("d")
		wrote("a\n", "b\nc\n", "d\n")
		o.line("e")
		o.flush()
		wrote("a\n", "b\nc\n", "d\n", "e\n")
		time.Sleep(time.Hour)
		o.flush()
		wrote("a\n", "b\nc\n", "d\n", "e\n")
	})
}

// TestCheckOutputMany is that many lines take few writes, and that each is there.
func TestCheckOutputMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w recordedWriter
		o := &checkOutput{w: &w}
		var want strings.Builder
		for i := range 100_000 {
			line := fmt.Sprintf("%030d", i)
			o.line(line)
			want.WriteString(line + "\n")
		}
		o.flush()
		if got := strings.Join(w.writes, ""); got != want.String() {
			t.Errorf("got %d bytes, want %d", len(got), want.Len())
		}
		if most := want.Len()/maxHeld + 2; len(w.writes) > most {
			t.Errorf("got %d writes, want %d at most", len(w.writes), most)
		}
	})
}

// TestCheckOutputBroken is that who cannot write is told once, by a timer as well.
func TestCheckOutputBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var w recordedWriter
		o := &checkOutput{w: &w, failed: func(err error) { told = append(told, err.Error()) }}
		o.line("a")
		o.w = brokenWriter{}
		o.line("b")
		time.Sleep(maxHeldAge)
		synctest.Wait()
		o.line("c")
		o.flush()
		if want := []string{"writing what was found: the disk is full"}; !slices.Equal(told, want) || len(w.writes) != 1 {
			t.Errorf("got %q after %q, want %q", told, w.writes, want)
		}
	})
}

// TestCheckOutputOrder is that a failure is said behind what was found before it.
func TestCheckOutputOrder(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "sitemap.xml"), filepath.Join(dir, "other.xml")
	for _, name := range []string{file, other} {
		if err := os.WriteFile(name, []byte("no\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var both strings.Builder
	runCommandInto(t.Context(), nil, &both, &both, "check", file, other, filepath.Join(dir, "nosuch"))
	lines := strings.Split(both.String(), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[1], other+":1: error: ") || !strings.HasPrefix(lines[2], "Error: ") || !strings.HasPrefix(lines[3], "checked 2 documents") {
		t.Errorf("got %q", both.String())
	}
}
