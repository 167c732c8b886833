package html

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var now = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

var (
	testPage  = Page{Base: "https://example.com", Path: "/docs/a.html", Now: now, Options: everything}
	plainPage = Page{Base: "https://example.com", Path: "/docs/a.html"}
)

var everything = Options{Alternates: true, Images: true, Titles: true, Descriptions: true, Markdown: true, Articles: true}

func read(body string) Meta {
	return Parse([]byte(body), testPage)
}

func readWith(body string, header ...string) Meta {
	return Parse([]byte(body), withHeader(header...))
}

func withHeader(header ...string) Page {
	p := testPage
	p.Header = http.Header{}
	for i := 0; i < len(header); i += 2 {
		p.Header.Add(header[i], header[i+1])
	}
	return p
}

func TestNoIndex(t *testing.T) {
	for _, test := range []struct {
		body string
		want bool
	}{
		{`<meta name="robots" content="noindex">`, true},
		{`<meta name="googlebot" content="noindex">`, true},
		{`<html><head><Meta Content='NoIndex, NoFollow' Name=" Robots "/>`, true},
		{`<meta name=robots content="follow noindex">`, true},
		{`<meta name=robots content="index"><meta name=robots content=noindex>`, true},
		{`<meta name="robots" content="&#110;oindex">`, true},
		{`<meta property="robots" content="noindex">`, true},
		{"<meta name=robots\ncontent=noindex", false}, // never ends
		{`<!-- x --><!doctype html> <html> <!-- y --> <meta name=robots content=noindex>`, true},
		{`<style>p{}</style><script>1</script><template></template><meta name=robots content=noindex>`, true},

		{`<meta name=robots content="index,follow">`, false},
		{`<meta name=robots content="max-image-preview : none">`, false},
		{`<meta name=robots content="noindexing nonesuch">`, false},
		{`<meta name=robots>`, false},
		{`<meta name=robots content="">`, false},
		{`<meta name=bingbot content=noindex>`, false},
		{`<noscript><meta name=robots content=noindex></noscript>`, false},
		{`<template><meta name=robots content=noindex></template>`, false},
		{`<template><template></template><meta name=robots content=noindex></template>`, false},
		{`<body><main><p>text<meta name=robots content=noindex>`, true},
		{`text<meta name=robots content=noindex>`, true},
		{`<head></head><noscript></noscript><meta name=robots content=noindex>`, true},
		{`<svg><meta name=robots content=noindex>`, false},

		{`<meta name=robots content="unavailable_after: 25 Jun 2010 15:00:00 PST">`, true},
		{`<meta name=robots content="unavailable_after: 2026-06-15">`, true},
		{`<meta name=robots content="unavailable_after: 2026-06-15T13:30:00+02:00">`, true},
		{`<meta name=robots content="unavailable_after: 2026-06-15T14:30:00+02:00">`, false},
	} {
		if got := read(test.body); got.NoIndex != test.want || got.NoIndexTag {
			t.Errorf("%s: got %+v, want %t", test.body, got, test.want)
		}
	}
}

func TestRobotsTag(t *testing.T) {
	for _, test := range []struct {
		values []string
		want   bool
	}{
		{[]string{"noindex"}, true},
		{[]string{"none"}, true},
		{[]string{"nofollow, noindex"}, true},
		{[]string{"GoogleBot : nofollow, noindex"}, true},
		{[]string{"bingbot: noindex, googlebot: noindex"}, true},
		{[]string{"bingbot: noindex", "noindex"}, true},
		{[]string{"*: noindex"}, true},
		{[]string{"max-video-preview:0,max-image-preview:none, noindex"}, true},
		{[]string{"unavailable_after: 25 Jun 2010 15:00:00 PST"}, true},
		{[]string{"unavailable_after: Friday, 25-Jun-10 15:00:00 GMT"}, true},
		{[]string{"unavailable_after: Wed, 25 Jun 2031 15:00:00 GMT, noindex"}, true},
		{[]string{"googlebot: unavailable_after: 2010-01-01"}, true},
		{[]string{"unavailable_after: never, noindex"}, true},
		{[]string{"unavailable_after: 2031-01-01 noindex"}, true},

		{[]string{""}, false},
		{[]string{"bingbot: nofollow, noindex"}, false},
		{[]string{"googlebot: nofollow, otherbot: noindex, none"}, false},
		{[]string{"googlebot-news: noindex"}, false},
		{[]string{"max-image-preview: none"}, false},
		{[]string{"unavailable_after: Wed, 25 Jun 2031 15:00:00 GMT"}, false},
		{[]string{"bingbot: unavailable_after: 2010-01-01"}, false},
	} {
		p := testPage
		p.Header = http.Header{"X-Robots-Tag": test.values}
		if got := Header(p).NoIndexTag; got != test.want {
			t.Errorf("%q: got %t, want %t", test.values, got, test.want)
		}
		if got := Parse([]byte("<title>x</title>"), p).NoIndexTag; got != test.want {
			t.Errorf("%q, read: got %t, want %t", test.values, got, test.want)
		}
	}
}

