package accesslog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// folder is one that logs are written to and followed in.
type folder struct {
	t    testing.TB
	path string
	*Follower
	options FollowOptions

	asOnWindows bool // where no file has an inode
}

func newFolder(t testing.TB, patterns ...string) *folder {
	t.Helper()
	d := &folder{t: t, path: t.TempDir()}
	for _, p := range patterns {
		d.options.Patterns = append(d.options.Patterns, filepath.Join(d.path, p))
	}
	d.Follower = NewFollower(d.options, Positions{})
	t.Cleanup(func() { d.Close() })
	return d
}

func (d *folder) at(name string) string { return filepath.Join(d.path, name) }

func (d *folder) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *folder) write(name, text string) {
	d.t.Helper()
	d.check(os.WriteFile(d.at(name), []byte(text), 0o644))
}

func (d *folder) add(name, text string) {
	d.t.Helper()
	f, err := os.OpenFile(d.at(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	d.check(err)
	_, err = f.WriteString(text)
	d.check(err)
	d.check(f.Close())
}

func (d *folder) rename(from, to string) {
	d.t.Helper()
	d.check(os.Rename(d.at(from), d.at(to)))
}

func (d *folder) remove(name string) {
	d.t.Helper()
	d.check(os.Remove(d.at(name)))
}

func (d *folder) copy(from, to string) {
	d.t.Helper()
	text, err := os.ReadFile(d.at(from))
	d.check(err)
	d.write(to, string(text))
}

func gzipOf(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func zstdOf(text string) string {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

// pack puts a compressed file in a file's place, as timberjack does.
func (d *folder) pack(name, ending string) {
	d.t.Helper()
	text, err := os.ReadFile(d.at(name))
	d.check(err)
	packed := zstdOf(string(text))
	if ending == ".gz" {
		packed = gzipOf(string(text))
	}
	d.write(name+ending+".tmp", packed)
	d.rename(name+ending+".tmp", name+ending)
	d.remove(name)
}

// poll returns what a poll reads.
func (d *folder) poll() []string {
	d.t.Helper()
	var got []string
	more, err := d.Poll(d.t.Context(), 1<<40, func(line []byte) { got = append(got, string(line)) })
	if err != nil || more {
		d.t.Fatalf("got more %t, err %v", more, err)
	}
	return got
}

// want polls once.
func (d *folder) want(want ...string) {
	d.t.Helper()
	if got := d.poll(); !slices.Equal(got, want) {
		d.t.Fatalf("got %q, want %q", got, want)
	}
}

// wantNothing polls until everything was looked at again.
func (d *folder) wantNothing() {
	d.t.Helper()
	for range 2*lookEvery + 2 {
		d.want()
	}
}

// restart stops the follower, and starts another from where it was.
func (d *folder) restart() {
	d.t.Helper()
	text, err := json.Marshal(d.Positions())
	d.check(err)
	d.Close()
	var p Positions
	d.check(json.Unmarshal(text, &p))
	d.Follower = NewFollower(d.options, p)
	if d.asOnWindows {
		d.blind = true
	}
}

func TestGrows(t *testing.T) {
	d := newFolder(t, "access.log")
	d.want()
	d.add("access.log", "one\ntwo\r\n\nthr")
	d.want("one", "two\r", "")
	d.want()
	d.add("access.log", "ee")
	d.want()
	d.add("access.log", "\nfour\n")
	d.want("three", "four")
	d.wantNothing()
	s := d.Stats()
	if s.Lines != 5 || s.Bytes != 21 || s.Files != 1 || len(s.Errors) != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestFromTheStartByAge(t *testing.T) {
	for _, names := range [][]string{
		{"access-2026-11-20T01-35-51.000-size.log.gz", "access-2026-11-20T01-35-51.001-time.log.zst", "access-2026-11-21T01-35-51.000.log.gz", "access-2026-11-21T01-35-52.000-size.log", "access-2026-11-21T01-35-52.000-size_2.log", "access-2026-11-21T01-35-52.000-size_10.log", "access.log"},
		{"access.log.12", "access.log.3.gz", "access.log.2.gz", "access.log.1", "access.log"},
		{"access.log-20261119.gz", "access.log-20261120-1795226077.gz", "access.log-20261120-1795226078", "access.log-20261121", "access.log"},
		{"access-20261119.log", "access-20261120.log.gz", "access.log"},
		{"access.log.2026-11-19-00_00_00", "access.log.2026-11-20-00_00_00.gz", "access.log"},
		{"access.log.1795226077", "access.log.1795226078"},
	} {
		t.Run(names[0], func(t *testing.T) {
			d := newFolder(t, "access.log")
			for _, name := range slices.Backward(names) {
				text := name + "\n"
				switch filepath.Ext(name) {
				case ".gz":
					text = gzipOf(text)
				case ".zst":
					text = zstdOf(text)
				}
				d.write(name, text)
			}
			for _, other := range []string{
				"access-admin.log", "access-admin.log.1", "access-admin-2026-11-20T01-35-51.000-size.log", "access.log.old", "access-20269999.log",
				"access-12345678.log", "access_log", "xaccess.log", "access.log.gz.tmp", "access-2026-11-20T01-35-51.000-size.log.gz.tmp", "access.log.1.tmp",
				"access.log.123456", "access-2026.log", "access.txt", "access-2026-11-20T01-35-51.000-size.txt", "error.log-20261119",
			} {
				d.write(other, "of another\n")
			}
			d.want(names...)
			d.wantNothing()
			d.restart()
			d.wantNothing()
		})
	}
}

func TestRolledByRenaming(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n2\n")
	d.want("1", "2")
	d.add("access.log", "3\n")
	d.rename("access.log", "access.log.1")
	d.add("access.log", "5\n")
	d.add("access.log.1", "4\n")
	d.want("3", "4", "5")
	d.add("access.log.1", "late\n")
	d.add("access.log", "6\n")
	d.want("late", "6")
	d.want()
	d.rename("access.log.1", "access.log.2")
	d.rename("access.log", "access.log.1")
	d.wantNothing()
	d.write("access.log", "7\n")
	d.want("7")
	d.add("access.log.1", "very late\n")
	for range lookEvery {
		if got := d.poll(); len(got) == 1 && got[0] == "very late" {
			return
		}
	}
	t.Error("what is written long after is not read")
}

func TestLastLineOfRolled(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n2")
	d.want("1")
	d.wantNothing()
	d.rename("access.log", "access-2026-11-21T01-35-51.000-size.log")
	d.write("access.log", "3\n")
	d.want("3")
	d.want("2")
	d.pack("access-2026-11-21T01-35-51.000-size.log", ".gz")
	d.wantNothing()
	d.write("access-2026-11-22T01-35-51.000-size.log.zst", zstdOf("4\n5"))
	d.want("4", "5")
	d.restart()
	d.wantNothing()
}

func TestPackedUnread(t *testing.T) {
	for _, ending := range []string{".gz", ".zst"} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(ending, restart), func(t *testing.T) {
				d := newFolder(t, "access.log")
				d.write("access.log", "1\n2\nthr")
				d.want("1", "2")
				if restart {
					d.restart()
				}
				d.add("access.log", "ee\n4\n")
				d.rename("access.log", "access-2026-11-21T01-35-51.000-size.log")
				d.pack("access-2026-11-21T01-35-51.000-size.log", ending)
				d.write("access.log", "5\n")
				got := slices.Concat(d.poll(), d.poll(), d.poll())
				if want := []string{"three", "4", "5"}; !slices.Equal(got, want) {
					t.Fatalf("got %q, want %q", got, want)
				}
				d.wantNothing()
				d.restart()
				d.wantNothing()
			})
		}
	}
}

func TestCopiedAndTruncated(t *testing.T) {
	for _, step := range []string{"", "between", "restart", "both"} {
		t.Run(step, func(t *testing.T) {
			d := newFolder(t, "access.log")
			d.write("access.log", "1\n2\n")
			d.want("1", "2")
			d.add("access.log", "3\n4")
			d.copy("access.log", "access.log.1")
			var want []string
			if step == "between" || step == "both" {
				d.want("3")
			} else {
				want = append(want, "3")
			}
			if step == "restart" || step == "both" {
				d.restart()
			}
			d.check(os.Truncate(d.at("access.log"), 0))
			d.add("access.log", "five\nsix\nseven\n")
			got := slices.Concat(d.poll(), d.poll(), d.poll(), d.poll())
			slices.Sort(got)
			want = append(want, "4", "five", "seven", "six")
			if !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			d.wantNothing()
			d.restart()
			d.wantNothing()
		})
	}
}

func TestTruncated(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n2\n")
	d.want("1", "2")
	d.check(os.Truncate(d.at("access.log"), 0))
	d.want()
	d.add("access.log", "3\n")
	d.want("3")
	d.write("access.log", "a longer one\n")
	got := slices.Concat(d.poll(), d.poll())
	if !slices.Equal(got, []string{"a longer one"}) {
		t.Fatalf("got %q", got)
	}
	d.add("access.log", "5\n6\n")
	d.want("5", "6")
	d.check(os.Truncate(d.at("access.log"), int64(len("a longer one\n"))))
	d.want()
	d.add("access.log", "7\n")
	d.want("7")
	d.wantNothing()
}

func TestRemoved(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n")
	d.want("1")
	d.remove("access.log")
	d.wantNothing()
	d.write("access.log", "2\n")
	d.want("2")
}

func TestFolderAppears(t *testing.T) {
	d := newFolder(t, "logs/site/access*.log", "*/b/error.log")
	d.wantNothing()
	d.check(os.MkdirAll(d.at("logs/site"), 0o755))
	d.write("logs/site/access-2.log", "1\n")
	d.write("logs/site/access-2.log.1", "0\n")
	d.want("0", "1")
	d.check(os.MkdirAll(d.at("a/b"), 0o755))
	d.write("a/b/error.log", "2\n")
	var got []string
	for range lookEvery {
		got = append(got, d.poll()...)
	}
	if !slices.Equal(got, []string{"2"}) {
		t.Errorf("got %q", got)
	}
}

func TestManyNamesOfAFile(t *testing.T) {
	d := newFolder(t, "*.log")
	d.write("a.log", "1\n")
	d.check(os.Link(d.at("a.log"), d.at("b.log")))
	d.check(os.Symlink(d.at("a.log"), d.at("c.log")))
	d.check(os.Symlink(d.at("nothing"), d.at("d.log")))
	d.want("1")
	d.wantNothing()
	d.add("b.log", "2\n")
	d.want("2")
	d.restart()
	d.wantNothing()
}

func TestDamaged(t *testing.T) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "line %d %x\n", i, i*i*i)
	}
	for _, c := range []struct{ name, content, reason string }{
		{"access.log.1.gz", gzipOf(text.String()), ""},
		{"access.log.1.gz", gzipOf(text.String()[:1000]) + gzipOf(text.String()[1000:]), ""},
		{"access.log.1.gz", gzipOf(text.String())[:20_000], CutShort},
		{"access.log.1.gz", gzipOf(text.String()) + "garbage behind it", Damaged},
		{"access.log.1.gz", "no gzip at all, whatever its name", Damaged},
		{"access.log.1.gz", "", CutShort},
		{"access.log.1.zst", zstdOf(text.String()), ""},
		{"access.log.1.zst", zstdOf(text.String())[:20_000], CutShort},
		{"access.log.1.zst", "no zstd at all, whatever its name", Damaged},
		{"access.log.1.xz", "\xFD7zXZ\x00", Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFolder(t, "access.log*")
			d.write(c.name, c.content)
			got := strings.Join(d.poll(), "\n") + "\n"
			if !strings.HasPrefix(text.String()+"\n", got) && got != "\n" {
				t.Errorf("got something else: %d bytes", len(got))
			}
			if c.reason == "" && got != text.String() {
				t.Errorf("got %d bytes, want %d", len(got), text.Len())
			}
			s := d.Stats()
			if c.reason != "" && s.PassedOver[c.reason] != 1 {
				t.Errorf("got %+v, want %s", s, c.reason)
			}
			if want := c.reason != "" && c.reason != Unknown; (s.Errors[d.at(c.name)] != nil) != want {
				t.Errorf("got errors %v", s.Errors)
			}
			d.wantNothing()
			if after := d.Stats(); after.Files != s.Files {
				t.Errorf("it was read again")
			}
			d.restart()
			d.wantNothing()
			if c.reason == "" || c.reason == Unknown {
				return
			}
			whole := gzipOf(text.String())
			if strings.HasSuffix(c.name, ".zst") {
				whole = zstdOf(text.String())
			}
			d.write(c.name, whole)
			d.check(os.Chtimes(d.at(c.name), time.Time{}, time.Now().Add(time.Hour)))
			var rest []string
			for range lookEvery {
				rest = append(rest, d.poll()...)
			}
			if all := strings.TrimPrefix(got, "\n") + strings.Join(rest, "\n") + "\n"; c.content != "" && strings.TrimRight(all, "\n")+"\n" != text.String() {
				t.Errorf("when it is whole, got %d bytes, want %d", len(all), text.Len())
			}
			if s := d.Stats(); len(s.Errors) != 0 {
				t.Errorf("got %v", s.Errors)
			}
		})
	}
}

