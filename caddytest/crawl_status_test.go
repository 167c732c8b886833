package caddytest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func TestReasons(t *testing.T) {
	files := map[string]string{
		"robots.txt":        "User-agent: *\nDisallow: /forbidden/\n",
		"a.html":            harness.Whole("", "text a"),
		"forbidden/a.html":  harness.Whole("", "forbidden"),
		"moved.html":        harness.Whole("", "moved"),
		"gone.html":         harness.Whole("", "gone"),
		"removed.html":      harness.Whole("", "removed"),
		"refused.html":      harness.Whole("", "refused"),
		"broken.html":       harness.Whole("", "broken"),
		"text.html":         harness.Whole("", "plain text"),
		"part.html":         "<nav><a href=/>home</a></nav>",
		"hidden.html":       harness.Whole(`<meta name="robots" content="noindex">`, "hidden"),
		"google.html":       harness.Whole(`<meta name="googlebot" content="nofollow, noindex">`, "hidden from one"),
		"header.html":       harness.Whole("", "hidden by a header"),
		"scoped.html":       harness.Whole("", "hidden from another"),
		"bing.html":         harness.Whole(`<meta name="bingbot" content="noindex">`, "hidden from yet another"),
		"refresh.html":      harness.Whole(`<meta http-equiv="refresh" content="0; url=a.html">`, ""),
		"reload.html":       harness.Whole(`<meta http-equiv="refresh" content="30">`, "reloads itself"),
		"away.html":         harness.Whole(`<link rel="canonical" href="https://elsewhere.example/away.html">`, "away"),
		"other.html":        harness.Whole(`<link rel="canonical" href="/a.html">`, "another page"),
		"twin.html":         harness.Whole("", "the very same"),
		"twin/index.html":   harness.Whole("", "the very same"),
		"alone.html":        harness.Whole("", "nothing links here"),
		"refresh-self.html": harness.Whole(`<meta http-equiv="refresh" content="30; url=/refresh-self.html">`, "reloads itself"),
	}
	listed := []string{"a", "bing", "refresh-self", "reload", "scoped", "twin"}
	var links strings.Builder
	for _, name := range append(listed, "moved", "gone", "refused") {
		fmt.Fprintf(&links, `<a href="/%s.html">%[1]s</a>`, name)
	}
	files["index.html"] = harness.Whole("", links.String())
	s := start(t, harness.Local+` {
		root * {dir}
		sitemap {
			refresh 1s
			orphans omit
		}
		header /header.html X-Robots-Tag "noindex"
		header /scoped.html X-Robots-Tag "otherbot: noindex"
		header /text.html Content-Type text/plain
		redir /moved.html /a.html
		respond /gone.html 404
		respond /removed.html 410
		respond /refused.html 403
		respond /broken.html 503
		file_server
	}`, files)
	want := []string{harness.Local + "/"}
	for _, name := range listed {
		want = append(want, harness.Local+"/"+name+".html")
	}
	s.WantLocs(harness.Local+"/sitemap.xml", want...)
	for _, url := range want {
		s.WantStatus(url, 200)
	}
	// Whatever the first refresh came to stays said, also once nothing changes.
	for range 2 {
		s.WantLeftOut(map[string]int{
			"not included": 1, "redirect": 1, "not found": 2, "refused": 1, "server error": 1, "not HTML": 1, "no document": 1, "noindex": 2, "noindex in X-Robots-Tag": 1,
			"refresh": 1, "canonical on another site": 1, "canonical is another page": 1, "duplicate": 1, "blocked by robots.txt": 1, "no incoming links": 1,
		})
		s.Logged(harness.Unchanged)
	}
	for _, line := range s.LogLines(harness.Refreshed, `"pending":0`) {
		if !strings.Contains(line, fmt.Sprintf(`"pages":%d,`, len(want))) {
			t.Errorf("got %s, want %d pages", line, len(want))
		}
	}
}

func TestCanonicals(t *testing.T) {
	to := func(href string) string {
		return harness.Whole(`<link rel="canonical" href="`+href+`">`, "text to "+href)
	}
	const pretty = `
		header /pretty* Content-Type text/html
		respond /pretty "<!doctype html><title>pretty</title>A page that is no file"
		respond /pretty-hidden "<!doctype html><title>x</title><meta name=robots content=noindex>A page that is no file"
		respond /pretty-chain "<!doctype html><title>x</title><link rel=canonical href=/pretty>chain"
		redir /back /back.html`
	for name, test := range map[string]struct {
		site, settings string
		files          map[string]string
		want           []string
	}{
		"a chain to one that is no file": {site: pretty, files: map[string]string{"a.html": to("/b.html"), "b.html": to("/pretty-chain")}, want: []string{"/pretty"}},
		"in a header":                    {site: `header /a.html Link "</b.html>; rel=\"canonical\""`, files: map[string]string{"a.html": harness.Whole("", "a"), "b.html": harness.Whole("", "b")}, want: []string{"/b.html"}},
		"ignored":                        {site: pretty, settings: "canonical ignore", files: map[string]string{"a.html": to("/b.html"), "b.html": harness.Whole("", "b"), "c.html": to("https://elsewhere.example/"), "d.html": to("/pretty")}, want: []string{"/a.html", "/b.html", "/c.html", "/d.html"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			for name, content := range test.files {
				s.Write(map[string]string{name: s.Expand(content)})
			}
			s.Write(map[string]string{"zzz.html": harness.Whole("", "always there")})
			s.Load(harness.Local + " {\n root * {dir}\n sitemap {\n refresh 1s\n " + test.settings + "\n}\n" + test.site + "\nfile_server\n}")
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, append(slices.Clone(test.want), "/zzz.html"))...)
			if strings.Contains(name, "no file") {
				s.Logged(harness.Unchanged)
				s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, append(slices.Clone(test.want), "/zzz.html"))...)
			}
		})
	}
}

