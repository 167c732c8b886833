package evidence

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

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
			"not included": 1, "redirect": 1, "not found": 2, "refused": 1, "server error": 1, "not HTML": 1, "no document": 1, "noindex": 3,
			"refresh": 1, "canonical on another site": 1, "canonical is another page": 1, "duplicate": 1, "blocked by robots.txt": 1, "no incoming links": 1,
		})
		s.Logged("sitemap refreshed, nothing changed")
	}
	for _, line := range s.RefreshLines() {
		if line.Pages != len(want) {
			t.Errorf("got %+v, want %d pages", line, len(want))
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
		"elsewhere":         {files: map[string]string{"a.html": to("https://elsewhere.example/a.html")}},
		"another scheme":    {files: map[string]string{"a.html": to("https://localhost:{port}/a.html")}},
		"itself, elsewhere": {files: map[string]string{"a.html": to("http://www.localhost:{port}/a.html")}},
		"another page":      {files: map[string]string{"a.html": to("/b.html"), "b.html": harness.Whole("", "b")}, want: []string{"/b.html"}},
		"itself": {files: map[string]string{
			"a.html": to("/a.html"), "b.html": to("b.html"), "c.html": to("http://localhost:{port}/c.html"), "d.html": to("HTTP://LOCALHOST:{port}/d.html#top"), "e/index.html": to("/e/"),
		}, want: []string{"/a.html", "/b.html", "/c.html", "/d.html", "/e/"}},
		"no such page":                   {files: map[string]string{"a.html": to("/missing.html")}, want: []string{"/a.html"}},
		"a page that is no file":         {site: pretty, files: map[string]string{"a.html": to("/pretty"), "b.html": to("/pretty")}, want: []string{"/pretty"}},
		"a chain to one that is no file": {site: pretty, files: map[string]string{"a.html": to("/b.html"), "b.html": to("/pretty-chain")}, want: []string{"/pretty"}},
		"a hidden page that is no file":  {site: pretty, files: map[string]string{"a.html": to("/pretty-hidden")}, want: []string{"/a.html"}},
		"one that redirects back":        {site: pretty, files: map[string]string{"back.html": to("/back")}, want: []string{"/back.html"}},
		"its other name":                 {files: map[string]string{"a/index.html": to("/a/index.html"), "b/index.html": to("/b")}, want: []string{"/a/index.html", "/b/"}},
		"one that robots.txt forbids":    {files: map[string]string{"a.html": to("/x/b.html"), "x/b.html": harness.Whole("", "b"), "robots.txt": "User-agent: *\nDisallow: /x/\n"}, want: []string{"/a.html"}},
		"one outside of what is listed":  {settings: "exclude /b.html", files: map[string]string{"a.html": to("/b.html"), "b.html": harness.Whole("", "b")}, want: []string{"/a.html"}},
		"each other":                     {files: map[string]string{"a.html": to("/b.html"), "b.html": to("/a.html")}, want: []string{"/a.html"}},
		"no http URL, none, two of them": {files: map[string]string{"a.html": to("file:///a.html"), "b.html": to(""), "c.html": harness.Whole(`<link rel=canonical href=/a.html><link rel=canonical href=/b.html>`, "c")}, want: []string{"/a.html", "/b.html", "/c.html"}},
		"in a header":                    {site: `header /a.html Link "</b.html>; rel=\"canonical\""`, files: map[string]string{"a.html": harness.Whole("", "a"), "b.html": harness.Whole("", "b")}, want: []string{"/b.html"}},
		"ignored":                        {site: pretty, settings: "canonical ignore", files: map[string]string{"a.html": to("/b.html"), "b.html": harness.Whole("", "b"), "c.html": to("https://elsewhere.example/"), "d.html": to("/pretty")}, want: []string{"/a.html", "/b.html", "/c.html", "/d.html"}},
		"with an entity in it":           {site: `respond /d "x"`, files: map[string]string{"a.html": to("/b.html?x=1&amp;y=2"), "b.html": harness.Whole("", "b")}, want: []string{"/b.html", "/b.html?x=1&y=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			for name, content := range test.files {
				s.Write(map[string]string{name: s.Expand(content)})
			}
			s.Write(map[string]string{"zzz.html": harness.Whole("", "always there")})
			if err := s.Load(harness.Local + " {\n root * {dir}\n sitemap {\n refresh 1s\n " + test.settings + "\n}\n" + test.site + "\nfile_server\n}"); err != nil {
				t.Fatal(err)
			}
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, append(slices.Clone(test.want), "/zzz.html"))...)
			if strings.Contains(name, "no file") {
				s.Logged("sitemap refreshed, nothing changed")
				s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, append(slices.Clone(test.want), "/zzz.html"))...)
			}
		})
	}
}