func TestContextEnds(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if more, err := d.Poll(ctx, 100, func([]byte) { t.Error("a line was read") }); err != context.Canceled || !more {
		t.Errorf("got more %t, err %v", more, err)
	}
	d.want("1")
}

func TestLongLines(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	d := newFolder(t, "access.log")
	d.add("access.log", "1\n"+long(maxLine+1)+"\n2\n"+long(maxLine)+"\n3\n"+long(5*maxLine)+"\n\n")
	d.want("1", "2", long(maxLine), "3", "")
	d.add("access.log", long(2*maxLine))
	d.want()
	d.restart()
	d.add("access.log", long(2*maxLine))
	d.want()
	d.restart()
	d.add("access.log", long(10)+"\n4\n")
	d.want("4")
	if s := d.Stats(); s.TooLong != 0 || s.Lines != 1 {
		t.Errorf("got %+v: it was counted before", s)
	}
	d.add("access.log", long(maxLine+1))
	d.rename("access.log", "access.log.1")
	d.want()
	d.wantNothing()
	d.write("access.log", "5\n")
	d.want("5")
	if s := d.Stats(); s.TooLong != 1 {
		t.Errorf("got %+v", s)
	}
}

// allocated is how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBomb reads a line of 40 MiB, compressed and not.
func TestBomb(t *testing.T) {
	const size = 40 << 20
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 1<<20)
	for range size / len(part) {
		z.Write(part)
	}
	z.Write([]byte("\nlast\n"))
	z.Close()
	var gz bytes.Buffer
	g := gzip.NewWriter(&gz)
	for range size / len(part) {
		g.Write(part)
	}
	g.Write([]byte("\nlast\n"))
	g.Close()
	for name, content := range map[string]string{"access.log.1.gz": gz.String(), "access.log.1.zst": packed.String(), "access.log.1": ""} {
		t.Run(name, func(t *testing.T) {
			d := newFolder(t, "access.log")
			d.write(name, content)
			if content == "" {
				d.check(os.Truncate(d.at(name), size))
				d.add(name, "\nlast\n")
			}
			if got := allocated(func() { d.want("last") }); got > 20<<20 {
				t.Errorf("it takes %d MiB", got>>20)
			}
			if s := d.Stats(); s.TooLong != 1 || s.Bytes != size+6 {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// TestHugeWindow refuses a zstd file that wants 64 MiB to be held.
func TestHugeWindow(t *testing.T) {
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for range 65 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	d := newFolder(t, "access.log")
	d.write("access.log.1.zst", packed.String())
	d.wantNothing()
	if s := d.Stats(); s.PassedOver[Damaged] != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestMost(t *testing.T) {
	for _, name := range []string{"access.log", "access.log.1.gz", "access.log.1.zst"} {
		d := newFolder(t, "access.log")
		var text strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&text, "%4d\n", i)
		}
		content := text.String()
		switch filepath.Ext(name) {
		case ".gz":
			content = gzipOf(content)
		case ".zst":
			content = zstdOf(content)
		}
		d.write(name, content)
		for i := range 100 {
			n := 0
			more, err := d.Poll(t.Context(), 50, func(line []byte) {
				if want := fmt.Sprintf("%4d", 10*i+n); string(line) != want {
					t.Fatalf("%s: got %q, want %q", name, line, want)
				}
				n++
			})
			if n != 10 || !more || err != nil {
				t.Fatalf("%s: got %d lines, more %t, err %v", name, n, more, err)
			}
			if i%17 == 0 {
				d.restart()
			}
		}
		d.wantNothing()
	}
}

func TestAnyBytes(t *testing.T) {
	d := newFolder(t, "access.log")
	text := make([]byte, 300_000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = byte(rnd.Uint32())
	}
	text = append(text, 0, '\n')
	d.write("access.log", string(text))
	var want []string
	for line := range bytes.Lines(text) {
		want = append(want, string(line[:len(line)-1]))
	}
	d.want(want...)
	d.wantNothing()
}

func TestNoFiles(t *testing.T) {
	d := newFolder(t, "*.log", "[", "a.log/b.log")
	d.write("a.log", "")
	d.check(os.Mkdir(d.at("b.log"), 0o755))
	d.wantNothing()
	s := d.Stats()
	if s.PassedOver[NotRegular] != 1 || s.Errors[d.at("[")] == nil || s.Errors[d.at("a.log")] == nil || len(s.Errors) != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestManyFiles(t *testing.T) {
	d := newFolder(t, "*.log")
	now := time.Now()
	for i := range maxFiles + 50 {
		name := fmt.Sprintf("site%04d.log", i)
		d.write(name, fmt.Sprintf("%d\n", i))
		at := now.Add(time.Duration(i-2000) * time.Second)
		d.check(os.Chtimes(d.at(name), at, at))
	}
	got := d.poll()
	if len(got) != maxFiles || got[0] != "50" || !slices.IsSortedFunc(got, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) {
		t.Errorf("got %d lines from %q on", len(got), got[0])
	}
	if s := d.Stats(); s.PassedOver[TooMany] != 50 {
		t.Errorf("got %+v", s)
	}
	d.restart()
	d.wantNothing()
	d.add("site0700.log", "more\n")
	d.want("more")
}

func TestHistory(t *testing.T) {
	d := newFolder(t, "access.log")
	now := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	d.options.History, d.options.Now = 24*time.Hour, func() time.Time { return now }
	d.restart()
	for name, age := range map[string]time.Duration{"access.log.3": 25 * time.Hour, "access.log.2": 23 * time.Hour, "access.log.1": 22 * time.Hour, "access.log": -48 * time.Hour} {
		d.write(name, name+"\n")
		d.check(os.Chtimes(d.at(name), now, now.Add(-age)))
	}
	d.want("access.log.2", "access.log.1", "access.log")
	if s := d.Stats(); s.PassedOver[TooOld] != 1 {
		t.Errorf("got %+v", s)
	}
	now = now.Add(-72 * time.Hour)
	got := d.poll()
	for range lookEvery {
		got = append(got, d.poll()...)
	}
	if !slices.Equal(got, []string{"access.log.3"}) {
		t.Errorf("when the clock went back, got %q", got)
	}
}

func TestReplaced(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n2\n")
	d.want("1", "2")
	d.write("new", "1\n2\n3\n") // as an editor does
	d.rename("new", "access.log")
	got := slices.Concat(d.poll(), d.poll(), d.poll())
	if !slices.Equal(got, []string{"3"}) {
		t.Fatalf("got %q", got)
	}
	d.write("new", "another\n")
	d.rename("new", "access.log")
	d.want("another")
	d.wantNothing()
}

// TestBackup copies a log that goes on.
func TestBackup(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n2\n")
	d.copy("access.log", "access.log.1")
	d.write("access.log-20261121.gz", gzipOf("1\n2\n"))
	d.want("1", "2")
	d.wantNothing()
	d.add("access.log", "3\n")
	d.want("3")
	d.restart()
	d.wantNothing()
	d.remove("access.log")
	d.wantNothing()
	d.write("access.log", "4\n")
	d.want("4")
	d.wantNothing()
}

// TestIdle polls an unchanged file without looking at its folder.
func TestIdle(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n")
	old := time.Now().Add(-time.Hour)
	d.check(os.Chtimes(d.path, old, old))
	d.want("1")
	d.passedOver = nil // until the next look
	for range lookEvery - 1 {
		d.want()
		if d.passedOver != nil {
			t.Fatal("the folder was looked at")
		}
	}
	d.want()
	if d.passedOver == nil {
		t.Fatal("the folder was not looked at")
	}
	d.passedOver = nil
	d.write("access.log.1", "0\n")
	d.want("0")
}

func TestAllocations(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", strings.Repeat(strings.Repeat("x", 200)+"\n", 20_000))
	n := 0
	if got := allocated(func() {
		if _, err := d.Poll(t.Context(), 1<<40, func([]byte) { n++ }); err != nil {
			t.Fatal(err)
		}
	}); n != 20_000 || got > 1<<20 {
		t.Errorf("%d lines take %d bytes", n, got)
	}
}

func TestClosedTwice(t *testing.T) {
	d := newFolder(t, "access.log")
	d.Close()
	d.write("access.log", "1\n")
	d.want("1")
	d.Close()
	d.Close()
}

func TestPositionsAreBounded(t *testing.T) {
	var p Positions
	for i := range 5000 {
		p.Files = append(p.Files, Position{Log: "/x", Head: uint64(i), HeadSize: 1, Offset: 1})
	}
	d := newFolder(t, "access.log")
	d.Follower = NewFollower(d.options, p)
	d.want()
	got := d.Positions().Files
	if len(got) != maxGone || got[len(got)-1].Head != 4999 {
		t.Errorf("got %d positions", len(got))
	}
}

func TestMerge(t *testing.T) {
	a := Positions{[]Position{
		{Log: "/a", Offset: 10, Head: 1, HeadSize: 10},
		{Log: "/a", Offset: 99, Head: 2, HeadSize: 4096},
		{Log: "/a", Offset: 5, Head: 3, HeadSize: 5},
		{Log: "/a", Offset: 5, Head: 4, HeadSize: 5},
		{Log: "/a", Offset: 5, Head: 5, HeadSize: 5},
	}}
	b := Positions{[]Position{
		{Log: "/b", Offset: 50, Head: 2, HeadSize: 4096},
		{Log: "/a", Offset: 20, Head: 1, HeadSize: 10},
		{Log: "/b", Offset: 5, Head: 4, HeadSize: 5},
		{Log: "/a", Offset: 5, Head: 5, HeadSize: 6},
	}}
	want := []Position{a.Files[0], b.Files[0]}
	if got := Merge(a, b).Files; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got := Merge(b, a).Files
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		t.Errorf("the other way round got %+v, want %+v", got, want)
	}
}

func TestReasonOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission}, NoPermission},
		{&fs.PathError{Op: "read", Path: "/x", Err: errors.New("input/output error")}, Unreadable},
		{unpacking(io.ErrUnexpectedEOF), CutShort},
		{unpacking(errors.New("checksum")), Damaged},
		{errNotRegular, NotRegular},
	} {
		if got := reasonOf(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

// TestVanishes removes and replaces files after they were examined, before they are
// opened.
func TestVanishes(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log.4", "4\n")
	d.write("access.log.3", "3\n")
	d.write("access.log.2.gz", gzipOf("2\n"))
	d.write("access.log.1", "1\n")
	var got []string
	line := func(b []byte) {
		got = append(got, string(b))
		if len(got) > 1 {
			return
		}
		d.remove("access.log.3")
		d.remove("access.log.2.gz")
		d.write("new", "another\n")
		d.rename("new", "access.log.1")
	}
	for range 3 {
		if _, err := d.Poll(t.Context(), 1<<40, line); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []string{"4", "another"}) {
		t.Errorf("got %q", got)
	}
	if s := d.Stats(); len(s.Errors) != 0 {
		t.Errorf("got %+v", s)
	}
	d.wantNothing()
}

// TestTruncatedWhileRead truncates a log and writes as much anew between two reads.
func TestTruncatedWhileRead(t *testing.T) {
	d := newFolder(t, "access.log")
	text := func(word string) string {
		var b strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&b, "%s %d\n", word, i)
		}
		return b.String()
	}
	d.write("access.log", text("old"))
	var got []string
	line := func(b []byte) {
		if len(got) == 0 {
			d.write("access.log", text("later"))
		}
		got = append(got, string(b))
	}
	for range 3 {
		if _, err := d.Poll(t.Context(), 1<<40, line); err != nil {
			t.Fatal(err)
		}
	}
	old := slices.IndexFunc(got, func(s string) bool { return s == "later 0" })
	if old < 0 || !strings.HasPrefix(text("old"), strings.Join(got[:old], "\n")+"\n") {
		t.Fatalf("got %d old lines", old)
	}
	if strings.Join(got[old:], "\n")+"\n" != text("later") {
		t.Errorf("got %d new lines, want %d", len(got)-old, 100_000)
	}
}

// TestManyMembers reads a log that was appended to another when both were compressed.
func TestManyMembers(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log.1.gz", gzipOf("1\n2")+gzipOf("\n")+gzipOf("")+gzipOf("3\n"))
	d.write("access.log.2.zst", zstdOf("-1\n")+zstdOf("")+zstdOf("0\n"))
	d.want("-1", "0", "1", "2", "3")
	d.wantNothing()
}

// TestBeingCompressed finds no fault with a file that is written just now.
func TestBeingCompressed(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log.1", "1\n2\n")
	packed := gzipOf("1\n2\n")
	d.want("1", "2")
	for _, part := range []string{"", packed[:5], packed[5:12], packed[12:]} {
		d.add("access.log.1.gz", part)
		d.wantNothing()
		if s := d.Stats(); len(s.Errors) != 0 || len(s.PassedOver) != 0 {
			t.Fatalf("with %d bytes more got %+v", len(part), s)
		}
	}
	d.remove("access.log.1")
	d.wantNothing()
	d.write("access.log.2.gz", packed[:5])
	d.wantNothing()
	if s := d.Stats(); s.PassedOver[CutShort] != 1 || s.Errors[d.at("access.log.2.gz")] == nil {
		t.Errorf("got %+v", s)
	}
}
