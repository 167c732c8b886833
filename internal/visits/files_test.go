package visits

import (
	"bytes"
	"context"
	"fmt"
	"io"
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

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

const month = 30 * 24 * time.Hour

// folder is one that logs are written to and followed in.
type folder struct {
	testing.TB
	path     string
	patterns []string
	*Reader
	errs map[string]string // of the last poll, by name
}

func newFolder(t testing.TB, patterns ...string) *folder {
	t.Helper()
	d := &folder{TB: t, path: t.TempDir()}
	for _, p := range patterns {
		d.patterns = append(d.patterns, d.at(p))
	}
	d.restart()
	return d
}

// restart begins anew, as another process does.
func (d *folder) restart() {
	d.Reader = &Reader{Files: d.patterns, URLs: origin.NewCleaner(nil), History: month}
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

func (d *folder) text(name string) string {
	d.Helper()
	text, err := os.ReadFile(d.at(name))
	d.check(err)
	return string(text)
}

// pack compresses a file, as timberjack does.
func (d *folder) pack(name, ending string) {
	d.Helper()
	d.write("new"+ending, d.text(name))
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
func (d *folder) poll() (got []string) {
	d.Helper()
	d.read(d.Context(), time.Now().Add(-month), func(_ *Log, line []byte) { got = append(got, strings.TrimSuffix(string(line), "\n")) })
	d.errs = make(map[string]string)
	for path, log := range d.logs {
		name, err := filepath.Rel(d.path, path)
		d.check(err)
		if log.Error != "" {
			d.errs[name] = log.Error
		}
	}
	return got
}

// want polls once, and again to no effect.
func (d *folder) want(want ...string) {
	d.Helper()
	if got := d.poll(); !slices.Equal(got, want) {
		d.Fatalf("got %q, want %q", got, want)
	}
	if got := d.poll(); len(got) > 0 {
		d.Fatalf("then got %q", got)
	}
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
			slices.Reverse(names) // the newest comes first
			d.want(names...)
			d.restart()
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
		{"access.log.*", "access.log.1.gz", "access.log.1.gz"},
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
		if got := logOf(d.at(test.name), d.at(test.pattern)); got != want {
			t.Errorf("%s by %s: got %q, want %q", test.name, test.pattern, got, want)
		}
	}
}

// TestRolled: what is written to a log arrives however it is rolled, whatever of it was read before.
func TestRolled(t *testing.T) {
	copied := func(to string) func(*folder) {
		return func(d *folder) { d.write(to, d.text("access.log")); d.check(os.Truncate(d.at("access.log"), 0)) }
	}
	for name, test := range map[string]struct {
		roll    func(*folder)
		isTwice bool // what was read arrives again
	}{
		"renamed":    {func(d *folder) { d.rename("access.log", "access.log.1") }, false},
		"compressed": {func(d *folder) { d.rename("access.log", "access.log.1"); d.pack("access.log.1", ".gz") }, true},
		"rolled twice": {func(d *folder) {
			d.rename("access.log", "access.log.2")
			d.write("access.log.1", "4\n")
		}, false},
		"copied and truncated":      {copied("access.log.1"), true},
		"copied and compressed":     {copied("access.log.1.zst"), true},
		"replaced, as by an editor": {func(d *folder) { d.write("new", d.text("access.log")+"4\n"); d.rename("new", "access.log") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFolder(t, "access.log")
			d.write("another", "of another\n")
			d.write("access.log", "0\n1, which makes it longer\n")
			d.want("0", "1, which makes it longer")
			d.add("access.log", "2\nthree is longer\n")
			test.roll(d)
			d.add("access.log", "5\n6\n")
			got := d.poll()
			for _, line := range []string{"2", "three is longer", "5", "6"} {
				if !slices.Contains(got, line) {
					t.Errorf("got %q, which lacks %q", got, line)
				}
			}
			if slices.Contains(got, "0") != test.isTwice {
				t.Errorf("got %q", got)
			}
			d.want()
			d.add("access.log", "7\n")
			d.want("7")
		})
	}
}

// TestCompressing: a file that is just being compressed is read once the one that it is made of is gone.
func TestCompressing(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log.1", "1\n2\n")
	d.want("1", "2")
	for _, part := range []string{"", "\x1f\x8b", "\x08\x00"} {
		d.add("access.log.1.gz", part)
		d.restart()
		d.want("1", "2")
		if len(d.errs) > 0 {
			t.Fatalf("got %v", d.errs)
		}
	}
}

// TestPast: of what a log has at first, only the end is read.
func TestPast(t *testing.T) {
	d := newFolder(t, "access.log")
	d.write("access.log.1", "rolled\n")
	d.write("access.log", "old\n")
	d.check(os.Truncate(d.at("access.log"), maxPast+1)) // zeros
	d.add("access.log", "\n1\n2")
	d.want("1")
	d.add("access.log", "\n3\n")
	d.want("2", "3")
}

// TestFolderLikePattern: the name of a folder may have a letter of patterns in it.
func TestFolderLikePattern(t *testing.T) {
	d := newFolder(t, "logs[1]/a.log")
	d.write("logs[1]/a.log", "1\n")
	d.want("1")
}

func TestFolders(t *testing.T) {
	d := newFolder(t, "logs/site/access*.log", "*/b/error.log", "file/a.log", "*.log")
	d.write("file", "")
	d.want()
	if len(d.errs) != 4 || d.errs["file/a.log"] == missing || d.errs["*.log"] != missing {
		t.Errorf("got %v", d.errs)
	}
	d.write("logs/site/access-2.log", "1\n")
	d.want("1")
	d.write("a/b/error.log", "2\n")
	d.want("2")
	d.check(os.Mkdir(d.at("c.log"), 0o755))
	d.link(d.at("nothing"), d.at("d.log"))
	d.want()
	if len(d.errs) != 2 || d.errs["file/a.log"] == "" {
		t.Errorf("got %v", d.errs)
	}
}

func TestDamaged(t *testing.T) {
	text := ""
	for i := range 10_000 {
		text += fmt.Sprintf("line %d %x\n", i, i*i*i)
	}
	gz, zst := packed(".gz", text), packed(".zst", text)
	for name, test := range map[string]struct {
		ending, content string
		isWhole         bool
	}{
		"gzip, two members":   {".gz", packed(".gz", text[:1000]) + packed(".gz", text[1000:]), true},
		"gzip, cut short":     {".gz", gz[:20_000], false},
		"gzip, and more":      {".gz", gz + "garbage behind it", false},
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
			if !strings.HasPrefix(text, got) || test.isWhole && got != text {
				t.Errorf("got %d bytes of %d", len(got), len(text))
			}
			d.want()
			if test.isWhole != (d.errs["access.log"] == "") {
				t.Errorf("then got %v", d.errs)
			}
			d.write(file, text)
			got = strings.Join(append(d.poll(), ""), "\n")
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
	if got := d.errs["a.log"]; got == "" || got == missing {
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.read(ctx, time.Time{}, func(*Log, []byte) { t.Error("a line was read") })
	if len(d.logs) > 0 {
		t.Errorf("got %v", d.logs)
	}
}

// TestLongLines: of a long line the beginning is handed on, and it takes no memory, compressed or not.
func TestLongLines(t *testing.T) {
	for _, ending := range []string{"", ".gz", ".zst"} {
		t.Run(ending, func(t *testing.T) {
			d := newFolder(t, "access.log")
			long := strings.Repeat("x", 1600*maxLine) // 100 MiB
			d.write("access.log.1"+ending, "1\n"+long+"\n2\n"+long[:maxLine-1]+"\n3\n")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var got []int
			d.read(t.Context(), time.Time{}, func(_ *Log, line []byte) { got = append(got, len(strings.TrimSuffix(string(line), "\n"))) })
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

// TestBounds: of too many files, the newest are read, and none that are older than what counts.
func TestBounds(t *testing.T) {
	d := newFolder(t, "*.log")
	write := func(name string, age time.Duration) {
		d.write(name, name+"\n")
		at := time.Now().Add(-age)
		d.check(os.Chtimes(d.at(name), at, at))
	}
	write("access.log.1", month+time.Hour)
	write("access.log", month-time.Hour)
	d.want("access.log")
	for i := range maxFiles + 50 {
		write(fmt.Sprintf("site%d.log", i), time.Duration(i)*time.Second)
	}
	if got := d.poll(); len(got) != maxFiles || got[0] != "site0.log" {
		t.Errorf("got %d lines from %q on", len(got), got[0])
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
					d.add("access.log", "") // it is there before the other file is deleted, whose inode is free then
					if rnd.IntN(2) == 0 {
						d.pack(name, []string{".gz", ".zst"}[rnd.IntN(2)])
						poll() // before the next log has that inode
					}
					rolls++
				case 1: // copied in parts, and truncated
					d.add("access.log", torn)
					torn = ""
					poll() // one that is truncated before it was ever read does not become shorter
					text := d.text("access.log")
					d.write(name, text[:len(text)/2])
					sometimesPoll()
					d.add(name, text[len(text)/2:])
					sometimesPoll()
					d.check(os.Truncate(d.at("access.log"), 0))
					poll() // before it may be as large as it was
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
			}
		})
	}
}
