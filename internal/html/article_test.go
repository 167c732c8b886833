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
		{ofMeta + jsonLD(`{"@type":"NewsArticle","datePublished":"2024-05-01"}`), "2024-05-01"},
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
		{jsonLD(`{"@type":"AdvertiserContentArticle","datePublished":"2024-05-01"}`), ""},
		{jsonLD(`{"datePublished":"2024-05-01"}`), ""},
		{jsonLD(`{"@type":"NewsArticle","dateModified":"2024-05-01","dateCreated":"2024-05-01"}`), ""},
		{jsonLD(`{"@type":"NewsArticle","datePublished":1714557600}`), ""},
		{jsonLD(`{"@type":{"NewsArticle":1},"datePublished":"2024-05-01"}`), ""},
		{`<body>` + ofMeta, ""},
		{`<time datetime=2024-05-01>then</time>`, ""},
		{`<template>` + ofMeta + `</template>`, ""},
	} {
		got := read(test.body)
		if date := formatDate(got.Published, got.PublishedDay); date != test.want {
			t.Errorf("%s: got %q, want %q", test.body, date, test.want)
		}
		without := testPage
		without.Articles = false
		if got := Parse([]byte(test.body), without); got.Published != 0 || got.PublishedDay {
			t.Errorf("%s: got a date without the option", test.body)
		}
	}
}

// TestArticlesChangeNoModified: dates of publication are none of modification, and do not hide one.
func TestArticlesChangeNoModified(t *testing.T) {
	body := jsonLD(`[{"@type":"NewsArticle","url":"/b","datePublished":"2024-05-01","dateModified":"2024-05-03"},
		{"@type":"NewsArticle","url":"a.html","datePublished":"2024-05-02"}]`)
	got := read(body)
	if date := formatDate(got.Modified, got.ModifiedDay); date != "2024-05-03" {
		t.Errorf("modified: got %q", date)
	}
	if date := formatDate(got.Published, got.PublishedDay); date != "2024-05-02" {
		t.Errorf("published: got %q", date)
	}
}

func TestHeadline(t *testing.T) {
	const shared = `<meta property=og:title content=" A&amp;B "><meta property=og:title content=c>`
	const published = `<meta property=article:published_time content=2024-05-01>`
	for _, test := range []struct{ body, want string }{
		{shared + jsonLD(`{"@type":"NewsArticle","headline":" A\n \"headline\" ","datePublished":"2024-05-01"}`), `A "headline"`},
		{shared + jsonLD(`{"@type":"NewsArticle","headline":["a","b"],"datePublished":"2024-05-01"}`), "a"},
		{shared + jsonLD(`{"@type":"NewsArticle","headline":" ","datePublished":"2024-05-01"}`), `A&B`},
		{shared + jsonLD(`{"@type":"NewsArticle","headline":7,"datePublished":"2024-05-01"}`), `A&B`},
		// Only that of the thing whose date counts.
		{jsonLD(`[{"@type":"Article","url":"/b","headline":"b","datePublished":"2024-05-01"},{"@type":"Article","url":"a.html","headline":"a","datePublished":"2024-05-02"}]`), "a"},
		{published + shared + jsonLD(`{"@type":"NewsArticle","headline":"a","datePublished":"x"}`), `A&B`},
		{jsonLD(`{"@type":"NewsArticle","headline":"` + strings.Repeat("é", 10_000) + `","datePublished":"2024-05-01"}`), strings.Repeat("é", MaxTitle-1) + "…"},
		{published + `<title>a</title>`, ""},
		{shared, ""}, // of no article
		{"<body>" + shared + jsonLD(`{"@type":"Article","datePublished":"2024-05-01"}`), ""},
	} {
		if got := read(test.body).Headline; got != test.want {
			t.Errorf("%.200s: got %q, want %q", test.body, got, test.want)
		}
	}
}

func TestLang(t *testing.T) {
	const published = `<meta property=article:published_time content=2024-05-01>`
	meta := func(languages string) string { return `<meta http-equiv=Content-Language content="` + languages + `">` }
	for _, test := range []struct{ body, header, want string }{
		{`<html lang=de>` + published, "", "de"},
		{`<html lang=" DE-AT ">` + meta("fr") + published, "it", "de-AT"},
		{`<html xml:lang=zh-Hant-TW>` + published, "", "zh-Hant-TW"},
		{`<html lang="" xml:lang=es-419>` + published, "", "es-419"},
		{`<html><html lang=de><html lang=fr>` + published, "", "de"},
		{`<html lang=x-default>` + meta("FR") + published, "it", "fr"},
		{meta("de, en") + meta(" fr ") + published, "", "fr"},
		{`<html lang=en_US>` + published, " IT ", "it"},
		{published, "de, en", ""},
		{published, "", ""},
		{`<html lang=english>` + meta("de en") + published, "deutsch", ""},
		{`<html lang="de"><p lang=fr>` + meta("it"), "", "de"}, // of any page, as the front page may have none of its own
		{published + `<template><html lang=de></template><svg lang=fr></svg><p lang=it>`, "", ""},
	} {
		if got := readWith(test.body, "Content-Language", test.header).Lang; got != test.want {
			t.Errorf("%s, header %q: got %q, want %q", test.body, test.header, got, test.want)
		}
	}
	p := withHeader("Content-Language", "de", "Content-Language", "en")
	if got := Parse([]byte(published), p).Lang; got != "" {
		t.Errorf("two headers: got %q", got)
	}
}
