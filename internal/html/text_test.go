package html

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/cespare/xxhash/v2"
)

// hashOf is the hash of a text; "" has none.
func hashOf(text string) uint64 {
	if text == "" {
		return 0
	}
	return max(xxhash.Sum64String(text), 1)
}

func TestText(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{"<p> a \n\t b\u00a0\u3000c&nbsp;&#160;d <br>e ", "a b c d e"},
		{"<p>a<p>b<div>c</div>d", "a b c d"},
		{"a<b>b</b><i>c</i><span>d</span><a href=x>e</a>f", "abcdef"},
		{"a<!-- x -->b<script>x</script>c<style>x</style>d<noscript>x</noscript>e", "abcde"},
		{"a<br>b<hr>c<img src=x alt='d  e'>f<img src=y>g", "a b c d e f g"},
		{"A&amp;b &eacute; &copy; &copy &bogus; &#x41; &#0; & &", "A&b é © © &bogus; A \ufffd & &"},
		{"a\u200bb\u00adc\ufeffd\x00e", "abcde"},
		{"<template>x<p>x</template>a<svg><text>x</text><style>x</style></svg>b<iframe>x</iframe>c<math><mi>d</mi></math>", "a bc d"},
		{"<input value=x><button>a</button><textarea>b</textarea><select><option>c<option>d</select>", "a b c d"},

		{"<header>x</header><nav>x</nav>a<aside>x</aside><footer>x</footer>", "a"},
		{"<div role=banner>x</div><div role='navigation x'>x</div>a<div role=complementary>x</div><div ROLE=ContentInfo>x</div>", "a"},
		{"<div role='presentation navigation'>a</div><div role=Navigation>x</div>", "a"},
		{"x<main>a<header>b</header><aside>c</aside><nav>x</nav><footer>x</footer></main>x", "a b c"},
		{"x<div role=main>a<div>b</div>c</div>x", "a b c"},
		{"x<main>a</main>x<main>b</main>x", "a b"},
		{"<nav>x<div>x<main>a</main>x", "a"},
		{"<div><nav>x</div>a", "a"},
		{"<ul><li><nav>x<li>x</ul>a", "a"},
		{"<ul><li><div>a<li><nav>x</nav>b</ul>c", "a b c"},
		{"<div><nav><p>x<div>x</nav>a</div>b", "a b"},
		{"<nav><ul><li>x<li>x</ul></nav>a", "a"},
		{"<template><nav></template>a</nav>b", "a b"},
		{"<nav><template></nav></template>x</nav>a", "a"},
		{"<nav><noscript></nav></noscript>x</nav>a", "a"},
		{"<section><nav><div></nav><footer>x</nav>x</footer>a", "a"},
		{"<svg><foreignObject><nav>x</nav></foreignObject></svg>a", "a"},
		{"<svg><title/><style/><desc>x</desc></svg>a", "a"},
		{"<svg/>a<math/>b", "a b"},
		{"</nav></main></div>a", "a"},
		{"<nav>x<nav>x</nav>x</nav>a", "a"},
		{"<main></main>a", "a"},
		{"<body><xmp><b>a</b></xmp>b", "<b>a</b> b"},

		{"<main>" + strings.Repeat("wörd &amp; text\n", 5000), strings.TrimSpace(strings.Repeat("wörd & text ", 5000))},
		{"<title>t</title><meta name=description content=d><nav>x</nav>", "t d"},
		{"<title>t</title><main><script>x</script></main>", "t"},
		{strings.Repeat("<div>", 600) + "a" + strings.Repeat("</div>", 600) + "b<nav>x</nav>", "a b"},
	} {
		if got := read(test.body).Text; got != hashOf(test.want) {
			t.Errorf("%s: not the hash of %q", test.body, test.want)
		}
	}
	for _, body := range []string{"", " \n", "<p>", "<!doctype html><title></title>", "<script>x</script>", "<nav>x</nav>", "<title> </title>", "\x00", "\u200b"} {
		if got := read(body).Text; got != 0 {
			t.Errorf("%q: got %x", body, got)
		}
	}
}

func TestEncodings(t *testing.T) {
	const text = "Grüße, €"
	const windows, greek = "Gr\xfc\xdfe, \x80", "\xe1\xe2\xe3"
	var little, big []byte
	for _, c := range utf16.Encode([]rune("\ufeff<title>" + text + "</title>")) {
		little = binary.LittleEndian.AppendUint16(little, c)
		big = binary.BigEndian.AppendUint16(big, c)
	}
	for _, test := range []struct{ name, contentType, body, want string }{
		{"undeclared UTF-8", "", "<title>" + text + "</title>", text},
		{"header", "text/html; charset=UTF-8", "<title>" + text + "</title>", text},
		{"meta", "", "<meta charset=utf-8><title>" + text + "</title>", text},
		{"http-equiv", "text/html", `<meta http-equiv="Content-Type" content="text/html; charset=utf-8"><title>` + text + "</title>", text},
		{"BOM", "text/html; charset=iso-8859-1", "\ufeff<title>" + text + "</title>", text},
		{"undeclared Windows-1252", "text/html", "<title>" + windows + "</title>", text},
		{"Latin-1 in meta, late text", "", `<meta charset="ISO-8859-1">` + strings.Repeat(" ", 3000) + "<title>" + windows + "</title>", text},
		{"Latin-1 in the header", "text/html; charset=latin1", "<title>" + windows + "</title>", text},
		{"Greek", "", `<META HTTP-EQUIV=content-type CONTENT="text/html; CHARSET=iso-8859-7"><title>` + greek + "</title>", "αβγ"},
		{"header over meta", "text/html; charset=iso-8859-7", "<meta charset=utf-8><title>" + greek + "</title>", "αβγ"},
		{"UTF-16, little", "", string(little), text},
		{"UTF-16, big", "text/html; charset=utf-8", string(big), text},
		{"UTF-16 in meta only", "", "<meta charset=utf-16><title>" + text + "</title>", text},
		{"Shift JIS", "text/html; charset=shift_jis", "<title>\x83e\x83X\x83g</title>", "テスト"},
		{"ISO-2022-JP", "text/html; charset=iso-2022-jp", "<title>\x1b$B%F%9%H\x1b(B</title>", "テスト"},
		{"ISO-2022-JP in meta", "", "<meta charset=iso-2022-jp><title>\x1b$B%F%9%H\x1b(B</title>", "テスト"},
		{"UTF-16 in the header", "text/html; charset=utf-16le", string(little[2:]), text},
		{"wrongly UTF-8", "text/html; charset=utf-8", "<title>a" + windows[2:4] + "</title>", "a" + windows[2:4]},
		{"unknown", "text/html; charset=klingon", "<title>" + text + "</title>", text},
		{"no such header", "text/html; charset", "<title>" + text + "</title>", text},
	} {
		p := withHeader("Content-Type", test.contentType)
		if got := Parse([]byte(test.body), p).Text; got != hashOf(test.want) {
			t.Errorf("%s: got %x, not the hash of %q", test.name, got, test.want)
		}
	}
}

func TestXHTML(t *testing.T) {
	const body = `<?xml version="1.0"?><html><head><title>t</title><script src="x"/><style/></head><body><div/><nav/><p>a</p></body></html>`
	e := readWith(body, "Content-Type", "application/xhtml+xml; charset=utf-8")
	if !e.Document || e.Text != hashOf("a") {
		t.Errorf("got %+v", e)
	}
}
