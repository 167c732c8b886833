package discover

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// various is a catalog with some of everything.
func various(t testing.TB) *Catalog {
	c := keyed()
	c.Configure(Options{Unlinked: []Unlinked{{patternsOf(t, "/p/*"), 3}}})
	for i := range 100 {
		c.Visit(FromLog<<(i%2), fmt.Sprintf("/p/%d?page=%d", i, i%7), day+int64(i)*1000, fmt.Sprintf("2001:db8:0:%d::1", i), uint32(i%3))
		c.Visit(FromLog, fmt.Sprintf("/p/%d?page=%d", i/2, i/2%7), day+int64(i)*1000, fmt.Sprintf("192.0.%d.1", i), 9)
		c.Listed(fmt.Sprintf("/p/%d?page=%d", i, i%7), i%5 == 0)
	}
	for i := range 9 {
		c.Visit(FromLog, fmt.Sprintf("/hidden/%d", i), day+int64(i)*hour, "", 0)
	}
	r := c.Round(2, true)
	r.Page(0, "/", []string{"/p/1?page=1", "/%C3%A9", "/new", "/new/1"})
	r.Page(1, "/", []string{"/deep"})
	r.Page(2, "/", []string{"/deeper"})
	r.End(day)
	return c
}

func encode(t testing.TB, c *Catalog) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCodec(t *testing.T) {
	for name, c := range map[string]*Catalog{"empty": keyed(), "various": various(t), "many": full(somePaths(20_000))} {
		t.Run(name, func(t *testing.T) {
			b := encode(t, c)
			d := again(t, c)
			consistent(t, d)
			if !bytes.Equal(encode(t, d), b) {
				t.Error("it is written otherwise after it was read")
			}
			if bytes.Contains(b, []byte("2001:db8")) || len(b) > 100+40*c.Stats().Paths {
				t.Errorf("%d bytes for %d paths", len(b), c.Stats().Paths)
			}
		})
	}
}

// TestUnclean tells of paths that no Cleaner has let pass: they are not read again, and
// all others are.
func TestUnclean(t *testing.T) {
	c := various(t)
	want := again(t, c).Stats().Paths
	c.Visit(FromLog, "/p/é", day, "192.0.2.1", 0)
	c.Visit(FromLog, "/p/.git/config", day, "192.0.2.1", 0)
	if got := again(t, c).Stats().Paths; got != want {
		t.Errorf("got %d paths, want %d", got, want)
	}
}

// TestDamage spoils every byte, and cuts off at every one.
func TestDamage(t *testing.T) {
	b := encode(t, various(t))
	c := various(t)
	want := c.Stats()
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 1 << (i % 8)
		if err := c.Decode(bytes.NewReader(damaged)); err == nil {
			t.Fatalf("no error with byte %d changed", i)
		}
		if err := c.Decode(bytes.NewReader(b[:i])); err == nil {
			t.Fatalf("no error with %d bytes", i)
		}
	}
	if got := c.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := c.Decode(strings.NewReader("something else")); !errors.Is(err, errMagic) {
		t.Errorf("got %v", err)
	}
	if err := c.Decode(strings.NewReader(magic + "\x07")); !errors.Is(err, errVersion) {
		t.Errorf("got %v", err)
	}
	cause := errors.New("a cause")
	if err := c.Decode(io.MultiReader(bytes.NewReader(b[:len(b)/2]), failing{cause})); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if err := c.Encode(failing{cause}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// blocksOf is a whole catalog with right sizes and hashes around blocks of any bytes.
func blocksOf(paths int, blocks ...[]byte) []byte {
	var b bytes.Buffer
	w := &blockWriter{w: &b}
	w.write([]byte(magic + string(rune(version))))
	w.block(blockKey, make([]byte, 17))
	for _, block := range blocks {
		w.block(block[0], block[1:])
	}
	w.block(blockEnd, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(w.blocks)), uint64(paths)))
	return b.Bytes()
}

