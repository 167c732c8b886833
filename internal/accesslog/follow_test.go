package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const month = 30 * 24 * time.Hour

// folder is one that logs are written to and followed in.
type folder struct {
	testing.TB
	path     string
	patterns []string
	*follower
	errs map[string]string // of the last poll, by name
}

func newFolder(t testing.TB, patterns ...string) *folder {
	t.Helper()
	d := &folder{TB: t, path: t.TempDir()}
	for _, p := range patterns {
		d.patterns = append(d.patterns, d.at(p))
	}
	d.follow(nil)
	return d
}

func (d *folder) follow(from Positions) {
	d.follower = newFollower(d.patterns, month, time.Now, from)
}

// restart follows on from where it was.
func (d *folder) restart() {
	d.Helper()
	text, err := json.Marshal(d.Positions())
	d.check(err)
	var p Positions
	d.check(json.Unmarshal(text, &p))
	d.follow(p)
}

func (d *folder) at(name string) string { return filepath.Join(d.path, name) }

func (d *folder) check(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// link makes a symbolic link, which takes a privilege on Windows.
func (d *folder) link(target, path string) {
	d.Helper()
	err := os.Symlink(target, path)
	if err != nil && runtime.GOOS == "windows" {
		d.Skip(err)
	}
	d.check(err)
}

// write writes a file, compressed as its name says.
func (d *folder) write(name, text string) {
	d.Helper()
	d.check(os.MkdirAll(filepath.Dir(d.at(name)), 0o755))
	d.check(os.WriteFile(d.at(name), []byte(packed(name, text)), 0o644))
}

func (d *folder) add(name, text string) {
	d.Helper()
	f, err := os.OpenFile(d.at(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	d.check(err)
	_, err = f.WriteString(text)
	d.check(err)
	d.check(f.Close())
}

func (d *folder) rename(from, to string) {
	d.Helper()
	d.check(os.Rename(d.at(from), d.at(to)))
}

func (d *folder) read(name string) string {
	d.Helper()
	text, err := os.ReadFile(d.at(name))
	d.check(err)
	return string(text)
}

// pack compresses a file, as timberjack does.
func (d *folder) pack(name, ending string) {
	d.Helper()
	d.write("new"+ending, d.read(name))
	d.rename("new"+ending, name+ending)
	d.check(os.Remove(d.at(name)))
}

func packed(name, text string) string {
	var b bytes.Buffer
	var w io.WriteCloser
	switch filepath.Ext(name) {
	case ".gz":
		w = gzip.NewWriter(&b)
	case ".zst":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	default:
		return text
	}
	_, _ = io.WriteString(w, text)
	w.Close()
	return b.String()
}

// poll returns the lines that a poll reads.
func (d *folder) poll() []string {
	d.Helper()
	var got []string
	d.Poll(d.Context(), func(line []byte) string { got = append(got, string(line)); return "read" })
	d.errs = make(map[string]string)
	for _, log := range d.Logs() {
		name, err := filepath.Rel(d.path, log.Path)
		d.check(err)
		if log.Error != "" {
			d.errs[name] = log.Error
		}
	}
	return got
}

// want polls once, and again to no effect, also after a restart.
func (d *folder) want(want ...string) {
	d.Helper()
	if got := d.poll(); !slices.Equal(got, want) {
		d.Fatalf("got %q, want %q", got, want)
	}
	if got := d.poll(); len(got) > 0 {
		d.Fatalf("then got %q", got)
	}
	d.restart()
	if got := d.poll(); len(got) > 0 {
		d.Fatalf("after a restart got %q", got)
	}
}

func TestGrows(t *testing.T) {
	d := newFolder(t, "access.log")
	d.want()
	d.add("access.log", "one\ntwo\r\n\nthr")
	d.want("one", "two\r", "")
	d.add("access.log", "ee")
	d.want()
	d.add("access.log", "\nfour\n")
	d.want("three", "four")
	d.check(os.Remove(d.at("access.log")))
	d.want()
	d.write("access.log", "five\n")
	d.want("five")
}

func TestRolledNames(t *testing.T) {
	for _, names := range [][]string{
		{"access-2026-11-20T01-35-51.000-size.log.gz", "access-2026-11-20T01-35-51.001-time.log.zst", "access-2026-11-21T01-35-51.000.log.gz", "access-2026-11-21T01-35-52.000-size_2.log", "access.log"},
		{"access.log.12", "access.log.3.gz", "access.log.2.zst", "access.log.1", "access.log"},
		{"access.log-20261119.gz", "access.log-20261120-1795226077.gz", "access.log-20261121", "access.log"},
		{"access-20261119.log", "access-20261120.log.gz", "access.log"},
		{"access.log.2026-11-19-00_00_00", "access.log.2026-11-20-00_00_00.gz", "access.log.1795226078", "access.log"},
	} {
		t.Run(names[0], func(t *testing.T) {
			d := newFolder(t, "access.log")
			for i, name := range names {
				d.write(name, name+"\n")
				at := time.Now().Add(time.Duration(i-len(names)) * time.Minute)
				d.check(os.Chtimes(d.at(name), at, at))
			}
			for _, other := range []string{
				"access-admin.log", "access-admin.log.1", "access-admin-2026-11-20T01-35-51.000-size.log", "access.log.old", "access-20269999.log",
				"access-12345678.log", "access_log", "xaccess.log", "access.log.gz.tmp", "access-2026-11-20T01-35-51.000-size.log.gz.tmp", "access.log.1.tmp",
				"access.log.123456", "access-2026.log", "access.txt", "access-2026-11-20T01-35-51.000-size.txt", "error.log-20261119",
			} {
				d.write(other, "of another\n")
			}
			d.want(names...)
		})
	}
}

// TestLogOf: the lines of all files of a log are the log's.
func TestLogOf(t *testing.T) {
	for _, test := range []struct{ pattern, name, want string }{
		{"example.com.8080", "example.com.8080", "example.com.8080"}, // live, whatever its name looks like
		{"example.com.8080", "example.com.8080.1", "example.com.8080"},
		{"example.com.8080", "example.com", ""},
		{"example.com.8080", "example.com.8081", ""},
		{"*.8080", "example.com.8080", "example.com.8080"},
		{"access*", "access.log.1", "access.log"},
		{"access.log.*", "access.log.1.gz", "access.log.1"},
		{"*.gz", "access.log.1.gz", "access.log.1.gz"},
		{"a[1].log", "a[1].log", "a[1].log"},
		{"*/b.log", "a/b.log-20261119", "a/b.log"},
		{"*/b.log", "a/c.log", ""},
	} {
		d := newFolder(t, test.pattern)
		want := ""
		if test.want != "" {
			want = d.at(test.want)
		}
		if got := d.logOf(d.at(test.name)); got != want {
			t.Errorf("%s by %s: got %q, want %q", test.name, test.pattern, got, want)
		}
	}
}

// TestRolled: what a log has is read once however it is rolled, whatever of it was read before.
func TestRolled(t *testing.T) {
	copied := func(to string) func(*folder) {
		return func(d *folder) { d.write(to, d.read("access.log")); d.check(os.Truncate(d.at("access.log"), 0)) }
	}
	for name, roll := range map[string]func(*folder){
		"renamed":                   func(d *folder) { d.rename("access.log", "access.log.1") },
		"renamed to any name":       func(d *folder) { d.rename("access.log", "access.log.old") },
		"compressed":                func(d *folder) { d.rename("access.log", "access.log.1"); d.pack("access.log.1", ".gz") },
		"copied and truncated":      copied("access.log.1"),
		"copied to any name":        copied("backup of today"),
		"copied and compressed":     copied("access.log.1.zst"),
		"copied to any name .gz":    copied("today.gz"),
		"replaced, as by an editor": func(d *folder) { d.write("new", d.read("access.log")+"4\n"); d.rename("new", "access.log") },
	} {
		for _, more := range []string{"", "2\nthree is longer\n"} {
			t.Run(name+more, func(t *testing.T) {
				d := newFolder(t, "access.log")
				d.write("another", "of another\n")
				d.write("access.log", "0\n1\n")
				at := time.Now().Add(time.Hour) // the same for all, as times of files are coarse
				d.check(os.Chtimes(d.at("access.log"), at, at))
				d.want("0", "1")
				d.add("access.log", more)
				roll(d)
				d.add("access.log", "5\n6\n")
				d.check(os.Chtimes(d.at("access.log"), at, at))
				want := strings.Fields(strings.ReplaceAll(more, " ", "_") + "5\n6\n")
				if strings.HasPrefix(name, "replaced") {
					want = append(want, "4")
				}
				got := d.poll()
				for i := range got {
					got[i] = strings.ReplaceAll(got[i], " ", "_")
				}
				slices.Sort(got)
				if slices.Sort(want); !slices.Equal(got, want) {
					t.Fatalf("got %q, want %q", got, want)
				}
				d.want()
				d.add("access.log", "7\n")
				d.want("7")
			})
		}
	}
}

// TestCut: a log that becomes shorter is read anew.
func TestCut(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n2\n3\n")
	d.want("1", "2", "3")
	d.check(os.Truncate(d.at("access.log"), 2))
	d.poll()
	d.add("access.log", "4\n")
	d.want("4")
	d.poll()
	d.check(os.Truncate(d.at("access.log"), 0))
	d.poll()
	d.write("access.log", "another\n")
	d.want("another")
}

// TestBackup: a copy of a log that goes on tells nothing new, nor does a file that is just being compressed.
func TestBackup(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n2\n")
	d.write("access.log.1", "1\n2\n")
	d.write("access.log-20261121.gz", "1\n2\n")
	d.want("1", "2")
	d.add("access.log", "3\n")
	d.want("3")
	for _, part := range []string{"", "\x1f\x8b", "\x08\x00"} {
		d.add("access.log.1.gz", part)
		d.want()
		if len(d.errs) > 0 {
			t.Fatalf("got %v", d.errs)
		}
	}
}

func TestFolders(t *testing.T) {
	d := newFolder(t, "logs/site/access*.log", "*/b/error.log", "file/a.log", "*.log")
	d.write("file", "")
	d.want()
	if len(d.errs) != 5 || d.errs["file"] == "" || d.errs["*.log"] != errNoLog.Error() {
		t.Errorf("got %v", d.errs)
	}
	d.write("logs/site/access-2.log", "1\n")
	d.want("1")
	d.write("a/b/error.log", "2\n")
	d.want("2")
	d.check(os.Mkdir(d.at("c.log"), 0o755))
	d.link(d.at("nothing"), d.at("d.log"))
	d.link(d.at("a/b/error.log"), d.at("e.log"))
	d.want("2") // of another log
	if len(d.errs) != 2 || d.errs["file/a.log"] == "" {
		t.Errorf("got %v", d.errs)
	}
}

func TestDamaged(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "line %d %x\n", i, i*i*i)
	}
	text := b.String()
	gz, zst := packed(".gz", text), packed(".zst", text)
	for name, test := range map[string]struct {
		ending, content string
		whole           bool
	}{
		"gzip":                {".gz", gz, true},
		"gzip, two members":   {".gz", packed(".gz", text[:1000]) + packed(".gz", text[1000:]), true},
		"gzip, cut short":     {".gz", gz[:20_000], false},
		"gzip, and more":      {".gz", gz + "garbage behind it", false},
		"no gzip":             {".gz", "whatever its name", false},
		"gzip, empty":         {".gz", "", false},
		"zstd":                {".zst", zst, true},
		"zstd, two frames":    {".zst", packed(".zst", text[:1000]) + packed(".zst", text[1000:]), true},
		"zstd, cut short":     {".zst", zst[:20_000], false},
		"no zstd":             {".zst", "whatever its name", false},
		"zstd of a huge size": {".zst", "\x28\xb5\x2f\xfd\x00\xd0" + strings.Repeat("\x00", 100), false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFolder(t, "access.log")
			file := "access.log.1" + test.ending
			d.check(os.WriteFile(d.at(file), []byte(test.content), 0o644))
			got := strings.Join(append(d.poll(), ""), "\n")
			if !strings.HasPrefix(text, got) || test.whole && got != text || test.whole != (d.errs["access.log"] == "") {
				t.Errorf("got %d bytes of %d, %v", len(got), len(text), d.errs)
			}
			d.want()
			d.write(file, text)
			got += strings.Join(append(d.poll(), ""), "\n")
			if got != text || len(d.errs) > 0 {
				t.Errorf("when it is whole, got %d bytes of %d, %v", len(got), len(text), d.errs)
			}
		})
	}
}