// TestUnwilling warns where most pages want not to be listed, as those of a copy of
// another site.
func TestUnwilling(t *testing.T) {
	for name, test := range map[string]struct {
		head string
		of   int // pages of ten that say it
		want bool
	}{
		"canonicals":           {`<link rel="canonical" href="https://www.example.com/">`, 6, true},
		"noindex":              {`<meta name="robots" content="noindex">`, 6, true},
		"half of them":         {`<meta name="robots" content="noindex">`, 5, false},
		"canonicals of itself": {`<link rel="canonical" href="/9.html">`, 9, false},
	} {
		t.Run(name, func(t *testing.T) {
			files := make(map[string]string)
			for i := range 10 {
				head := ""
				if i < test.of {
					head = test.head
				}
				files[fmt.Sprintf("%d.html", i)] = harness.Whole(head, fmt.Sprint("text ", i))
			}
			s := start(t, harness.Local+" {\n root * {dir}\n sitemap {\n refresh 1s\n }\n file_server\n}", files)
			s.Logged("sitemap refreshed")
			if name == "noindex" {
				s.Logged("nothing changed")
			}
			lines := s.LogLines("more than half of the pages are not listed")
			switch {
			case !test.want && len(lines) > 0:
				t.Errorf("got %s", lines)
			case test.want && (len(lines) != 1 || !strings.Contains(lines[0], `"level":"warn"`) || !strings.Contains(lines[0], `"pages":6,"of":10`) || !strings.Contains(lines[0], `"first":["/0.html","/1.html","/2.html"]`)):
				t.Errorf("got %s", lines)
			}
		})
	}
}

func TestOrphans(t *testing.T) {
	files := map[string]string{
		"index.html":   harness.Whole("", `<a href="a.html">a</a> <a href="/b/index.html">b</a> <a rel=nofollow href="/d.html">d</a>`),
		"a.html":       harness.Whole("", `a <a href="a.html">itself</a> <a href="c.html#part">c</a>`),
		"b/index.html": harness.Whole("", "b"), "c.html": harness.Whole("", "c"), "d.html": harness.Whole("", "d"), "e.html": harness.Whole("", `e <a href="e.html">itself</a>`),
		"f.html": harness.Whole("", "f"), "g.html": harness.Whole("", "g"),
	}
	const message = "some listed pages have no incoming links"
	site := func(settings string) string {
		return harness.Local + " {\n root * {dir}\n sitemap {\n refresh 1s\n " + settings + "\n }\n file_server\n}"
	}
	t.Run("list", func(t *testing.T) {
		s := start(t, site(""), files)
		s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/a.html", "/b/", "/c.html", "/d.html", "/e.html", "/f.html", "/g.html"})...)
		s.Logged(message, `"pages":4`, `"first":["/d.html","/e.html","/f.html"]`)
		n := len(s.RefreshLines())
		s.Write(map[string]string{"c.html": "another text"}) // a refresh that reads, and lists anew
		s.Eventually(func() bool { return len(s.RefreshLines()) >= n+2 }, s.SitemapLog)
		if lines := s.LogLines(message); len(lines) != 1 {
			t.Errorf("it is said %d times: %s", len(lines), lines)
		}
		s.Write(map[string]string{"c.html": harness.Whole("", `c <a href="/f.html">f</a>`)})
		s.Logged(message, `"pages":3`, `"first":["/d.html","/e.html","/g.html"]`)
	})
	t.Run("omit", func(t *testing.T) {
		s := start(t, site("orphans omit"), files)
		s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/a.html", "/b/", "/c.html"})...)
		s.WantLeftOut(map[string]int{"no incoming links": 4})
		if lines := s.LogLines(message); len(lines) > 0 {
			t.Errorf("got %s", lines)
		}
		s.Write(map[string]string{"c.html": harness.Whole("", `c <a href="/f.html">f</a>`)})
		s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/a.html", "/b/", "/c.html", "/f.html"})...)
	})
}

