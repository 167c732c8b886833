package accesslog

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkFollow(b *testing.B) {
	line := strings.Repeat("x", 500) + "\n"
	text := strings.Repeat(line, 200_000)
	for name, content := range map[string]string{"access.log": text, "access.log.1.gz": gzipOf(text), "access.log.1.zst": zstdOf(text)} {
		b.Run(name, func(b *testing.B) {
			d := newFolder(b, "access.log")
			d.write(name, content)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f := NewFollower(d.options, Positions{})
				n := 0
				if _, err := f.Poll(b.Context(), 1<<40, func([]byte) { n++ }); err != nil || n != 200_000 {
					b.Fatalf("got %d lines, err %v", n, err)
				}
				f.Close()
			}
		})
	}
}

// BenchmarkIdle polls unchanged logs.
func BenchmarkIdle(b *testing.B) {
	for _, files := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			d := newFolder(b, "access.log")
			d.write("access.log", "line\n")
			for i := range files - 1 {
				d.write(fmt.Sprintf("access.log.%d", i+1), fmt.Sprintf("line %d\n", i))
			}
			f := NewFollower(d.options, Positions{})
			defer f.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Poll(b.Context(), 1<<40, func([]byte) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
