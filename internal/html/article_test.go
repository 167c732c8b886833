package html

import (
	"strings"
	"testing"
)

func jsonLD(json string) string { return `<script type="application/ld+json">` + json + `</script>` }

func TestPublished(t *testing.T) {
	const ofMeta = `<meta property=article:published_time content="2024-05-02T10:00:00+02:00">`
	for _, test := range []struct{ body, want string }{
		{jsonLD(`{"@type":"NewsArticle","datePublished":"2024-05-01T10:00:00+02:00"}`), "2024-05-01T08:00:00Z"},
		{ofMeta, "2024-05-02T08:00:00Z"},
		{`<meta name=" Article:Published_Time " content="2024-05-02">`, "2024-05-02"},

		// Of dates that differ, the most reliable counts, in any order.
		{jsonLD(`{"@type":"NewsArticle","datePublished":"2024-05-01"}`) + ofMeta, "2024-05-01"},
		{ofMeta + jsonLD(`{"@type":"NewsArticle","datePublished":"in May"}`), "2024-05-02T08:00:00Z"},
		{`<meta property=article:published_time content=2024-05-09>` + ofMeta, "2024-05-09"},

		// One tomorrow may be today somewhere.
		{`<meta property=article:published_time content="2026-06-16T11:00:00Z">`, "2026-06-16T11:00:00Z"},
		{`<meta property=article:published_time content="2026-06-16T13:00:00Z">`, ""},
		{jsonLD(`{"@type":"NewsArticle","datePublished":"2027-01-01"}`) + ofMeta, "2024-05-02T08:00:00Z"},

		// Which thing the page is, and of which type.
		{"<body>" + jsonLD(`{"@type":["Thing","https://schema.org/OpinionNewsArticle"],"datePublished":["2024-05-01"]}`), "2024-05-01"},
		{jsonLD(`{"@graph":[{"@type":"WebPage","url":"a.html","datePublished":"2024-05-02"},{"@type":"Article","datePublished":"2024-05-01"}]}`), "2024-05-01"},
		{jsonLD(`[{"@type":"BlogPosting","url":"/b","datePublished":"2024-05-01"},{"@type":"BlogPosting","url":"a.html","datePublished":"2024-05-02"}]`), "2024-05-02"},
		{jsonLD(`[{"@type":"Report","url":"/b","datePublished":"2024-05-01"},{"@type":"Report","mainEntityOfPage":{"@id":"/docs/a.html#x"},"datePublished":"2024-05-02"}]`), "2024-05-02"},
		{jsonLD(`[{"@type":"Article","datePublished":"2024-05-01"},{"@type":"Article","datePublished":"2024-05-02"}]`), ""},
		{jsonLD(`{"@type":"Article","datePublished":"2024-05-01"}`) + jsonLD(`{"@type":"Article","datePublished":"2024-05-01"}`), "2024-05-01"},
		{jsonLD(`{"@type":"WebPage","datePublished":"2024-05-01"}`), ""},
		{jsonLD(`{"@type":"TechArticle","datePublished":"2024-05-01"}`), ""},
		{jsonLD(`{"datePublished":"2024-05-01"}`), ""},
		{jsonLD(`{"@type":"NewsArticle","dateModified":"2024-05-01","dateCreated":"2024-05-01"}`), ""},
		{`<template>` + ofMeta + `</template>`, ""},
	} {
		got := read(test.body)
		if date := formatDate(got.Published, got.PublishedDay); date != test.want {
			t.Errorf("%s: got %q, want %q", test.body, date, test.want)
		}
	}
}

func TestHeadline(t *testing.T) {
	const shared = `<meta property=og:title content=" A&amp;B "><meta property=og:title content=c>`
	const published = `<meta property=article:published_time content=2024-05-01>`
	for _, test := range []struct{ body, want string }{
		{shared + jsonLD(`{"@type":"NewsArticle","headline":" A\n \"headline\" ","datePublished":"2024-05-01"}`), `A "headline"`},
		{shared + jsonLD(`{"@type":"NewsArticle","headline":" ","datePublished":"2024-05-01"}`), `A&B`},
		{shared + jsonLD(`{"@type":"NewsArticle","headline":7,"datePublished":"2024-05-01"}`), `A&B`},
		// Only that of the thing whose date counts.
		{jsonLD(`[{"@type":"Article","url":"/b","headline":"b","datePublished":"2024-05-01"},{"@type":"Article","url":"a.html","headline":"a","datePublished":"2024-05-02"}]`), "a"},
		{published + shared + jsonLD(`{"@type":"NewsArticle","headline":"a","datePublished":"x"}`), `A&B`},
		{jsonLD(`{"@type":"NewsArticle","headline":"` + strings.Repeat("é", 10_000) + `","datePublished":"2024-05-01"}`), strings.Repeat("é", MaxTitle-1) + "…"},
		{published + `<title>a</title>`, ""},
		{shared, ""}, // of no article
	} {
		if got := read(test.body).Headline; got != test.want {
			t.Errorf("%.200s: got %q, want %q", test.body, got, test.want)
		}
	}
}

func TestLang(t *testing.T) {
	const published = `<meta property=article:published_time content=2024-05-01>`
	for _, test := range []struct{ body, header, want string }{
		{`<html lang=de>` + published, "", "de"},
		{`<html lang=" DE-AT ">` + published, "it", "de-AT"},
		{`<html><html lang=de>` + published, "", "de"},
		{`<html lang=x-default>` + published, "it", "it"},
		{`<html lang=en_US>` + published, " IT ", "it"},
		{published, "de, en", ""},
		{`<meta http-equiv=Content-Language content=fr>` + published, "it", "fr"},
		{`<html lang=de><meta http-equiv=content-language content=fr>` + published, "", "de"},
		{`<html lang="de"><p lang=fr>`, "", "de"}, // of any page, as the front page may have none of its own
		{published + `<template><html lang=de></template><svg lang=fr></svg><p lang=it>`, "", ""},
	} {
		if got := readWith(test.body, "Content-Language", test.header).Lang; got != test.want {
			t.Errorf("%s, header %q: got %q, want %q", test.body, test.header, got, test.want)
		}
	}
	p := withHeader("Content-Language", "de", "Content-Language", "en")
	if got := NewParser(everything).Parse([]byte(published), p).Lang; got != "" {
		t.Errorf("two headers: got %q", got)
	}
}