// TestBombs reads a few bytes that ask for many.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 8<<20)
	zeros[0] = blockPaths
	shades := bytes.Clone(zeros)
	shades[0] = blockShadows
	head := func(numbers ...uint64) []byte {
		b := append([]byte(magic+string(rune(version))), blockKey)
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
		return append(b, make([]byte, 100)...)
	}
	// A million paths that each repeat 1,999 bytes of the one before.
	var batch batch
	long := "/" + strings.Repeat("x", MaxPath-9)
	c := keyed()
	c.Configure(Options{MaxPaths: 10_000})
	s := &segment{}
	for i := range 4000 {
		s.add(uint64(i), []byte(fmt.Sprintf("%s%08d", long, i)))
	}
	batch.add(s)
	repeats := append([]byte{blockPaths}, batch.encode()...)
	for name, b := range map[string][]byte{
		"a large block":   head(1<<62, 10),
		"much stored":     head(10, 1<<62),
		"much to come":    head(maxBlock, maxBlock),
		"zeros":           blocksOf(0, zeros),
		"shadows":         blocksOf(0, shades),
		"many shadows":    blocksOf(0, append([]byte{blockShadows}, 0xFF, 0xFF, 0xFF, 0x7F)),
		"repeated":        blocksOf(8000, repeats, repeats),
		"nothing at all":  blocksOf(1<<40, []byte{blockPaths}),
		"no paths at all": blocksOf(0, []byte{blockPaths, 0xFF, 0xFF, 0xFF, 0x7F}),
	} {
		t.Run(name, func(t *testing.T) {
			_ = c.Decode(bytes.NewReader(b)) // fill the pools
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := c.Decode(bytes.NewReader(b))
			runtime.ReadMemStats(&after)
			if err == nil && name != "repeated" {
				t.Error("no error")
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 512<<20 { // garbage, too
				t.Errorf("%d bytes were allocated", n)
			}
			if s := c.Stats(); s.Bytes > 10_000*BytesPerPath {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, various(f)), uint8(0))
	f.Add(encode(f, keyed()), uint8(0))
	c := various(f)
	var b batch
	b.add(c.segments[0])
	f.Add(b.encode(), uint8(blockPaths))
	f.Add(appendLinks(nil, c.links), uint8(blockLinks))
	f.Add(appendShadows(nil, []shadow{{1, 2, FromLog}, {1 << 60, day / 3600, FromTraffic | FromLinks}}), uint8(blockShadows))
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		// With a kind, it is what a block holds; else it is all.
		if kind != 0 {
			paths := uint64(0)
			if kind == blockPaths {
				paths, _ = binary.Uvarint(data)
			}
			if paths > 1<<20 {
				return
			}
			data = blocksOf(int(paths), append([]byte{kind}, data...))
		}
		d := NewCatalog()
		d.Configure(Options{MaxPaths: 1000})
		if err := d.Decode(bytes.NewReader(data)); err != nil {
			if s := d.Stats(); s != (Stats{}) {
				t.Fatalf("got %+v after error %v", s, err)
			}
			return
		}
		consistent(t, d)
		e := again(t, d)
		consistent(t, e)
		want, hidden := d.Stats(), 0
		d.each(func(s *segment) {
			for i := range s.entries {
				if e := &s.entries[i]; d.isHidden(s, e) {
					want.Bytes -= int(e.length)
					hidden++
				}
			}
		})
		want.Paths -= hidden
		if got := e.Stats(); got.Shadows > want.Shadows+hidden || got.Paths != want.Paths || got.Linked != want.Linked || got.Links != want.Links || got.Bytes != want.Bytes {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// TestTogether does everything at the same time.
func TestTogether(t *testing.T) {
	c := NewCatalog()
	options := Options{MaxPaths: 5000, MaxPerPattern: 2000, Expire: time.Hour, Unlinked: []Unlinked{{patternsOf(t, "/1*"), 2}}}
	c.Configure(options)
	b := encode(t, various(t))
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 5000 {
				path := fmt.Sprintf("/%d/%c", i%3000, 'a'+g)
				c.Visit(FromTraffic, path, day+int64(i), "192.0.2.1", 1)
				c.Listed(path, i%2 == 0)
				c.Shown(path)
				c.DepthOf(path)
			}
		})
	}
	for range 2 {
		group.Go(func() {
			for i := range 10 {
				r := c.Round(2, true)
				for k := range 1000 {
					r.Page(k%2, "/", []string{fmt.Sprintf("/%d/a", i*500+k)})
				}
				r.End(day + int64(i))
			}
		})
	}
	group.Go(func() {
		for i := range 20 {
			_ = encode(t, c)
			candidates(t, c, FromTraffic|FromLinks, 2)
			c.Stats()
			c.Full()
			c.Configure(options)
			c.Expire(day + int64(i)*200)
			if i == 10 {
				if err := c.Decode(bytes.NewReader(b)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	group.Wait()
	consistent(t, c)
}