func TestCanonical(t *testing.T) {
	const other = "https://other.example"
	for _, test := range []struct{ body, want string }{
		{`<link rel=canonical href="https://example.com/docs/a.html">`, ""},
		{`<link rel=canonical href="a.html"><link rel=canonical href="/docs/a%2Ehtml#x">`, ""},
		{`<link rel=canonical href="/a%3Db">`, "https://example.com/a%3Db"},
		{`<link rel=canonical href="b">`, "https://example.com/docs/b"},
		{`<link rel=canonical href="../%7ejo/./x">`, "https://example.com/~jo/x"},
		{`<link rel=canonical href="?x=1&amp;y=2">`, "https://example.com/docs/a.html?x=1&y=2"},
		{`<link rel=canonical href="?x=1&copy=2">`, "https://example.com/docs/a.html?x=1&copy=2"},
		{`<link rel=canonical href="//other.example">`, other + "/"},
		{`<link rel=canonical href="http://example.com:80/">`, "https://example.com/"},
		{`<link rel=canonical href="http://example.com:443/">`, "http://example.com:443/"},
		{`<link rel=canonical href="https://example.com:8443/">`, "https://example.com:8443/"},
		{`<link rel=canonical href="https://bücher.example/ü">`, "https://xn--bcher-kva.example/%C3%BC"},
		{`<link rel=canonical href="https://[::1]:80/a b">`, "https://[::1]:80/a%20b"},
		{`<link rel=canonical href=" /a
b ">`, "https://example.com/ab"},
		{`<link rel=canonical href="https:\\other.example\a">`, other + "/a"},
		{`<link rel="shortlink Canonical" href="/b">`, "https://example.com/b"},
		{`<base href="/c/"><link rel=canonical href="b">`, "https://example.com/c/b"},
		{`<base href="https://other.example/c/d"><base href="/e/"><link rel=canonical href="b">`, other + "/c/b"},
		{`<base href="data:,"><link rel=canonical href="b">`, "https://example.com/docs/b"},
		{`<link rel=canonical href="/b"><link rel=canonical href="../b#c">`, "https://example.com/b"},
		{`<link rel=canonical href="javascript:1"><link rel=canonical href="/b">`, "https://example.com/b"},

		{`<link rel=canonical href>`, ""},
		{`<link rel=canonical href="#top">`, ""},
		{`<link rel=canonical href="localhost:8080/b">`, ""},
		{`<link rel=canonical href="https://">`, ""},
		{`<link rel=canonical href="https://user@example.com/">`, ""},
		{`<link rel=canonical href="https://example.com:x/">`, ""},
		{`<link rel=canonical href="/100%">`, ""},
		{`<link rel=canonical href="/b"><link rel=canonical href="/c">`, ""},
		{`<link rel=canonicals href="/b">`, ""},
		{`<link rel=canonical hreflang=de href="/b">`, ""},
		{`<link rel=canonical media="print" href="/b">`, ""},
		{`<body><link rel=canonical href="/b">`, ""},
		{`<link rel=canonical href="/` + strings.Repeat("b", page.MaxLoc) + `">`, ""},
	} {
		if got := read(test.body).Canonical; got != test.want {
			t.Errorf("%s: got %q, want %q", test.body, got, test.want)
		}
	}
}

func TestLinkHeader(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{`</b>; rel=canonical`, "https://example.com/b"},
		{`</x>; rel=preload; as=style, <https://o.example/>;REL="x CANONICAL" ; a`, "https://o.example/"},
		{`</b,c;d>; title="a, b; rel=next"; rel=canonical`, "https://example.com/b,c;d"},
		{`</b>; rel = canonical , </b>; rel=canonical`, "https://example.com/b"},
		{`</b>; rel=next; rel=canonical`, ""},
		{`</b>; rel=canonical; anchor="/c"`, ""},
		{`</b>; rel=canonical, </c>; rel=canonical`, ""},
		{`</b; rel=canonical`, ""},
		{`/b; rel=canonical`, ""},
		{`<>; rel=canonical`, ""},
		{`x, </b>; rel=canonical`, "https://example.com/b"},
		{`</b> junk ; rel=canonical`, "https://example.com/b"},
	} {
		if got := Header(withHeader("Link", test.value)).Canonical; got != test.want {
			t.Errorf("%s: got %q, want %q", test.value, got, test.want)
		}
	}
	if got := readWith(`<link rel=canonical href=/b>`, "Link", "</b>;rel=canonical").Canonical; got != "https://example.com/b" {
		t.Errorf("both alike: got %q", got)
	}
	if got := readWith(`<link rel=canonical href=/c>`, "Link", "</b>;rel=canonical").Canonical; got != "" {
		t.Errorf("both unlike: got %q", got)
	}
	if got := readWith(`<base href=/c/>`, "Link", "<b>;rel=canonical").Canonical; got != "https://example.com/docs/b" {
		t.Errorf("with a base: got %q", got)
	}
}

