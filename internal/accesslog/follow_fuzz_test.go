package accesslog

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// FuzzFollow writes a file in pieces, and compares what is read of it with its lines.
func FuzzFollow(f *testing.F) {
	f.Add([]byte("one\ntwo\r\n\nthree"), []byte{3, 1, 200})
	f.Add([]byte("\n\n\n"), []byte{1})
	f.Add(bytes.Repeat([]byte("0123456789abcdef"), 600), []byte{255, 255})
	f.Fuzz(func(t *testing.T, text, pieces []byte) {
		const longest = 100
		d := newFolder(t, "access.log")
		d.longest = longest
		var got []string
		line := func(b []byte) { got = append(got, string(b)) }
		rest := text
		for i := 0; len(rest) > 0; i++ {
			n, most := len(rest), int64(1<<20)
			if i < len(pieces) {
				n, most = min(n, 1+int(pieces[i])), 1+int64(pieces[i])%20
			}
			d.add("access.log", string(rest[:n]))
			rest = rest[n:]
			if _, err := d.Poll(t.Context(), most, line); err != nil {
				t.Fatal(err)
			}
			if most%5 == 0 {
				d.restart()
				d.longest = longest
			}
		}
		d.add("access.log", "")
		d.rename("access.log", "access.log.1")
		for range 3 {
			if _, err := d.Poll(t.Context(), 1<<40, line); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		for i, b := range bytes.Split(text, []byte("\n")) {
			last := i == bytes.Count(text, []byte("\n"))
			if len(b) <= longest && (!last || len(b) > 0) {
				want = append(want, string(b))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// FuzzPositions follows files from positions that anybody may have written.
func FuzzPositions(f *testing.F) {
	f.Add([]byte(`{"files":[{"log":"/x","inode":1,"offset":-1,"head":1,"head_size":4096}]}`))
	f.Add([]byte(`{"files":[{"log":"/x","offset":9223372036854775807,"head":17241709254077376921,"head_size":1}]}`))
	f.Add([]byte(`{"files":[{"head_size":99999999}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Positions
		if json.Unmarshal(text, &p) != nil {
			return
		}
		Merge(p, p)
		d := newFolder(t, "access.log")
		d.write("access.log", "1\n2\n")
		d.write("access.log.1.gz", gzipOf("3\n4\n"))
		got := d.poll()
		for i := range p.Files {
			// As if it were of these files, with the offset as it is.
			q := d.Positions().Files[i%2]
			q.Offset, q.Within = p.Files[i].Offset, p.Files[i].Within
			p.Files[i] = q
		}
		d.Follower = NewFollower(d.options, p)
		got = append(got, d.poll()...)
		d.wantNothing()
		if len(got) > 8 || len(d.Positions().Files) > 2+maxGone {
			t.Errorf("got %q", got)
		}
		d.restart()
		d.wantNothing()
	})
}