// utf16Text is a text with a byte order mark.
func utf16Text(text string, littleEndian bool) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		if littleEndian {
			unit = unit<<8 | unit>>8
		}
		b = append(b, byte(unit>>8), byte(unit))
	}
	return string(b)
}

// badPages are pages of any quality, by whether they are to be listed.
func badPages() (listed, left map[string]string) {
	const noindex = `<meta name="robots" content="noindex">`
	attributes := func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, ` data-%d="%d"`, i, i)
		}
		return b.String()
	}
	var links strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&links, `<a href="/no-such-page-%d.html?%[1]d">%[1]d</a>`, i)
	}
	listed = map[string]string{
		"endless":             "<!doctype html><title>x</title>" + strings.Repeat("<p>and so on ", 300_000),
		"endless-tag":         "<!doctype html><title>x</title><p class=\"" + strings.Repeat("x", 3<<20),
		"endless-comment":     "<!doctype html><title>x</title><!-- " + noindex + strings.Repeat("x", 1<<20),
		"endless-title":       "<!doctype html><title>x" + noindex,
		"deep":                "<!doctype html><title>x</title>" + strings.Repeat("<div>", 200_000) + "deep",
		"no-head":             "<!doctype html><p>text",
		"title-alone":         "<title>x</title>",
		"attributes":          "<!doctype html><title>x</title><body" + attributes(1<<20) + "><p>attributes",
		"nul":                 "<!doctype html><title>x\x00</title><p>a\x00b\x00",
		"nul-in-tag":          "<!doctype html><title>x</title><me\x00ta name=robots content=noindex>text",
		"links":               harness.Whole("", links.String()),
		"entities":            harness.Whole("", "&#xFFFFFFFF; &nosuch; &amp &#; &#0; &"),
		"latin-1":             "<!doctype html><meta charset=utf-8><title>caf\xe9</title>\xff\xfe\x80",
		"unknown-charset":     "<!doctype html><meta charset=x-nothing><title>x</title>unknown charset",
		"comment":             harness.Whole("<!--"+noindex+"-->", "comment"),
		"script":              harness.Whole("<script>document.write('"+noindex+"')</script>", "script"),
		"style":               harness.Whole("<style>"+noindex+"</style>", "style"),
		"template":            harness.Whole("<template>"+noindex+"</template>", "template"),
		"textarea":            harness.Whole("", "<textarea>"+noindex+"</textarea>"),
		"content-missing":     harness.Whole(`<meta name="robots">`, "content missing"),
		"keywords":            harness.Whole(`<meta name="keywords" content="none">`, "keywords"),
		"description":         harness.Whole(`<meta name="description" content="noindex">`, "description"),
		"noindexed":           harness.Whole(`<meta name="robots" content="noindexed, no-index">`, "no such word"),
		"news":                harness.Whole(`<meta name="googlebot-news" content="noindex">`, "news"),
		"indexed":             harness.Whole(`<meta name="robots" content="index, all, nofollow">`, "index"),
		"refresh-nonsense":    harness.Whole(`<meta http-equiv="refresh" content="soon"><meta http-equiv="refresh" content="0; url=">`, "refresh"),
		"refresh-js":          harness.Whole(`<meta http-equiv="refresh" content="0; url=javascript:alert(1)">`, "refresh"),
		"canonical-nonsense":  harness.Whole(`<link rel="canonical" href="http://[::1">`, "canonical"),
		"canonical-in-body":   harness.Whole("", `canonical <link rel="canonical" href="https://elsewhere.example/">`),
		"unicode-\u00fc-name": harness.Whole("", "name"),
	}
	left = map[string]string{
		"no-html":             "just a text",
		"image":               "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00",
		"nuls":                strings.Repeat("\x00", 4096),
		"blank":               " \n\t ",
		"part":                "<p>a part</p>",
		"part-with-icon":      "<svg><title>icon</title></svg><p>a part",
		"part-with-comment":   "<!-- <!doctype html><title>x</title> --><p>a part",
		"json":                `{"title": "<title>"}`[:12],
		"many-attributes":     "<!doctype html><title>x</title><meta" + attributes(1<<20) + ` name="robots" content="noindex">text`,
		"after-attributes":    "<!doctype html><title>x</title><meta" + attributes(1<<20) + ">" + noindex + "text",
		"upper-case":          `<!DOCTYPE HTML><HTML><HEAD><TITLE>X</TITLE><META NAME="ROBOTS" CONTENT="NOINDEX">`,
		"body":                harness.Whole("", "body "+noindex),
		"several":             harness.Whole(`<meta name="robots" content="index"><meta name="robots" content="noindex">`, "several"),
		"none":                harness.Whole(`<meta name="robots" content="none">`, "none"),
		"listed-with-others":  harness.Whole(`<meta name="robots" content="max-snippet:0,NoIndex , nofollow">`, "with others"),
		"unquoted":            "<!doctype html><title>x</title><meta content=noindex name=robots>text",
		"no-head-noindex":     "<!doctype html><title>x</title>" + noindex + "<p>no head",
		"unavailable":         harness.Whole(`<meta name="robots" content="unavailable_after: 2001-01-01">`, "unavailable"),
		"utf-16-le":           utf16Text(harness.Whole(noindex, "little endian"), true),
		"utf-16-be":           utf16Text(harness.Whole(noindex, "big endian"), false),
		"bom":                 "\ufeff" + harness.Whole(noindex, "bom"),
		"shift-jis":           "<!doctype html><meta charset=shift_jis><title>\x83y\x81[\x83W</title>" + noindex,
		"wrong-charset":       "<!doctype html><meta charset=x-nothing><title>\xff\xfe</title>" + noindex,
		"nul-noindex":         "<!doctype html><title>\x00</title>\x00" + "<p>" + "<title>x</title>" + "<meta http-equiv=refresh content='0;url=https://elsewhere.example/'>",
		"refresh-in-body":     harness.Whole("", `<meta http-equiv="refresh" content="0; URL='https://elsewhere.example/'">`),
		"canonical-elsewhere": harness.Whole(`<link href=https://elsewhere.example/x rel="CANONICAL">`, "elsewhere"),
	}
	return listed, left
}