func TestRefresh(t *testing.T) {
	for _, test := range []struct{ content, want string }{
		{`0;url=/b`, "/b"},
		{` 5 , url = '/b' x`, "/b"},
		{`0;url="/b"x`, "/b"},
		{`0;url='/b`, "/b"},
		{`0 /b`, "/b"},
		{`0.5;url=/b`, "/b"},
		{`.5;url=/b`, "/b"},
		{`0;url=b#x`, "/docs/b"},
		{`0;urlb`, "/docs/urlb"},
		{`0;url=?x`, "/docs/a.html?x"},
		{`0;url=/it's`, "/it's"},
		{`0`, ""},
		{`0;url=`, ""},
		{`0;url=./a.html#x`, ""},
		{`0;url=javascript:1`, ""},
		{`url=/b`, ""},
		{`0x;url=/b`, ""},
		{`-1;url=/b`, ""},
	} {
		want := test.want
		if want != "" {
			want = testPage.Base + want
		}
		body := `<meta http-equiv="Refresh" content="` + strings.ReplaceAll(test.content, `"`, "&quot;") + `">`
		for _, body := range []string{body, "<body>" + body} {
			if got := read(body).Refresh; got != want {
				t.Errorf("%s: got %q, want %q", body, got, want)
			}
		}
		if got := Header(withHeader("Refresh", test.content)).Refresh; got != want {
			t.Errorf("header %s: got %q, want %q", test.content, got, want)
		}
	}
	for _, test := range []struct{ body, want string }{
		{`<noscript><meta http-equiv=refresh content="0;url=/b"></noscript>`, ""},
		{`<body><template><meta http-equiv=refresh content="0;url=/b">`, ""},
		{`<meta name=refresh content="0;url=/b">`, ""},
		{`<meta http-equiv=refresh content="0;url=/b"><meta http-equiv=refresh content="0;url=/c">`, "https://example.com/b"},
		{`<base href=/c/><meta http-equiv=refresh content="0;url=b">`, "https://example.com/c/b"},
	} {
		if got := read(test.body).Refresh; got != test.want {
			t.Errorf("%s: got %q, want %q", test.body, got, test.want)
		}
	}
}

