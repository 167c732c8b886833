package accesslog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// writer plays one who writes numbered lines to a log and rolls it.
type writer struct {
	*folder
	rnd      *rand.Rand
	number   int         // of the next line
	place    map[int]int // the file that each line was written to, the first one as 0
	file     int
	numbered bool
	clock    time.Time
	torn     string // the rest of a line whose beginning is written

	got  map[int]int // how often each line arrived
	last map[int]int // the last one of each file
}

func (w *writer) line() string {
	w.place[w.number] = w.file
	s := fmt.Sprintf("%d %s\n", w.number, strings.Repeat("x", w.rnd.IntN(100)))
	if w.rnd.IntN(40) == 0 {
		s = fmt.Sprintf("%d %s\n", w.number, strings.Repeat("y", w.rnd.IntN(20_000)))
	}
	w.number++
	return s
}

func (w *writer) grow() {
	text := w.torn
	for range w.rnd.IntN(60) {
		text += w.line()
	}
	w.torn = ""
	if n := len(text); n > 0 && w.rnd.IntN(3) == 0 {
		n -= w.rnd.IntN(min(n, 50))
		text, w.torn = text[:n], text[n:]
	}
	w.add("access.log", text)
}

func (w *writer) mend() {
	w.add("access.log", w.torn)
	w.torn = ""
}

func (w *writer) glob(pattern string) []string {
	w.t.Helper()
	all, err := filepath.Glob(w.at(pattern))
	w.check(err)
	for i, path := range all {
		all[i] = filepath.Base(path)
	}
	return all
}

// rolled are the names of rolled files, the oldest first.
func (w *writer) rolled() []string {
	all := slices.DeleteFunc(append(w.glob("access-*"), w.glob("access.log.*")...), func(name string) bool { return strings.HasSuffix(name, ".tmp") })
	slices.SortFunc(all, func(a, b string) int {
		bareA, _ := unpacked(a)
		bareB, _ := unpacked(b)
		_, ageA := rolledFrom(bareA)
		_, ageB := rolledFrom(bareB)
		return ageA.compare(ageB)
	})
	return all
}

// shift makes room for access.log.1.
func (w *writer) shift() {
	for _, name := range w.rolled() {
		bare, _ := unpacked(name)
		n, err := strconv.Atoi(strings.TrimPrefix(bare, "access.log."))
		w.check(err)
		w.rename(name, fmt.Sprintf("access.log.%d%s", n+1, strings.TrimPrefix(name, bare)))
		w.sometimesPoll()
	}
}

// roll renames the log. Sometimes its writer has still to notice.
func (w *writer) roll() {
	w.mend()
	name := "access.log.1"
	if w.numbered {
		w.shift()
	} else {
		w.clock = w.clock.Add(time.Duration(w.rnd.IntN(1e9)))
		name = "access-" + w.clock.Format("2006-01-02T15-04-05.000") + "-size.log"
		if _, err := os.Stat(w.at(name)); err == nil {
			return
		}
	}
	w.rename("access.log", name)
	w.sometimesPoll()
	if w.rnd.IntN(3) == 0 {
		w.add(name, w.line())
	}
	w.file++
	if w.rnd.IntN(2) == 0 {
		w.add("access.log", "")
	}
	if w.rnd.IntN(4) == 0 {
		w.pack(name, []string{".gz", ".zst"}[w.rnd.IntN(2)])
	}
}

// copyAndTruncate writes nothing between the two, since that is lost.
func (w *writer) copyAndTruncate() {
	w.mend()
	w.shift()
	text, err := os.ReadFile(w.at("access.log"))
	w.check(err)
	for _, part := range [][]byte{text[:len(text)/2], text[len(text)/2:]} {
		w.add("access.log.1", string(part))
		w.sometimesPoll()
	}
	w.check(os.Truncate(w.at("access.log"), 0))
	w.file++
}

// packSlowly compresses a rolled file under its last name, as gzip does.
func (w *writer) packSlowly() {
	all := slices.DeleteFunc(w.rolled(), func(name string) bool { _, p := unpacked(name); return p != plain })
	if len(all) == 0 {
		return
	}
	name := all[w.rnd.IntN(len(all))]
	text, err := os.ReadFile(w.at(name))
	w.check(err)
	packed, ending := gzipOf(string(text)), ".gz"
	if w.rnd.IntN(2) == 0 {
		packed, ending = zstdOf(string(text)), ".zst"
	}
	for len(packed) > 0 {
		n := min(1+w.rnd.IntN(1+len(text)/4), len(packed))
		w.add(name+ending, packed[:n])
		packed = packed[n:]
		w.sometimesPoll()
	}
	w.remove(name)
}

func (w *writer) sometimesPoll() {
	if w.rnd.IntN(2) == 0 {
		w.pollOnce()
	}
}

func (w *writer) pollOnce() bool {
	w.t.Helper()
	if w.rnd.IntN(2) == 0 { // so that the folder is not looked at each time
		at := time.Now().Add(-time.Hour)
		w.check(os.Chtimes(w.path, at, at))
	}
	most := int64(1 << 40)
	if w.rnd.IntN(2) == 0 {
		most = w.rnd.Int64N(3000)
	}
	more, err := w.Poll(w.t.Context(), most, func(line []byte) {
		text, _, _ := strings.Cut(string(line), " ")
		n, err := strconv.Atoi(text)
		if err != nil {
			w.t.Fatalf("got %q", line)
		}
		w.got[n]++
		if file := w.place[n]; n < w.last[file] {
			w.t.Fatalf("line %d came after %d", n, w.last[file])
		} else {
			w.last[file] = n
		}
	})
	w.check(err)
	if w.rnd.IntN(8) == 0 {
		w.restart()
		return true
	}
	return more
}

func (w *writer) drain() {
	w.t.Helper()
	for quiet := 0; quiet < 2*lookEvery; quiet++ {
		if w.pollOnce() {
			quiet = 0
		}
	}
}

func (w *writer) verify() {
	w.t.Helper()
	for n := range w.number {
		if w.got[n] != 1 {
			w.t.Fatalf("line %d of file %d of %d arrived %d times; there are %v", n, w.place[n], w.file, w.got[n], w.rolled())
		}
	}
}

// TestRandomly writes and rolls a log in all ways while it is followed by one who
// is stopped and resumed.
func TestRandomly(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := &writer{
				folder: newFolder(t, "access.log"), rnd: rand.New(rand.NewPCG(seed, 1)),
				place: make(map[int]int), got: make(map[int]int), last: make(map[int]int),
				numbered: seed%2 == 0, clock: time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC),
			}
			if seed%4 >= 2 { // as on Windows
				w.asOnWindows = true
				w.restart()
			}
			for range 100 {
				switch k := w.rnd.IntN(20); {
				case k < 8:
					w.grow()
				case k == 8:
					w.add("access.log", "")
					w.roll()
				case k == 9 && w.numbered:
					w.add("access.log", "")
					w.copyAndTruncate()
				case k == 10:
					w.packSlowly()
				case k == 11:
					w.restart()
				case k == 12 && w.rnd.IntN(3) == 0:
					w.mend()
					w.drain()
					w.verify()
					if all := w.rolled(); len(all) > 3 {
						w.remove(all[0])
					}
				default:
					w.pollOnce()
				}
			}
			w.mend()
			w.drain()
			w.verify()
		})
	}
}