// TestUnwilling warns where most pages, not half of them, want not to be listed, as those of a
// copy of another site.
func TestUnwilling(t *testing.T) {
	files := make(map[string]string)
	for i := range 10 {
		for name, most := range map[string]int{"most": 6, "half": 5} {
			head := ""
			if i < most {
				head = `<meta name="robots" content="noindex">`
			}
			files[fmt.Sprintf("%s/current/%d.html", name, i)] = harness.Whole(head, fmt.Sprint("text ", i))
		}
	}
	s := start(t, many(map[string]string{"most": "", "half": ""}), files)
	s.WantStatus(originOf("most")+"/sitemap.xml", 200)
	s.WantStatus(originOf("half")+"/sitemap.xml", 200)
	s.Refreshes(2)
	lines := s.LogLines("more than half of the pages are not listed", `"of":10`)
	if len(lines) != 1 || !strings.Contains(lines[0], `"level":"warn"`) || !strings.Contains(lines[0], `"pages":6`) || !strings.Contains(lines[0], `"first":["/0.html","/1.html","/2.html"]`) {
		t.Errorf("got %s", lines)
	}
}

// TestManyPages is a site of which no page is listed before it was fetched, not even at first.
func TestManyPages(t *testing.T) {
	const folders, each, perHidden, refused = 30, 100, 50, 7
	s := prepare(t, nil)
	hidden := 0
	for f := range folders {
		for i := range each {
			head := ""
			if i%perHidden == perHidden/2 {
				head = `<meta name="robots" content="noindex">`
				if f != refused {
					hidden++
				}
			}
			s.WriteRaw(fmt.Sprintf("site/f%02d/%03d.html", f, i), harness.Whole(head, fmt.Sprintf("page %d of folder %d", i, f)))
		}
	}
	s.Load(fmt.Sprintf("%s {\n root * {dir}/site\n sitemap {\n refresh 1s\n }\n respond /f%02d/* 403\n file_server\n}", harness.Local, refused))
	isListed := func(url string) bool {
		return !strings.Contains(url, fmt.Sprintf("/f%02d/", refused)) && !strings.HasSuffix(url, "25.html") && !strings.HasSuffix(url, "75.html")
	}
	good := (folders-1)*each - hidden
	var all []string
	s.Eventually(func() bool {
		all = s.Locs(harness.Local + "/sitemap.xml")
		if i := slices.IndexFunc(all, func(url string) bool { return !isListed(url) }); i >= 0 {
			t.Fatalf("%s is listed", all[i])
		}
		return len(all) == good
	}, s.SitemapLog)
	s.WantLeftOut(map[string]int{"noindex": hidden, "refused": each})
	s.WantLocs(harness.Local+"/sitemap.xml", all...)
}

// TestBeyondDepth: pages with too many links before them are counted and named, and listed once 'depth' allows them.
func TestBeyondDepth(t *testing.T) {
	s := prepare(t, nil)
	s.OpenAdmin()
	files := make(map[string]string)
	for i := range 8 {
		files[fmt.Sprintf("site/%d.html", i)] = linking(fmt.Sprint("page ", i), fmt.Sprintf("/%d.html", i+1))
	}
	files["site/index.html"] = linking("home", "/0.html")
	files["site/8.html"] = linking("the last")
	s.Write(files)
	caddyfile := func(links string) string {
		return harness.Local + " {\n root {dir}/site\n sitemap {\n refresh 1s\n" + links + "\n}\n file_server\n}"
	}
	s.Load(caddyfile("links {\n depth 3\n}"))
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/0.html", "/1.html", "/2.html"})...)
	for range 2 { // also once nothing changes
		s.WantLeftOut(map[string]int{"beyond depth": 1})
		s.Logged(harness.Unchanged)
	}
	s.Logged(harness.Refreshed+`"`, `"beyond depth":1`, `"beyond depth":["/3.html"]`)
	explained := s.Get("http://localhost:{admin}/sitemap/explain?url=" + url.QueryEscape(s.Expand(harness.Local)+"/3.html")).Text
	if !strings.Contains(explained, `"reason":"beyond depth"`) || !strings.Contains(explained, "Raise 'depth'") {
		t.Errorf("explained: %s", explained)
	}
	s.Load(caddyfile("links"))
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local,
		[]string{"/", "/0.html", "/1.html", "/2.html", "/3.html", "/4.html", "/5.html", "/6.html", "/7.html", "/8.html"})...)
	s.WantLeftOut(map[string]int{})
}