func TestLinks(t *testing.T) {
	for _, test := range []struct {
		body string
		want []string
	}{
		{`<a href=b>b</a><a href="b#c">b</a><A HREF=./b>`, []string{"/docs/b"}},
		{`<a href="/z"><area href="y?q=1&amp;r=2#s">`, []string{"/z", "/docs/y?q=1&r=2"}},
		{`<a href="https://example.com/b"><a href="//EXAMPLE.com:443/c"><a href="https://example.com">`, []string{"/b", "/c", "/"}},
		{`<a href="http://example.com:8080/b"><a href="//www.example.com/c"><a href="https://example.com:8443/d"><a href="//evil.example/example.com/">`, nil},
		{`<a href="http://example.com/b"><a href="HTTP://Example.com:80/c">`, []string{"/b", "/c"}},
		{`<a href="mailto:a@b"><a href="javascript:1"><a href="tel:1"><a href="data:,a"><a href="https://u:p@example.com/">`, nil},
		{`<a><a href="#x"><a href=""><a href="a.html"><a href="/docs/a.html#y"><a name=x>`, nil},
		{`<a href="x%3Dy"><a href="x=y"><a href="?a=1&copy=2&amp;b=3">`, []string{"/docs/x%3Dy", "/docs/x=y", "/docs/a.html?a=1&copy=2&b=3"}},
		{`<a href="wiki:x"><a href="/wiki:x"><a href="./y:z"><a href="1:2">`, []string{"/wiki:x", "/docs/y:z", "/docs/1:2"}},
		{`<body><a href=b></a><meta name=robots content=nofollow>`, nil},
		{`<a rel=nofollow href=b><a rel="external NoFollow" href=c><a rel="nofollower" href=d>`, []string{"/docs/d"}},
		{`<a href=b><a rel=nofollow href=b>`, []string{"/docs/b"}},
		{`<a href="/ü b%c3%bc">`, []string{"/%C3%BC%20b%C3%BC"}},
		{`<a href="/100%"><a href="/a%zz"><a href=b>`, []string{"/docs/b"}},
		{`<a href=" /b&#10;c "><a href="\d\e">`, []string{"/bc", "/d/e"}},
		{"<a href=\"https://example.com/d\\e/\nf\"><a href='/g\\h?q=a\\b&#10;c'>", []string{"/d/e/f", "/g/h?q=a%5Cbc"}},
		{`<a href="/it's">`, []string{"/it's"}},
		{`<base href="/e/f"><a href=b>`, []string{"/e/b"}},
		{`<base href="https://cdn.example/"><a href=b><a href="https://example.com/c">`, []string{"/c"}},
		{`<meta name=robots content=nofollow><a href=b>`, nil},
		{`<frameset cols="20%,80%"><frame src=menu.html><FRAME SRC="/start.html#top" name=main><noframes><a href=b></a></noframes></frameset>`, []string{"/docs/menu.html", "/start.html"}},
		{`<frameset><frame src=menu.html><frame src=menu.html><frame><frame src="">`, []string{"/docs/menu.html"}},
		{`<p><iframe src="b?x=1"><a href=c></a></iframe><a href=d>`, []string{"/docs/b?x=1", "/docs/d"}},
		{`<iframe src="https://example.org/b"></iframe><iframe src="about:blank"></iframe><iframe src="a.html"></iframe><iframe name=x></iframe>`, nil},
		{`<iframe src=b srcdoc="<p>text"></iframe><iframe href=c></iframe><iframe src=e srcdoc></iframe><a src=d>`, nil},
		{`<template><iframe src=b></iframe></template><noscript><iframe src=c></iframe></noscript>`, nil},
		{`<meta name=robots content=nofollow><iframe src=b></iframe>`, nil},
		{`<a href=b><nav><a href=c></nav><footer><a href=d>`, []string{"/docs/b", "/docs/c", "/docs/d"}},
		{`<template><a href=b></template><script><a href=c></script><!--<a href=d>--><svg><a href=e></a></svg><noscript><a href=f></noscript><textarea><a href=g></textarea>`, []string{"/docs/e", "/docs/f"}},
		{`<svg><a xlink:href=b><text>x</text></a></svg><noscript><a href=c rel=nofollow></a><div><a href=d></div></noscript><a href=e>`, []string{"/docs/b", "/docs/d", "/docs/e"}},
		{`<a href="/` + strings.Repeat("b", page.MaxLoc) + `">`, nil},
	} {
		if got := read(test.body).Links; !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.body, got, test.want)
		}
	}
	if got := readWith(`<a href=b>`, "X-Robots-Tag", "nofollow").Links; got != nil {
		t.Errorf("nofollow header: got %q", got)
	}
}

func TestAlternates(t *testing.T) {
	body := `<link rel=alternate hreflang=de href=/de><link rel=alternate hreflang=en-GB href=/en><link rel=alternate hreflang=zh-Hant-TW href=/zh>
		<link rel=alternate hreflang=x-default href="//example.com/"><link rel="alternate" hreflang=es-419 href=es>
		<link rel=alternate hreflang=DE href=/other><link rel=alternate hreflang=de_AT href=/a><link rel=alternate hreflang="" href=/b>
		<link rel=alternate href=/c><link rel=alternate hreflang=fr><link rel="alternate stylesheet" hreflang=fr href=/d>
		<link rel=alternate hreflang=fr href="javascript:1"><link rel=alternate hreflang=deutsch href=/e>
		<link rel=alternate hreflang=en-uk-x-y href=/f><body><link rel=alternate hreflang=it href=/it>`
	want := []page.Alternate{
		{Lang: "de", URL: "https://example.com/de"},
		{Lang: "en-GB", URL: "https://example.com/en"},
		{Lang: "zh-Hant-TW", URL: "https://example.com/zh"},
		{Lang: "x-default", URL: "https://example.com/"},
		{Lang: "es-419", URL: "https://example.com/docs/es"},
	}
	if got := read(body).Alternates; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Parse([]byte(body), plainPage).Alternates; got != nil {
		t.Errorf("not wanted: got %v", got)
	}
	got := Header(withHeader("Link", `<b>; rel=alternate; hreflang=de, <c>; rel="alternate"; hreflang="fr-CA"`)).Alternates
	want = []page.Alternate{{Lang: "de", URL: "https://example.com/docs/b"}, {Lang: "fr-CA", URL: "https://example.com/docs/c"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("header: got %v, want %v", got, want)
	}
}

func TestImages(t *testing.T) {
	for _, test := range []struct {
		body string
		want []string
	}{
		{`<meta property=og:image content=/o.png><p><img src=a.png><img src="a.png#x"><img src="//cdn.example/b.png?x=1">`,
			[]string{"https://example.com/o.png", "https://example.com/docs/a.png", "https://cdn.example/b.png?x=1"}},
		{`<nav><img src=a.png></nav><header><img src=b.png></header><img src=c.png><footer><img src=d.png></footer>`, []string{"https://example.com/docs/c.png"}},
		{`<img src=c.png><main><header><img src=b.png></header><nav><img src=a.png></nav></main>`, []string{"https://example.com/docs/b.png"}},
		{`<img src=logo.png><main>a</main><img src=logo.png>`, nil},
		{`<img src="data:image/png;base64,AA"><img src=""><img><img src="blob:x"><img src="file:///x">`, nil},
		{`<template><img src=a></template><!--<img src=b>-->`, nil},
		{`<img src="data:image/gif;base64,AA" srcset="a.png 1x, b.png 2x"><img srcset=" c.png, d.png 2x"><img src=e.png srcset="f.png 2x">`,
			[]string{"https://example.com/docs/a.png", "https://example.com/docs/c.png", "https://example.com/docs/e.png"}},
		{`<a href=x><noscript><img src=a.png></noscript></a><noscript><img src=//count.example/p.gif width=1 height=1></noscript>`, []string{"https://example.com/docs/a.png"}},
	} {
		if got := read(test.body).Images; !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.body, got, test.want)
		}
		if got := Parse([]byte(test.body), plainPage).Images; got != nil {
			t.Errorf("%s: not wanted: got %q", test.body, got)
		}
	}
}

