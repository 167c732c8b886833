package caddytest

import (
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const (
	ownLanguages = `<xhtml:link rel="alternate" hreflang="en" href="{l}/a.html"/><xhtml:link rel="alternate" hreflang="de" href="/b.html"/>`
	ownImages    = `<image:image><image:loc>/a.png</image:loc><image:title>an A</image:title></image:image>`
	ownVideos    = `<video:video><video:tag>x</video:tag><video:duration>90</video:duration><video:live>perhaps</video:live>` +
		`<video:title>Cats &amp; dogs</video:title><video:thumbnail_loc>https://cdn.example.net/t.png?a=1&amp;b=2</video:thumbnail_loc>` +
		`<video:description><![CDATA[<b>A film</b>]]></video:description><video:unknown>u</video:unknown>` +
		`<video:tag>y</video:tag></video:video>`
	wantVideos = `<video:video><video:thumbnail_loc>https://cdn.example.net/t.png?a=1&amp;b=2</video:thumbnail_loc><video:title>Cats &amp; dogs</video:title>` +
		`<video:description>&lt;b&gt;A film&lt;/b&gt;</video:description><video:duration>90</video:duration></video:video>`
)

// ownUrlset is a generator's sitemap, in which {l} is the origin, of pairs of path and what its entry has besides.
func ownUrlset(s *server, pairs ...string) string {
	text := "<urlset>"
	for i := 0; i < len(pairs); i += 2 {
		text += "<url><loc>{l}" + pairs[i] + "</loc>" + pairs[i+1] + "</url>"
	}
	return s.Expand(strings.ReplaceAll(text+"</urlset>", "{l}", harness.Local))
}

// TestDroppedExtensions: what is not kept of a generator's sitemap, or of a list, is told once, with the count and the option.
func TestDroppedExtensions(t *testing.T) {
	for name, test := range map[string]struct{ extra, options, list string }{
		"languages":                  {ownLanguages, "", "own sitemap"},
		"images":                     {ownImages, "", "own sitemap"},
		"videos":                     {ownVideos, "", "own sitemap"},
		"videos beside what is kept": {ownLanguages + ownImages + ownVideos, "extensions alternates images", "own sitemap"},
		"images of a list":           {ownImages, "extensions videos\nurls /sitemap.xml", "a list"},
		"languages with crawl off":   {ownLanguages, "crawl off", "remove 'crawl off'"},
		"nothing that is not kept":   {ownLanguages, "extensions alternates", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, map[string]string{"root/a.html": page("a"), "root/b.html": page("b")})
			s.Write(map[string]string{"root/sitemap.xml": ownUrlset(s, "/a.html", test.extra, "/b.html", "")})
			s.Load(harness.Local + " {\nroot {dir}/root\nsitemap {\nrefresh 1s\n" + test.options + "\n}\nfile_server\n}")
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/a.html", harness.Local+"/b.html")
			if test.list != "" {
				s.Logged(`"level":"warn"`, test.list, "extensions", `"entries":1`)
				return
			}
			s.Crawled()
			if lines := s.LogLines(`"level":"warn"`, "extensions"); len(lines) > 0 {
				t.Errorf("the log warns: %q", lines)
			}
		})
	}
}

// wantInSitemap waits until the sitemap has some texts, in which {l} is the origin, and not others.
func wantInSitemap(s *server, has, hasNot []string) {
	s.T.Helper()
	texts := func(all []string) []string {
		return strings.Split(s.Expand(strings.ReplaceAll(strings.Join(all, "\n"), "{l}", harness.Local)), "\n")
	}
	text := ""
	s.Eventually(func() bool {
		text = s.Get(harness.Local + "/sitemap.xml").Text
		for _, one := range texts(has) {
			if !strings.Contains(text, one) {
				return false
			}
		}
		for _, one := range texts(hasNot) {
			if one != "" && strings.Contains(text, one) {
				return false
			}
		}
		return true
	}, func() string { return text + "\n" + s.SitemapLog() })
}

// TestOwnExtensions: what a generator's sitemap lists with its pages is listed, beside what the pages themselves name, and a
// change of it is.
func TestOwnExtensions(t *testing.T) {
	versions := `hreflang="en" href="{l}/a.html"/><xhtml:link rel="alternate" hreflang="de" href="{l}/b.html"/>`
	s := prepare(t, map[string]string{
		"root/a.html": page(`a <img src="/own.png">`), "root/b.html": page("b"), "root/c.html": page("c"),
		"root/own.png": "an image", "root/a.png": "an image",
	})
	oneWay := `<xhtml:link rel="alternate" hreflang="fr" href="{l}/a.html"/>`
	gone := `<image:image><image:loc>{l}/gone.png</image:loc></image:image>`
	s.Write(map[string]string{"root/sitemap.xml": ownUrlset(s,
		"/a.html", ownLanguages+gone+ownImages+ownVideos, "/b.html", ownLanguages, "/c.html", oneWay+`<video:video><video:title>no thumbnail</video:title></video:video>`)})
	caddyfile := "{\nsitemap {\nstate {dir}/state\n}\n}\n" + harness.Local + " {\nroot {dir}/root\nsitemap {\nrefresh 1s\nextensions alternates images videos\n}\nfile_server\n}"
	s.Load(caddyfile)
	images := "<image:image><image:loc>{l}/own.png</image:loc></image:image><image:image><image:loc>{l}/a.png</image:loc></image:image>"
	wantInSitemap(s, []string{versions + images + wantVideos, versions + "</url>"}, []string{"gone.png", `hreflang="fr"`, "no thumbnail"})
	s.Restart(caddyfile)
	s.Quietly(1)
	wantInSitemap(s, []string{versions + images + wantVideos}, []string{"gone.png"})
	s.Write(map[string]string{"root/sitemap.xml": ownUrlset(s,
		"/a.html", ownLanguages+ownImages+strings.Replace(ownVideos, "dogs", "birds", 1), "/b.html", ownImages)})
	wantInSitemap(s, []string{"Cats &amp; birds", "{l}/b.html</loc><image:image><image:loc>{l}/a.png<"}, []string{"dogs", `hreflang="de"`})
}

// TestExtensionsOfAnApplication: so are those of an application, which are also kept where it does not send its pages anew.
func TestExtensionsOfAnApplication(t *testing.T) {
	s := prepare(t, nil)
	xml := "Content-Type: text/xml\n\n"
	picture := "Content-Type: image/png\n\nan image"
	application := newWeb(map[string]string{
		"/": linking("front", "/a.html"), "/a.html": speaking("a", "en", "/a.html", "es", "/"), "/b.html": linking("b"), "/a.png": picture,
		"/sitemap.xml": xml + ownUrlset(s, "/a.html", ownLanguages+ownVideos, "/b.html", ownLanguages),
	})
	s.LoadApp(behind("extensions alternates images videos\nurls /sitemap.xml"), application.ServeHTTP)
	// The page names its own language itself, and the sitemap another one.
	both := `<xhtml:link rel="alternate" hreflang="en" href="{l}/a.html"/><xhtml:link rel="alternate" hreflang="de" href="{l}/b.html"/>`
	wantInSitemap(s, []string{both + wantVideos}, []string{`hreflang="es"`, "<image:image>"})
	application.respond("/sitemap.xml", xml+ownUrlset(s, "/a.html", ownLanguages+ownImages, "/b.html", ownLanguages))
	wantInSitemap(s, []string{both + "<image:image><image:loc>{l}/a.png</image:loc></image:image></url>"}, []string{"<video:video>"})
}
