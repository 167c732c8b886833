package sitemapxml

import (
	"bytes"
	"testing"
)

func goldenNews(t testing.TB) []byte {
	e := Encoder{Base: base, Stylesheet: "sitemap.css", Schema: Schema084}
	articles := []Article{
		{Path: "/a?x=1&y='2'", Published: 1709210096, Title: `A & B's <b>"title"</b>`, Lang: "en"},
		{Path: "/day", Published: 1709164800, Day: true, Title: "שלום 👩‍👧 }}", Lang: "zh-tw"},
		{Path: "/no-news", Published: 1136214245, Title: "left out"},
	}
	var b bytes.Buffer
	n, err := e.News(&b, `The "Example" & <Times>`, articles)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("counted %d bytes, %v, want %d", n, err, b.Len())
	}
	return b.Bytes()
}

func TestNewsError(t *testing.T) {
	if _, err := (Encoder{Base: base}).News(&failing{5}, "", nil); err != errFull {
		t.Errorf("got %v, want %v", err, errFull)
	}
}