func TestTitle(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{"<title> A &amp; B\n\t&eacute;&nbsp;&#x1F600; </title>", "A & B é 😀"},
		{"<meta name=description content=d><title>a</title><title>b</title>", "a"},
		{"<title> </title><title>b</title>", "b"},
		{"<template><title>x</title></template><svg><title>y</title></svg><p><title>z</title>", "z"},
		{"<svg><title>y</title></svg>", ""},
		{"<p>a", ""},
		{"<title><b>a</b><!-- b --></title>", "<b>a</b><!-- b -->"},
		{"<title>a</title", "a</title"},
		{"<title>a\x00b\x01c\x7f\u0085d \x1b\u009b e\u200b</title>", "a\uFFFDbc d e"},
		{"<title>\u2028\u200b</title>", ""},
		{"<title>שלום \u202e</title>", "שלום \u202e"},
		{"<title>" + strings.Repeat("é", MaxTitle) + "</title>", strings.Repeat("é", MaxTitle)},
		{"<title>" + strings.Repeat("é", MaxTitle-2) + " bc</title>", strings.Repeat("é", MaxTitle-2) + " …"},
		{"<title>" + strings.Repeat("\x01", 100*MaxTitle) + "a</title>", "a"},
		{"<title>" + strings.Repeat(" 😀\n", MaxBody) + "</title>", strings.Repeat("😀 ", MaxTitle/2-1) + "😀…"},
	} {
		if got := read(test.body).Title; got != test.want {
			t.Errorf("%.80q: got %q, want %q", test.body, got, test.want)
		}
		if got := Parse([]byte(test.body), plainPage).Title; got != "" {
			t.Errorf("%.80q: got %q without the option", test.body, got)
		}
	}
	for body, want := range map[string]string{"<title>a\xff\xe9b</title>": "a\ufffd\ufffdb", "<title>\xf0\x9f</title>": "\ufffd\ufffd"} {
		if got := readWith(body, "Content-Type", "text/html; charset=utf-8").Title; got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}

func TestDescription(t *testing.T) {
	const shared = "<meta property=og:description content=shared>"
	for _, test := range []struct{ body, want string }{
		{"<meta name=description content=' A &amp; B\n\t&eacute;&nbsp;&#x1F600; '>", "A & B é 😀"},
		{"<META Name=' Description ' Content=a><meta name=description content=b>", "a"},
		{"<meta name=description content=' '><meta name=description><meta name=description content=b>", "b"},
		{shared + "<meta name=description content=a>", "a"},
		{"<meta name=description content='\u200b'>" + shared + "<meta property=og:description content=b>", "shared"},
		{"<meta name=og:description content=a>", "a"},
		{"<meta name=twitter:description content=a><meta name=descriptions content=b>", ""},
		{"<body><meta name=description content=a>" + shared, ""},
		{"<template><meta name=description content=a></template><noscript>" + shared + "</noscript>", ""},
		{"<meta name=description content='" + strings.Repeat("é", 10_000) + "'>", strings.Repeat("é", MaxTitle-1) + "…"},
		{"<p>a", ""},
	} {
		got := read(test.body)
		if got.Description != test.want {
			t.Errorf("%.80q: got %q, want %q", test.body, got.Description, test.want)
		}
		without := testPage
		without.Descriptions = false
		if got := Parse([]byte(test.body), without).Description; got != "" {
			t.Errorf("%.80q: got %q without the option", test.body, got)
		}
	}
}