func TestBadPages(t *testing.T) {
	listed, left := badPages()
	files := make(map[string]string)
	var want []string
	for name, content := range listed {
		files["site/"+name+".html"] = content
		want = append(want, harness.Local+"/"+strings.ReplaceAll(name, "ü", "%C3%BC")+".html")
	}
	for name, content := range left {
		if listed[name] != "" {
			t.Fatalf("%s is given twice", name)
		}
		files["site/"+name+".html"] = content
	}
	slices.Sort(want)
	s := prepare(t, nil)
	for name, content := range files {
		s.WriteRaw(name, content)
	}
	if err := s.Load(harness.Local + " {\n root * {dir}/site\n sitemap\n file_server\n}"); err != nil {
		t.Fatal(err)
	}
	got := s.Locs(harness.Local + "/sitemap.xml")
	for _, url := range want {
		if !slices.Contains(got, s.Expand(url)) {
			t.Errorf("%s is not listed", url)
		}
	}
	for _, url := range got {
		if !slices.ContainsFunc(want, func(w string) bool { return s.Expand(w) == url }) {
			t.Errorf("%s is listed", url)
		}
	}
	if lines := s.LogLines("panic"); len(lines) > 0 {
		t.Errorf("got %s", lines)
	}
	s.Logged("sitemap refreshed")
	line := s.RefreshLines()[0]
	n := 0
	for _, count := range line.Reasons() {
		n += count
	}
	if n != len(left) {
		t.Errorf("got %+v, want %d left out for a reason", line, len(left))
	}
}

// TestManyPages is a site of which no page is listed before it was fetched, not even at first.
func TestManyPages(t *testing.T) {
	const folders, each, perHidden, refused = 30, 350, 50, 7
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
	if err := s.Load(fmt.Sprintf("%s {\n root * {dir}/site\n sitemap {\n refresh 1s\n }\n respond /f%02d/* 403\n file_server\n}", harness.Local, refused)); err != nil {
		t.Fatal(err)
	}
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
