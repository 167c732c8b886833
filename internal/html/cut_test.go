package html

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// longPage returns a page of about twice MaxBody: paragraphs of all sizes.
func longPage(seed uint64) string {
	random := rand.New(rand.NewPCG(seed, seed))
	var b strings.Builder
	for b.Len() < 2*MaxBody {
		fmt.Fprintf(&b, "<p>%x%s</p>\n", random.Uint64(), strings.Repeat(" text", random.IntN(300)))
	}
	return b.String()
}

// A longer header pushes text out of what is read, but moves no date.
func TestCut(t *testing.T) {
	for seed := range uint64(4) {
		text := longPage(seed)
		want := read("<header></header>" + text).Blocks
		for _, n := range []int{1, 1000, 20_000, MaxBody/2 - 1000} {
			header := "<header>" + strings.Repeat("x", n) + "</header>"
			if read(header+text).Blocks != want {
				t.Errorf("page %d, by %d bytes: moved", seed, n)
			}
		}
	}
}

func TestCutChanges(t *testing.T) {
	text := longPage(1)
	before := read(text).Blocks
	if read("<p>a"+text).Blocks == before {
		t.Error("a paragraph at the beginning changes nothing")
	}
	if read(text+"<p>a").Blocks != before {
		t.Error("what is not read changes the sum")
	}
	half := text[:MaxBody/2]
	if read(half).Blocks == read(half+"<p>a").Blocks {
		t.Error("a page that is not cut does not count as a whole")
	}
}

// What comes behind the last block does not count.
func TestCutEnd(t *testing.T) {
	text := longPage(2)
	footers := strings.Repeat("<footer>f</footer>", 100)
	at := strings.Index(text[MaxBody-1000:], "<p>") + MaxBody - 1000
	if got, want := read(text[:at]+footers+text[at:]).Blocks, read(text).Blocks; got != want {
		t.Error("what is behind the last block moves the sum")
	}
}

// One block that never ends counts by its beginning.
func TestCutBlock(t *testing.T) {
	page := func(header int, word string) uint64 {
		return read("<header>" + strings.Repeat("x", header) + "</header><pre>" + word + strings.Repeat("some text ", MaxBody/5)).Blocks
	}
	want := page(0, "a")
	if want == 1 {
		t.Fatal("it has no text")
	}
	if page(20_000, "a") != want || page(MaxBody/2-1000, "a") != want {
		t.Error("a header moves it")
	}
	if page(0, "b") == want {
		t.Error("a change is not seen")
	}
}