func TestMarkdown(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{"<link rel=alternate type=text/markdown href=a.md>", "https://example.com/docs/a.md"},
		{"<LINK Rel='x Alternate' Type=' Text/Markdown ; charset=utf-8' href='/a.md#x'>", "https://example.com/a.md"},
		{"<link rel=alternate type='text/markdown;variant=GFM' href=https://o.example/a>", "https://o.example/a"},
		{"<link rel=alternate type=text/markdown><link rel=alternate type=text/markdown href=javascript:1>" +
			"<link rel=alternate type=text/markdown href=/a><link rel=alternate type=text/markdown href=/b>", "https://example.com/a"},
		{"<base href=/c/><link rel=alternate type=text/markdown href=a.md>", "https://example.com/c/a.md"},
		{"<link rel=alternate type=text/x-markdown href=a><link rel=alternate type=text/markdownish href=a>", ""},
		{"<link rel=alternate href=a.md><link type=text/markdown href=a.md><link rel=next type=text/markdown href=a.md>", ""},
		{"<body><link rel=alternate type=text/markdown href=a.md>", ""},
		{"<link rel=alternate type=text/markdown href='/" + strings.Repeat("b", page.MaxLoc) + "'>", ""},
	} {
		if got := read(test.body).Markdown; got != test.want {
			t.Errorf("%.80s: got %q, want %q", test.body, got, test.want)
		}
		without := testPage
		without.Markdown = false
		if got := Parse([]byte(test.body), without).Markdown; got != "" {
			t.Errorf("%.80s: got %q without the option", test.body, got)
		}
	}
	for _, value := range []string{`<a.md>; rel=alternate; type=text/markdown`, `<a.md>; rel="alternate"; type="text/markdown; charset=utf-8"`} {
		if got := readWith("<p>x", "Link", value).Markdown; got != "https://example.com/docs/a.md" {
			t.Errorf("header %s: got %q", value, got)
		}
	}
}

func TestDocument(t *testing.T) {
	for _, test := range []struct {
		body     string
		document bool
		text     string // of the body, else the title
	}{
		{"<!DOCTYPE html><p>x", true, "x"},
		{"<!-- x -->\n<!doctype html SYSTEM 'x'>", true, ""},
		{"\ufeff<!doctype html>", true, ""},
		{"<title> A\n &amp; B\u00a0<b> </title>", true, "A & B <b>"},
		{"<title>a</title><title>b</title>", true, "a b"},
		{"<title></title>", true, ""},
		{"<html>x", true, "x"},
		{"<p>x<HEAD>", true, "x"},
		{"<p>x<!doctype html>", false, "x"},
		{"---\na: b\n---\n<!doctype html>", false, "--- a: b ---"},
		{"<header>x</header>", false, ""},
		{"<svg><title>icon</title></svg>", false, ""},
		{"<svg><title/><path/></svg><title>a</title>", true, "a"},
		{"<template><title>x</title><body></template>", false, ""},
		{"{\"json\": true}", false, "{\"json\": true}"},
	} {
		if got := read(test.body); got.Document != test.document || got.Text != hashOf(test.text) {
			t.Errorf("%s: got %t, %x", test.body, got.Document, got.Text)
		}
	}
}

// TestHeaders: the list names all fields that the code of the package reads.
func TestHeaders(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	reads := regexp.MustCompile(`\.(?:Get|Values)\(([^)]*)\)`)
	read := make(map[string]bool)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reads.FindAllStringSubmatch(string(source), -1) {
			read[strings.Trim(m[1], `"`)] = true
		}
	}
	if got := slices.Sorted(maps.Keys(read)); !slices.Equal(got, Headers) {
		t.Errorf("the code reads %q, and the list has %q", got, Headers)
	}
}

func TestUnreadable(t *testing.T) {
	const body = "<!doctype html><a href=/b>b</a>"
	for encoding, want := range map[string]bool{"br": true, "zstd": true, "gzip": true, "x": true, "": false, "Identity": false} {
		got := readWith(body, "Content-Encoding", encoding, "X-Robots-Tag", "noindex")
		if got.Unreadable != want || got.Document == want || (got.Text == 0) != want || (got.Links == nil) != want || !got.NoIndex {
			t.Errorf("%q: got %+v", encoding, got)
		}
		if got := Header(withHeader("Content-Encoding", encoding)).Unreadable; got != want {
			t.Errorf("%q: header: got %t", encoding, got)
		}
	}
}

