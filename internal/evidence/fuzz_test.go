package evidence

import (
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var seeds = []string{
	`<!doctype html><title>a</title><meta name=robots content="noindex"><link rel=canonical href="/b"><p>c <a href=d>e</a>`,
	`<nav>a<div role=main>b<svg><title/><p>c</svg><table><td><nav>d<td>e</table>`,
	`<base href="//x/y"><meta http-equiv=refresh content="0;url='z'"><img src=a alt="b&amp;">`,
	`<script type="application/ld+json">{"@graph":[{"url":"/a","dateModified":"2024-05-01"}]}</script>`,
	`<script><!--<script></script>--></script><!-- a --!><![CDATA[b]]><textarea></p></textarea><plaintext>c`,
	"<meta charset=shift_jis>\x83e\x83X<p \x00=\x00 a=&notit; b='", "\xff\xfe<\x00p\x00>\x00",
	`<template><main>a</template></nav><math><mi><b>c</math><select><option><div>d</select>`,
	`<link rel=alternate hreflang=de-at href=?q#f><a rel=nofollow href=../../x%2f%7E>`,
	`<head></head><noscript>a</noscript><frameset><p></body></html><meta property=og:image content=data:,>`,
}

func FuzzRead(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), "/docs/a.html?x", "text/html; charset=iso-8859-1")
		f.Add([]byte(s), "/", "")
	}
	used := NewReader(Options{Alternates: true, Images: true})
	f.Fuzz(func(t *testing.T, body []byte, path, contentType string) {
		p := testPage
		p.Path = path
		p.Header = http.Header{"Content-Type": {contentType}}
		before := bytes.Clone(body)
		got := used.Read(body, p)
		if !bytes.Equal(body, before) {
			t.Fatal("the body became another")
		}
		checkBounds(t, got)
		if again := NewReader(Options{Alternates: true, Images: true}).Read(body, p); !reflect.DeepEqual(got, again) {
			t.Fatalf("used before: %+v, new: %+v", got, again)
		}
	})
}

func checkBounds(t *testing.T, e Evidence) {
	t.Helper()
	if len(e.Links) > MaxLinks || len(e.Images) > MaxImages || len(e.Alternates) > MaxAlternates || len(e.Title) > MaxText || len(e.Description) > MaxText {
		t.Fatalf("too much: %+v", e)
	}
	if !utf8.ValidString(e.Title) || !utf8.ValidString(e.Description) {
		t.Fatalf("no UTF-8: %q, %q", e.Title, e.Description)
	}
	if e.ModifiedDay && e.Modified == 0 || e.Modified > now.Unix()+24*3600 {
		t.Fatalf("no date: %d", e.Modified)
	}
	seen := map[string]bool{}
	for _, l := range e.Links {
		canonical, err := page.Canonical(l)
		if err != nil || canonical != l || seen[l] || len(testPage.Base)+len(l) > MaxURL {
			t.Fatalf("link %q: %q, %v", l, canonical, err)
		}
		seen[l] = true
	}
	urls := append([]string{}, e.Images...)
	for _, a := range e.Alternates {
		urls = append(urls, a.URL)
	}
	for _, u := range append(urls, e.Canonical, e.Refresh) {
		if u != "" && (!strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "http://") || len(u) > MaxURL || strings.ContainsAny(u, " #<>\"\n\x00")) {
			t.Fatalf("URL %q", u)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("noindex, googlebot: none", `</a>; rel="canonical", <b>; rel=alternate; hreflang=de`, "0;url=x")
	f.Add("unavailable_after: Wed, 25 Jun 2031 15:00:00 GMT", `<a>;rel="\"`, "1;'")
	f.Add("a:b:c,: ;", `<>,;=<`, ".")
	f.Fuzz(func(t *testing.T, robots, link, refresh string) {
		p := testPage
		p.Header = http.Header{"X-Robots-Tag": {robots}, "Link": {link}, "Refresh": {refresh}}
		got := Header(p)
		checkBounds(t, got)
		if read := NewReader(Options{Alternates: true}).Read(nil, p); !reflect.DeepEqual(got, read) {
			t.Fatalf("alone: %+v, with an empty body: %+v", got, read)
		}
		p.Header.Add("X-Robots-Tag", "noindex")
		if !Header(p).NoIndex {
			t.Fatal("one header hides another")
		}
	})
}

// What is no part of the text changes nothing, wherever it is put; a word does.
func FuzzFingerprint(f *testing.F) {
	f.Add("some text", "x")
	f.Add("a <b>c", "--><p>")
	f.Add("&amp;", "</nav></script>")
	f.Add("\u00a0", "")
	f.Fuzz(func(t *testing.T, text, noise string) {
		text, noise = html.EscapeString(text), html.EscapeString(noise)
		document := func(noise, text string) uint64 {
			p := withHeader("Content-Type", "text/html; charset=utf-8")
			return NewReader(Options{}).Read([]byte(`<!doctype html><head><script src="`+noise+`">`+noise+`</script><!--`+noise+`--><title>t</title></head>
<body id="`+noise+`"><nav>`+noise+`</nav><p>a `+text+`<!--`+noise+`--> b</p><script>`+noise+`</script>
<template>`+noise+`</template><svg>`+noise+`</svg><img src="`+noise+`"><input value="`+noise+`"><footer>`+noise+`</footer>`), p).Fingerprint
		}
		if document(noise, text) != document("", text) {
			t.Fatalf("%q changes the fingerprint of %q", noise, text)
		}
		if document(noise, text) == document(noise, text+"word") {
			t.Fatalf("a word changes nothing in %q", text)
		}
	})
}

// FuzzTree compares with what the whole tree says, but for where an end tag that
// ends nothing parts two words.
func FuzzTree(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 4<<10 || !utf8.Valid(body) || bytes.HasPrefix(body, []byte("\ufeff")) || differsOnPurpose(body) {
			return
		}
		p := withHeader("Content-Type", "text/html; charset=utf-8")
		if what := disagreement(t, body, p); what != "" && what != "white space" {
			t.Errorf("%s of %q", what, body)
		}
	})
}

// differsOnPurpose reports whether a document has what Reader takes more simply than
// a tree would be built.
func differsOnPurpose(body []byte) bool {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return false
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, _ := z.TagName()
			switch atom.Lookup(name) {
			case atom.Table, atom.Select, atom.Frameset, atom.Svg, atom.Math, atom.Template, atom.Plaintext, atom.Caption, atom.Tr, atom.Td, atom.Th, atom.Tbody, atom.Thead, atom.Tfoot,
				atom.Colgroup, atom.Col, atom.Button, atom.Form, atom.Object, atom.Applet, atom.Marquee, atom.Image, atom.Isindex:
				return true
			}
		}
	}
}
