package verdict

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// manyRecords are pages in folders of 200, as a large site of files has them; of some
// another variant exists, some name another page.
func manyRecords(n int, special bool) []state.Record {
	records := make([]state.Record, n)
	for i := range records {
		path := fmt.Sprintf("/docs/section-%04d/some-page-%07d.html", i/200, i)
		r := state.Record{
			Page: page.Page{Path: path, LastMod: day0 + int64(i)*7, Version: 1}, Fingerprint: Hash(path),
			Declared: day0 + int64(i)*11, Answer: uint8(Good), Content: uint8(Good), Flags: FlagRead | FlagListed | FlagLinked,
			Asked: day0, Seen: seenFirstFile,
		}
		switch {
		case special && i%2 == 1:
			r.Page.Path, r.Fingerprint = records[i-1].Page.Path+"x", records[i-1].Fingerprint
			r.Content, r.Canonical = uint8(CanonicalHere), records[i-1].Page.Path
		case special && i%100 == 0:
			r.Page.Path, r.Fingerprint = "/Docs/"+path[6:], Hash("twice"+path[:13])
		}
		records[i] = r
	}
	return records
}

func BenchmarkSurvey(b *testing.B) {
	const n = 1_000_000
	for _, special := range []bool{false, true} {
		name := "plain"
		if special {
			name = "special"
		}
		records := manyRecords(n, special)
		var s *Survey
		per := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record") }
		fill := func() {
			s = &Survey{RespectCanonical: true, OmitOrphans: true}
			for i := range records {
				s.Add(&records[i])
			}
		}
		b.Run(name+"/Add", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fill()
			}
			per(b)
		})
		b.Run(name+"/Again", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				fill()
				b.StartTimer()
				s.Again()
			}
			per(b)
		})
		b.Run(name+"/AddAgain", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range records {
					s.AddAgain(&records[i])
				}
			}
			per(b)
		})
		b.Run(name+"/Decisions", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Decisions()
			}
			per(b)
		})
		b.Run(name+"/Verdict", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range records {
					s.Verdict(&records[i])
				}
			}
			per(b)
		})
	}
}

func BenchmarkLinkSetHas(b *testing.B) {
	var set LinkSet
	links := make([]string, 1_000_000)
	for i := range links {
		links[i] = fmt.Sprint("/page/", i)
	}
	set.Add("/", links)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		set.Has(links[i*7919%len(links)])
		i++
	}
}

// Pages that are no files say when they changed in a header.
func BenchmarkAddAnswers(b *testing.B) {
	records := manyRecords(10_000, false)
	for i := range records {
		records[i].Flags |= FlagDynamic
		records[i].Modified = "Sat, 14 Mar 2020 08:00:00 GMT"
	}
	b.ReportAllocs()
	var s Survey
	i := 0
	for b.Loop() {
		s.Add(&records[i%len(records)])
		i++
	}
}

func BenchmarkAnswer(b *testing.B) {
	r := &state.Record{Page: page.Page{Path: "/a.html"}}
	a := answer(200, "Etag", `"1"`, "Last-Modified", "Sat, 14 Mar 2026 08:00:00 GMT")
	b.ReportAllocs()
	for b.Loop() {
		Answer(r, a, origin, noon)
	}
}

func TestDuplicateKeyAllocates(t *testing.T) {
	for _, path := range []string{"/", "/some/longer/path/than/thirty-two/bytes/index.html?with=a&query", "/Some/Longer/Path/Than/Thirty-Two/Bytes/INDEX.html"} {
		r := &state.Record{Page: page.Page{Path: path}}
		if n := testing.AllocsPerRun(100, func() { duplicateKey(r) }); n > 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

// A survey of a million records is to keep 16 MB or so at most.
func TestSurveyMemory(t *testing.T) {
	const most = 20 << 20
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, special := range []bool{false, true} {
		records := manyRecords(1_000_000, special)
		before := heap()
		s := Survey{RespectCanonical: true}
		for i := range records {
			s.Add(&records[i])
		}
		added := heap() - before
		s.Again()
		for i := range records {
			s.AddAgain(&records[i])
		}
		again := heap() - before
		if added > most || again > most {
			t.Errorf("special %t: %.1f MB, then %.1f MB", special, float64(added)/1e6, float64(again)/1e6)
		}
		t.Logf("special %t: %.1f MB, then %.1f MB", special, float64(added)/1e6, float64(again)/1e6)
		runtime.KeepAlive(&s)
		runtime.KeepAlive(records)
	}
}