func TestPathOn(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com": "/", "https://example.com/": "/", "https://example.com?a": "/?a", "https://example.com#a": "/",
		"HTTPS://Example.com/A%3db?c#d": "/A%3Db?c", "https://example.com/a/../b": "/b",
		"https://example.com.evil/": "", "https://example.com:8443/": "", "http://example.com/": "/", "http://example.com:443/": "", "https://example.com/%": "",
		"/a": "", "": "",
	} {
		if got, ok := PathOn("https://example.com", url); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t, want %q", url, got, ok, want)
		}
	}
}

func TestIsHTML(t *testing.T) {
	for contentType, want := range map[string]bool{
		"text/html": true, "TEXT/HTML ; charset=utf-8": true, "application/xhtml+xml": true, "text/html;": true,
		"": false, "text/plain": false, "application/xml": false, "text/html5": false, "image/svg+xml": false,
	} {
		if got := IsHTML(contentType); got != want {
			t.Errorf("%q: got %t", contentType, got)
		}
	}
}

func TestModified(t *testing.T) {
	data := func(json string) string { return `<script type="application/ld+json">` + json + `</script>` }
	for _, test := range []struct{ body, want string }{
		{`<meta property=article:modified_time content="2024-05-01T10:00:00+02:00">`, "2024-05-01T08:00:00Z"},
		{`<meta name=dcterms.modified content="2024-05-01">`, "2024-05-01"},
		{`<meta http-equiv=Last-Modified content="Wednesday, 01-May-24 10:00:00 GMT">`, "2024-05-01T10:00:00Z"},
		{`<meta name=last-modified content="May 1, 2024">`, "2024-05-01"},
		{`<meta name=last-modified content="2024-05-01"><meta name=dcterms.modified content="2024-05-02"><meta property=og:updated_time content="2024-05-03"><meta property=article:modified_time content="2024-05-04">`, "2024-05-04"},
		{`<meta property=article:modified_time content="yesterday"><meta property=og:updated_time content="2024-05-03">`, "2024-05-03"},
		{`<meta property=article:modified_time content="2026-06-16T11:00:00Z">`, "2026-06-16T11:00:00Z"},
		{`<meta property=article:modified_time content="2026-06-16T13:00:00Z">`, ""},
		{`<meta property=article:modified_time content="1980-01-01">`, ""},
		{`<body><meta property=article:modified_time content="2024-05-01">`, ""},
		{`<meta property=article:published_time content="2024-05-01">`, ""},

		{data(`{"@type":"Article","dateModified":"2024-05-01"}`), "2024-05-01"},
		{"<body>" + data(`{"@type":"Article","dateModified":"2024-05-01"}`), "2024-05-01"},
		{`<meta property=article:modified_time content="2024-05-04">` + data(`{"@type":"Article","dateModified":"2024-05-01"}`), "2024-05-01"},
		{data(`[{"@type":"Article","dateModified":["2024-05-01"]}]`), "2024-05-01"},
		{data(`{"@graph":[{"@type":"WebSite","url":"/docs/a.html","dateModified":"2024-05-01"},{"@type":"WebPage","@id":"https://example.com/docs/a.html#page","dateModified":"2024-05-02"}]}`), "2024-05-02"},
		{data(`[{"url":"/b","dateModified":"2024-05-01"},{"url":"a.html","dateModified":"2024-05-02"},{"url":"/c","dateModified":"2024-05-03"}]`), "2024-05-02"},
		{data(`[{"dateModified":"2024-05-01"},{"mainEntityOfPage":{"@id":"https://example.com/docs/a.html"},"dateModified":"2024-05-02"}]`), "2024-05-02"},
		{data(`[{"dateModified":"2024-05-01"},{"mainEntityOfPage":"https://example.com/docs/a.html","dateModified":"2024-05-02"}]`), "2024-05-02"},
		{`<link rel=canonical href="https://o.example/x">` + data(`[{"dateModified":"2024-05-01"},{"url":"https://o.example/x","dateModified":"2024-05-02"}]`), "2024-05-02"},
		{data(`[{"dateModified":"2024-05-01"},{"@id":"#article","dateModified":"2024-05-02"}]`), "2024-05-02"},
		{data(`[{"dateModified":"2024-05-01"},{"mainEntityOfPage":{"@id":"#page"},"dateModified":"2024-05-02"}]`), "2024-05-02"},
		{data(`[{"@id":"urn:x","dateModified":"2024-05-01"},{"url":"","dateModified":"2024-05-02"}]`), ""},
		{data(`[{"dateModified":"2024-05-01"},{"dateModified":"2024-05-02"}]`), ""},
		{data(`{"@type":"Article","comment":{"@type":"Comment","dateModified":"2024-05-01"},"author":{"dateModified":"2024-05-01"},"offers":[{"dateModified":"2024-05-01"}]}`), ""},
		{data(`{"@type":"Comment","dateModified":"2024-05-01"}`), ""},
		{data(`{"@type":["Thing","https://schema.org/Person"],"dateModified":"2024-05-01"}`), ""},
		{data(`{"dateModified":"2024-05-01"`), ""},
		{data(`{"dateModified":1714557600}`), ""},
		{`<template>` + data(`{"dateModified":"2024-05-01"}`), ""},
		{data(strings.Repeat("[", 20000) + `"dateModified"`), ""},
		{data(`{"dateModified":"2024-05-01","x":"` + strings.Repeat("x", maxJSON) + `"}`), ""},
	} {
		e := read(test.body)
		if got := formatDate(e.Modified, e.ModifiedDay); got != test.want {
			t.Errorf("%.200s: got %q, want %q", test.body, got, test.want)
		}
	}
}

