package html

import (
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

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
	`<link rel=alternate hreflang=de-at href=?q#f><a rel=nofollow href=../../x%2f%7E><a href="https:\\x\y">`,
	`<head></head><noscript>a</noscript><frameset><p></body></html><meta property=og:image content=data:,>`,
	`<a =href=x =rel><a/href/=x/rel=y/><a b='c>d'e href="x"rel=y><a href="x>`, `</><?x?></ x><!-->a<!--->b<!---!>--><b/a=/><br/></b/>`,
	`<html lang=de-AT><meta name=description content="a&amp;b"><link rel=alternate type="text/markdown; a=b" href=c.md><meta property=og:title content=d>`,
	`<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"2024-05-01","headline":"a\nb"}</script><meta property=og:description content=c>`,
	`<html xml:lang=fr><meta http-equiv=content-language content=it><meta property=article:published_time content=2024-05-01><time>1 May 2024</time>`,
	`<title`, "<textarea>", `<link rel=canonical href=/a><link rel=canonical href=/b>`, "a<![CDATA[x]]>b</ x>d<!x>e", "a < b <3 c<", "<!-- never ends <p>",
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), "/docs/a.html?x", "text/html; charset=iso-8859-1")
		f.Add([]byte(s), "/", "application/xhtml+xml")
	}
	f.Fuzz(func(t *testing.T, body []byte, path, contentType string) {
		p := testPage
		p.Path = path
		p.Header = http.Header{"Content-Type": {contentType}}
		want := Parse(bytes.Clone(body), p)
		checkBounds(t, want)
		checkBlocks(t, body, p, want)
		before := bytes.Clone(body)
		got := Parse(body, p)
		if !bytes.Equal(body, before) {
			t.Fatal("the body was modified")
		}
		for i := range body {
			body[i] = '!'
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("it refers to the body: %+v, not %+v", got, want)
		}
	})
}

// checkBlocks: a page that was read has a sum, also without text, and a comment at its end does not change it.
func checkBlocks(t *testing.T, body []byte, p Page, m Meta) {
	t.Helper()
	if m.Blocks == 0 {
		t.Fatal("it is not known which text dates the page")
	}
	behind := append(bytes.Clone(body), "<!-- more -->"...)
	if got := Parse(behind, p); got.Text == m.Text && got.Blocks != m.Blocks && len(body) < MaxBody {
		t.Fatalf("a comment changes the sum: %x, %x", got.Blocks, m.Blocks)
	}
}

func checkBounds(t *testing.T, m Meta) {
	t.Helper()
	if len(m.Links) > MaxLinks || len(m.Images) > page.MaxImages || len(m.Alternates) > page.MaxAlternates {
		t.Fatalf("got %+v", m)
	}
	for _, s := range []string{m.Title, m.Headline, m.Description} {
		if line := strings.Join(strings.Fields(s), " "); line != s || !utf8.ValidString(line) ||
			utf8.RuneCountInString(line) > MaxTitle || strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("title, headline or description %q", s)
		}
	}
	if m.ModifiedDay && m.Modified == 0 || m.Modified > now.Unix()+24*3600 {
		t.Fatalf("date: %d", m.Modified)
	}
	if m.PublishedDay && m.Published == 0 || m.Published > now.Unix()+24*3600 {
		t.Fatalf("date of publication: %d", m.Published)
	}
	if m.Published == 0 && m.Headline != "" || m.Lang != onlyLanguage(m.Lang) {
		t.Fatalf("published %d, headline %q, language %q", m.Published, m.Headline, m.Lang)
	}
	seen := map[string]bool{}
	for _, l := range m.Links {
		normal, err := page.Normal(l)
		if err != nil || normal != l || seen[l] || len(testPage.Base)+len(l) > page.MaxLoc {
			t.Fatalf("link %q: %q, %v", l, normal, err)
		}
		seen[l] = true
	}
	urls := append([]string{m.Canonical, m.Refresh, m.Markdown}, m.Images...)
	for _, a := range m.Alternates {
		urls = append(urls, a.URL)
	}
	for _, u := range urls {
		if u != "" && (!strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "http://") || len(u) > page.MaxLoc || strings.ContainsAny(u, " #<>\"\n\x00")) {
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
		p.Options = Options{Alternates: true}
		got := Header(p)
		checkBounds(t, got)
		parsed := Parse(nil, p)
		got.Blocks = parsed.Blocks // which is of the body
		if !reflect.DeepEqual(got, parsed) {
			t.Fatalf("alone: %+v, with an empty body: %+v", got, parsed)
		}
		p.Header.Add("X-Robots-Tag", "noindex")
		if !Header(p).NoIndex {
			t.Fatal("one header hides another")
		}
	})
}

// FuzzBlocks: blocks add the same to the sum whatever else is on the page, in any order.
func FuzzBlocks(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, "some text")
	}
	f.Add("Last updated 2026-11-24", "2026")
	f.Add("© 2019-2026 Example", "a. 1 May")
	f.Fuzz(func(t *testing.T, text, more string) {
		text, more = html.EscapeString(text), html.EscapeString(more)
		sum := func(body string) uint64 {
			p := withHeader("Content-Type", "text/html; charset=utf-8")
			return Parse([]byte("<main><p>a"+body+"</main>"), p).Blocks
		}
		if sum("<p>"+text)-sum("") != sum("<p>b<div>"+text+"</div>")-sum("<p>b") {
			t.Fatalf("%q: other differences on other pages", text)
		}
		if sum("<p>"+text+"<hr>b<hr>"+more) != sum("<p>"+more+"<hr>b<hr>"+text) {
			t.Fatalf("%q, %q: the order matters", text, more)
		}
	})
}
