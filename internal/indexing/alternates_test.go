package indexing

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// alternates are pairs of a language and a URL, or a path on the site, separated by spaces.
func alternates(pairs string) (list []page.Alternate) {
	for pair := range strings.FieldsSeq(pairs) {
		lang, url, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(url, "/") {
			url = origin + url
		}
		list = append(list, page.Alternate{Lang: lang, URL: url})
	}
	return list
}

// speaking are records with their alternates: as of [recs], each followed by "|" and pairs.
func speaking(specs string) (records []record.Record) {
	for spec := range strings.SplitSeq(specs, "; ") {
		spec, pairs, _ := strings.Cut(spec, "|")
		r := rec(spec)
		r.Alternates = alternates(pairs)
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b record.Record) int { return strings.Compare(a.Path, b.Path) })
	return records
}

// TestAlternates: a page is listed with each version that links back, is listed and is its own canonical; what is wrong
// with one of them does not harm the others.
func TestAlternates(t *testing.T) {
	const both = "en=/en de=/de"
	for _, test := range []struct {
		name    string
		records string // the page in question is /en
		want    string
		left    string // the last alternate that is left out
		why     string
	}{
		{"over max_urls", "/en |en=/en fr=/fr; /fr |en=/en fr=/fr", "en=/en", "fr=/fr", notMutual},
		{"outside the scope", "/en |en=/en de=/x/de; /x/de", "en=/en de=/x/de", "", ""},
		{"the same", "/en |en=/en de=/de; /de |en=/en de=/de", both, "", ""},
		{"another order and case", "/en |en=/en de=/de; /de |DE=/de EN=/en", both, "", ""},
		{"a third page lists more", "/en |en=/en de=/de; /de |en=/en de=/de fr=/fr; /fr |fr=/fr de=/de", both, "", ""},
		{"one lists more", "/en |en=/en de=/de fr=/fr; /de |en=/en de=/de; /fr |fr=/fr de=/de", both, "fr=/fr", notMutual},
		{"one lists nothing", "/en |en=/en de=/de fr=/fr; /de |en=/en de=/de; /fr", both, "fr=/fr", notMutual},
		{"without itself", "/en |de=/de; /de |en=/en", "de=/de", "", ""},
		{"it is alone", "/en |en=/en", "en=/en", "", ""},
		{"of a region", "/en |en-GB=/en de=/de; /de |en=/en de-AT=/de", "en-GB=/en de=/de", "", ""},
		{"not there", "/en |en=/en fr=/fr", "en=/en", "fr=/fr", notMutual},
		{"gone", "/en |en=/en fr=/fr; /fr 404 |en=/en fr=/fr", "en=/en", "fr=/fr", notMutual},
		{"noindex", "/en |en=/en fr=/fr; /fr noindex |en=/en fr=/fr", "en=/en", "fr=/fr", notMutual},
		{"another canonical", "/en |en=/en fr=/fr de=/de; /de |de=/de en=/en; /fr ->/de |en=/en fr=/fr", both, "fr=/fr", notMutual},
		{"a canonical that is not listed", "/en |en=/en fr=/fr; /fr ->/x |en=/en fr=/fr; /x 404", "en=/en fr=/fr", "", ""},
		{"failing for a moment", "/en |en=/en fr=/fr; /fr failing listed |en=/en fr=/fr", "en=/en fr=/fr", "", ""},

		{"in another spelling", "/en |en=/en de=/d%2Ce fr=/f,r; /d,e |en=/en de=/d%2Ce; /f%2Cr |en=/en fr=/f%2Cr", "en=/en de=/d%2Ce fr=/f,r", "", ""},
		{"in another spelling, not listed", "/en |en=/en de=/d%2Ce; /d,e 404", "en=/en", "de=/d%2Ce", notMutual},
		{"two spellings", "/en |en=/en de=/d%2Ce; /d%2Ce |en=/en de=/d%2Ce; /d,e noindex |fr=/en de=/d,e", "en=/en de=/d%2Ce", "", ""},

		{"another host", "/en |en=/en fr=https://example.fr/", "en=/en fr=https://example.fr/", "", ""},
		{"another scheme", "/en |en=/en de=http://example.com/de; /de |en=/en de=/de", "en=/en de=http://example.com/de", "", ""},
		{"another port", "/en |en=/en de=http://example.com:8080/de; /de |en=/en de=/de", "en=/en de=http://example.com:8080/de", "", ""},

		{"a front page that chooses", "/ 302; /en |en=/en x-default=/", "en=/en x-default=/", "", ""},
		{"a front page in a language", "/ |en=/; /en |en=/en fr=/", "en=/en", "fr=/", notMutual},
		{"by default one of them", "/en |en=/en de=/de x-default=/de; /de |en=/en de=/de", "en=/en de=/de x-default=/de", "", ""},
		{"by default one that is gone", "/en |en=/en x-default=/fr; /fr 410", "en=/en", "x-default=/fr", notMutual},

		{"no country", "/en |en=/en en-UK=/uk de=/de; /de |en=/en de=/de; /uk |en=/en en-UK=/uk", both, "en-UK=/uk", notALanguage},
		{"no country, itself", "/en |en-EU=/en de=/de; /de |en-EU=/en de=/de", "de=/de", "en-EU=/en", notALanguage},
		{"a part of the world", "/en |en=/en es-419=/es; /es |en=/en es-419=/es", "en=/en", "es-419=/es", notALanguage},
		{"no country, on another host", "/en |en=/en en-UK=https://example.co.uk/", "en=/en", "en-UK=https://example.co.uk/", notALanguage},
	} {
		r := rules()
		r.Extract.Alternates = true
		switch test.name {
		case "over max_urls":
			r.MaxPages = 1
		case "outside the scope":
			r.Scope = "/e"
		}
		g := generation(t, 2, speaking(test.records))
		pages, res := run(t, g, r)
		i := slices.IndexFunc(pages, func(p page.Page) bool { return p.Path == "/en" })
		var got []page.Alternate
		if pages[i].Extensions != nil {
			got = pages[i].Extensions.Alternates
		}
		if !slices.Equal(got, alternates(test.want)) {
			t.Errorf("%s: got %v, want %s", test.name, got, test.want)
		}
		if isLeft := slices.Contains(res.AlternatesLeftOut.First, "/en"); isLeft != (test.left != "") {
			t.Errorf("%s: counted as left out: %t", test.name, isLeft)
		}

		x, err := Explain(t.Context(), g, r, "/en")
		if err != nil {
			t.Fatal(err)
		}
		left, why := "", ""
		if n := len(x.Alternates); n > 0 {
			last := x.Alternates[n-1]
			left = last.Lang + "=" + strings.Replace(last.URL, origin+"/", "/", 1)
			why = last.Reason
		}
		if left != test.left || why != test.why {
			t.Errorf("%s: got left out %q, as %s, want %q, as %s", test.name, left, why, test.left, test.why)
		}
	}
}