// formatDate returns a date as RFC 3339 does; "": there is none.
func formatDate(unix int64, day bool) string {
	date := time.Unix(unix, 0).UTC()
	switch {
	case unix == 0:
		return ""
	case day:
		return date.Format(time.DateOnly)
	}
	return date.Format(time.RFC3339)
}

func TestBounds(t *testing.T) {
	var b strings.Builder
	for i := range page.MaxAlternates + 10 {
		fmt.Fprintf(&b, "<link rel=alternate hreflang=%c%c%c href=/%d>", 'a'+i%26, 'a'+i/26%26, 'a'+i/676, i)
	}
	for i := range 100000 {
		fmt.Fprintf(&b, "<a href=%d>", i)
		if i < 2000 {
			fmt.Fprintf(&b, "<img src=/i%d>", i)
		}
	}
	e := read(b.String())
	if len(e.Links) != MaxLinks || len(e.Alternates) != page.MaxAlternates || len(e.Images) != page.MaxImages {
		t.Errorf("got %d, %d, %d", len(e.Links), len(e.Alternates), len(e.Images))
	}
	// The versions in other languages are links, too, and come first.
	want := fmt.Sprintf("/docs/%d", MaxLinks-1-(page.MaxAlternates+10))
	if e.Links[MaxLinks-1] != want {
		t.Errorf("got %s, want %s", e.Links[MaxLinks-1], want)
	}
	e = read("<title>a</title>" + strings.Repeat("x", MaxBody) + "<a href=/b>")
	if !e.Document || e.Links != nil {
		t.Errorf("too long: got %t, %q", e.Document, e.Links)
	}
}

// Pages that would take a careless reader long.
func TestHostile(t *testing.T) {
	var attributes strings.Builder
	attributes.WriteString("<p ")
	for i := range 120000 {
		fmt.Fprintf(&attributes, "a%d=x ", i)
	}
	attributes.WriteString("href=/a>")
	for name, body := range map[string]string{
		"nested":             strings.Repeat("<section><a href=a>b", 10000),
		"dates":              strings.Repeat("<meta name=last-modified content='1 2 3 4 5'>", MaxBody/45),
		"unavailable":        "<meta name=robots content='" + strings.Repeat("unavailable_after: a b c,", MaxBody/26) + "'>",
		"entities":           strings.Repeat("&am", MaxBody/6) + strings.Repeat("&#x1F600;&copy;", MaxBody/30),
		"attributes":         attributes.String(),
		"attributes first":   attributes.String() + strings.Repeat("<b c>", 200000),
		"an endless tag":     "<a href=" + strings.Repeat("x", MaxBody),
		"an endless comment": "<!--" + strings.Repeat("-", MaxBody),
		"less-than signs":    strings.Repeat("<", MaxBody),
		"open menus":         strings.Repeat("<nav><table>", MaxBody/12),
		"end tags":           strings.Repeat("<nav>", 1000) + strings.Repeat("</ul>", MaxBody/5),
		"scripts":            strings.Repeat("<script type=application/ld+json>\"dateModified\"</script>", MaxBody/55),
		"descriptions":       strings.Repeat("<meta name=description content='\x01 '>", MaxBody/39),
		"links":              strings.Repeat("<a href=/", 100000) + ">",
		"alternates":         strings.Repeat("<link rel=alternate hreflang=de href=a>", MaxBody/39),
	} {
		start := time.Now()
		read(body)
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s took %s", name, d)
		}
	}
}