// TestUnreadable: what could not be read is tried again with the next poll.
func TestUnreadable(t *testing.T) {
	d := newFolder(t, "a.log")
	d.link("a.log", d.at("a.log"))
	d.want()
	if got := d.errs["a.log"]; got == "" || got == errNoLog.Error() {
		t.Errorf("got %v, want that it cannot be read", d.errs)
	}
	d.check(os.Remove(d.at("a.log")))
	d.write("a.log", "1\n")
	if os.Geteuid() > 0 && runtime.GOOS != "windows" {
		d.check(os.Chmod(d.at("a.log"), 0))
		if got := d.poll(); d.errs["a.log"] == "" {
			t.Errorf("got %q, %v, want an error", got, d.errs)
		}
		d.check(os.Chmod(d.at("a.log"), 0o644))
	}
	d.want("1")
}

func TestContextEnds(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log", "1\n")
	d.write("access.log.1.gz", "2\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Poll(ctx, func([]byte) string { t.Error("a line was read"); return "" })
	d.want("1", "2")
}

// TestLongLines: of a long line the beginning is handed on, and it takes no memory, compressed or not.
func TestLongLines(t *testing.T) {
	for _, ending := range []string{"", ".gz", ".zst"} {
		t.Run(ending, func(t *testing.T) {
			d := newFolder(t, "access.log")
			long := strings.Repeat("x", 24*maxLine)
			d.write("access.log.1"+ending, "1\n"+long+"\n2\n"+long[:maxLine-1]+"\n3\n")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var got []int
			d.Poll(t.Context(), func(line []byte) string { got = append(got, len(line)); return "" })
			runtime.ReadMemStats(&after)
			if want := []int{1, maxLine, 1, maxLine - 1, 1}; !slices.Equal(got, want) {
				t.Errorf("got lines of %d bytes, want %d", got, want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 {
				t.Errorf("it takes %d MiB", took>>20)
			}
			d.want()
		})
	}
}

func TestBounds(t *testing.T) {
	d := newFolder(t, "*.log")
	for i := range maxFiles + 50 {
		d.write(fmt.Sprintf("site%04d.log", i), fmt.Sprintf("%d\n", i))
		at := time.Now().Add(time.Duration(i-2000) * time.Second)
		d.check(os.Chtimes(d.at(fmt.Sprintf("site%04d.log", i)), at, at))
	}
	if got := d.poll(); len(got) != maxFiles || got[0] != "50" {
		t.Errorf("got %d lines from %q on", len(got), got[0])
	}
	from := d.Positions()
	for i := range 5 * maxFiles {
		from[fmt.Sprintf("/gone.log %d", i)] = 1
	}
	d.follow(from)
	d.poll()
	if n := len(d.Positions()); n > 2*maxFiles+maxFiles {
		t.Errorf("%d positions are kept", n)
	}
}

func TestHistory(t *testing.T) {
	d := newFolder(t, "access.log")
	for name, age := range map[string]time.Duration{"access.log.2": month + time.Hour, "access.log.1": month - time.Hour, "access.log": -time.Hour} {
		d.write(name, name+"\n")
		d.check(os.Chtimes(d.at(name), time.Time{}, time.Now().Add(-age)))
	}
	d.want("access.log.1", "access.log")
}

func TestMerge(t *testing.T) {
	a, b := Positions{"a": 10, "b": 99, "c": 5}, Positions{"a": 20, "b": 50, "d": 5}
	if got := mergePositions(a, b); !maps.Equal(got, Positions{"a": 10, "b": 50}) || len(mergePositions(a, nil, b)) != 0 || !maps.Equal(mergePositions(a), a) {
		t.Errorf("got %v", got)
	}
}

// TestRandomly writes and rolls a log in all ways while it is followed by one who is stopped and resumed: each
// line arrives.
func TestRandomly(t *testing.T) {
	seeds := uint64(5)
	switch {
	case testing.Short():
		seeds = 2
	case os.Getenv("SITEMAP_LONG") != "":
		seeds = 12
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			d := newFolder(t, "access.log")
			rnd := rand.New(rand.NewPCG(seed, 1))
			got := make(map[int]int)
			poll := func() {
				for _, line := range d.poll() {
					text, _, _ := strings.Cut(line, " ")
					n, err := strconv.Atoi(text)
					d.check(err)
					got[n]++
				}
				if rnd.IntN(8) == 0 {
					d.restart()
				}
			}
			sometimesPoll := func() {
				if rnd.IntN(2) == 0 {
					poll()
				}
			}
			number, torn, rolls := 0, "", 0
			grow := func(name string) {
				text := torn
				for range rnd.IntN(60) {
					text += fmt.Sprintf("%d %s\n", number, strings.Repeat("x", rnd.IntN(100)*(1+199*(rnd.IntN(40)/39))))
					number++
				}
				end := len(text) - rnd.IntN(min(len(text), 50)+1)
				d.add(name, text[:end])
				torn = text[end:]
			}
			for range 150 {
				name := fmt.Sprintf("access.log-20261121-%d", rolls)
				switch rnd.IntN(10) {
				case 0: // renamed, before its writer notices, and compressed
					d.add("access.log", torn)
					d.rename("access.log", name)
					sometimesPoll()
					torn = ""
					grow(name)
					d.add(name, torn)
					torn = ""
					sometimesPoll()
					if rnd.IntN(2) == 0 {
						d.pack(name, []string{".gz", ".zst"}[rnd.IntN(2)])
					}
					rolls++
				case 1: // copied in parts, and truncated
					d.add("access.log", torn)
					torn = ""
					if rnd.IntN(2) == 0 {
						name = "some other name"
						d.add("access.log", fmt.Sprintf("%d\n", number))
						number++
						poll() // else nobody knows what to look for
						grow("access.log")
						d.add("access.log", torn)
						torn = ""
					}
					text := d.read("access.log")
					d.write(name, text[:len(text)/2])
					sometimesPoll()
					d.add(name, text[len(text)/2:])
					sometimesPoll()
					d.check(os.Truncate(d.at("access.log"), 0))
					poll() // before the other name is used again
					rolls++
				case 2, 3, 4, 5, 6:
					grow("access.log")
				default:
					poll()
				}
			}
			d.add("access.log", torn)
			poll()
			poll()
			for n := range number {
				if got[n] < 1 {
					t.Fatalf("line %d of %d did not arrive", n, number)
				}
				if got[n] > 1 {
					t.Errorf("line %d of %d arrived %d times", n, number, got[n])
				}
			}
		})
	}
}

// FuzzFollow writes a file in pieces, and compares what is read of it with its lines, from positions that
// anybody may have written.
func FuzzFollow(f *testing.F) {
	f.Add([]byte("one\ntwo\r\n\nthree"), []byte{3, 1, 200}, []byte(`{"x 1":-1,"y":9223372036854775807,"":1}`))
	f.Add([]byte("\n\n\n"), []byte{1}, []byte(`null`))
	f.Add(bytes.Repeat([]byte("0123456789abcdef"), 600), []byte{255, 255}, []byte(``))
	f.Fuzz(func(t *testing.T, text, pieces, positions []byte) {
		d := newFolder(t, "access.log")
		var from Positions
		if json.Unmarshal(positions, &from) == nil {
			d.follow(from)
		}
		var got []string
		for rest := text; ; {
			n := len(rest)
			if len(pieces) > 0 {
				n = min(n, 1+int(pieces[0]))
				pieces = pieces[1:]
			}
			d.add("access.log", string(rest[:n]))
			got = append(got, d.poll()...)
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
			if n%5 == 0 {
				d.restart()
			}
		}
		var want []string
		for line := range bytes.Lines(text) {
			if line, ok := bytes.CutSuffix(line, []byte("\n")); ok {
				want = append(want, string(line))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
