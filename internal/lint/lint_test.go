package lint

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func urlsetOf(locs ...string) string {
	return strings.Replace(open09, "\n", "", 1) + "\n<url><loc>" + strings.Join(locs, "</loc></url>\n<url><loc>") + "</loc></url></urlset>"
}

// inFolder checks files, with {d} in targets for their folder and in the findings.
func inFolder(t *testing.T, files map[string]string, o Options, targets ...string) ([]string, Summary) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range targets {
		targets[i] = filepath.FromSlash(strings.ReplaceAll(targets[i], "{d}", filepath.ToSlash(dir)))
	}
	findings, s := checked(t, o, targets...)
	for i := range findings {
		findings[i] = filepath.ToSlash(strings.TrimPrefix(findings[i], dir+string(filepath.Separator)))
	}
	return findings, s
}

func TestFiles(t *testing.T) {
	const home = "https://example.com/"
	page, a, b := urlsetOf(home), urlsetOf(home+"a"), urlsetOf(home+"b")
	type files = map[string]string
	for name, test := range map[string]struct {
		files     files
		base      string
		targets   string
		want      string
		documents int
		unchecked int
	}{
		"no such file, and another": {files{"x.xml": page}, "", "{d}/nosuch.xml {d}/x.xml", "nosuch.xml:0 error document-unread", 1, 1},
		"robots.txt":                {files{"robots.txt": "Sitemap: https://example.com/x.xml\n", "x.xml": page}, "", "{d}/robots.txt", "", 1, 0},
		"base":                      {files{"x.xml": urlsetOf(home+"docs/a", home+"b")}, home + "docs/", "{d}/x.xml", "x.xml:3 error loc-outside-scope", 1, 0},
		"index":                     {files{"i.xml": indexOf(home+"a.xml", home+"b.xml.gz"), "a.xml": a, "b.xml.gz": zipped(b)}, "", "{d}/i.xml", "", 3, 0},
		"index beside its children": {files{"s/i.xml": indexOf(home + "t/a.xml"), "s/a.xml": urlsetOf(home + "t/a")}, "", "{d}/s/i.xml", "", 2, 0},
		"child elsewhere":           {files{"i.xml": indexOf(home+"a.xml", home+"b.xml"), "a.xml": a}, "", "{d}/i.xml", "i.xml:3 warning document-missing", 2, 0},
		"index of an index":         {files{"i.xml": indexOf(home + "a.xml"), "a.xml": indexOf(home + "b.xml")}, "", "{d}/i.xml", "i.xml:2 error index-in-index", 2, 0},
		"index of itself":           {files{"i.xml": indexOf(home+"i.xml", home+"a.xml"), "a.xml": a}, "", "{d}/i.xml", "i.xml:2 error index-in-index", 2, 0},
		"sitemaps of two indexes":   {files{"i.xml": indexOf(home+"a.xml", home+"b.xml"), "j.xml": indexOf(home + "b.xml"), "a.xml": a, "b.xml": b}, "", "{d}/i.xml {d}/j.xml", "", 4, 0},
		"index that leads out":      {files{"in/i.xml": indexOf(home+"../a.xml", home+"%2e%2e/a.xml"), "a.xml": a}, "", "{d}/in/i.xml", "in/i.xml:3 warning duplicate|in/i.xml:2 warning document-missing|in/i.xml:3 warning document-missing", 1, 0},
		"folder": {files{
			"robots.txt": "Sitemap: https://example.com/sitemap.xml\n", "sitemap.xml": indexOf(home+"s/sitemap-a.xml", home+"pages.xml"), "s/sitemap-a.xml": urlsetOf(home + "s/a"),
			"pages.xml": b, "sitemap.xml.gz": zipped(b), "feed.xml": "<feed/>", "index.html": "<urlset", "config.xml": "<config/>",
		}, "", "{d}", "", 3, 0},
		"folder with base": {files{"sitemap.xml": indexOf(home+"docs/sitemap%20a.xml", home+"docs/sitemap-c.xml"), "sitemap a.xml": urlsetOf(home + "docs/a")},
			home + "docs/", "{d}", "sitemap.xml:3 error document-missing", 2, 0},
		"folder without a sitemap":        {files{"a.html": "a"}, "", "{d}", "{d}:0 error document-missing", 0, 1},
		"robots.txt without":              {files{"robots.txt": "User-agent: *\nDisallow: /aSitemap: https://example.com/x.xml"}, "", "{d}", "robots.txt:0 warning robots-no-sitemap", 0, 0},
		"robots.txt with a path":          {files{"robots.txt": "Sitemap: /x.xml"}, "", "{d}", "robots.txt:0 error robots-url", 0, 0},
		"robots.txt of HTML":              {files{"robots.txt": "<!doctype html><title>404</title>"}, "", "{d}", "robots.txt:0 error html|robots.txt:0 warning robots-no-sitemap", 0, 0},
		"robots.txt of what is not there": {files{"robots.txt": "Sitemap: https://example.com/x.xml\n"}, "", "{d}", "robots.txt:0 warning document-missing", 0, 0},
		"an index of feeds":               {files{"i.xml": indexOf(home+"a.atom", home+"b.rss"), "a.atom": "<feed xmlns='http://www.w3.org/2005/Atom'/>", "b.rss": "<rss/>"}, "", "{d}/i.xml", "", 3, 0},
		"XML named .gz":                   {files{"x.xml.gz": page}, "", "{d}/x.xml.gz", "x.xml.gz:0 error not-gzip", 1, 0},
		"a list named .gz, in a folder":   {files{"sitemap.TXT.GZ": home}, "", "{d}", "sitemap.TXT.GZ:0 error not-gzip", 1, 0},
		"HTML named .gz":                  {files{"x.xml.gz": "<!doctype html>"}, "", "{d}/x.xml.gz", "x.xml.gz:0 error html", 1, 0},
		"gzip not named .gz":              {files{"x.xml": zipped(page)}, "", "{d}/x.xml", "", 1, 0},
		"news":                            {files{"a.xml": set(onePage), "n.xml": newsSet(onePage), "m.xml": newsSet(onePage)}, "", "{d}/a.xml {d}/n.xml {d}/m.xml", "m.xml:2 warning duplicate-elsewhere", 3, 0},
		"duplicates":                      {files{"a.xml": page, "b.xml": page, "i.xml": indexOf(home)}, "", "{d}/a.xml {d}/b.xml {d}/i.xml", "b.xml:2 warning duplicate-elsewhere|i.xml:2 warning document-missing", 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			findings, s := inFolder(t, test.files, Options{BaseURL: test.base}, strings.Fields(test.targets)...)
			got := strings.Join(findings, "|")
			if strings.HasPrefix(test.want, "{d}") && len(findings) == 1 {
				got = "{d}" + got[strings.LastIndex(got, ":"):]
			}
			if got != test.want || s.Documents != test.documents || s.Unchecked != test.unchecked {
				t.Errorf("got %q, %+v, want %q, %d documents, %d unchecked", got, s, test.want, test.documents, test.unchecked)
			}
		})
	}
}

// web is a server of answers by path, with {s} in them for its own address.
type web struct {
	*httptest.Server
	answers map[string]http.HandlerFunc
}

func newWeb(t *testing.T, answers map[string]http.HandlerFunc) *web {
	t.Helper()
	others := goleak.IgnoreCurrent()
	w := &web{answers: answers}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if answer := w.answers[r.URL.RequestURI()]; answer != nil {
			answer(rw, r)
			return
		}
		http.NotFound(rw, r)
	}))
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
		if err := goleak.Find(others); err != nil {
			t.Errorf("goroutines outlive the check: %v", err)
		}
	})
	return w
}

// sends answers 200 with headers, as pairs.
func sends(body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "{s}", "http://"+r.Host))
	}
}

func sendsXML(body string) http.HandlerFunc { return sends(body, "Content-Type", "application/xml") }

func sendsPage(head string, headers ...string) http.HandlerFunc {
	return sends("<!doctype html><title>a page</title>"+head, append([]string{"Content-Type", "text/html"}, headers...)...)
}

func redirects(status int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) }
}

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// hangs answers nothing, or a body that does not go on.
func hangs(begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if begin != "" {
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// check checks targets with {s} for the server's address, and returns the findings with it.
func (w *web) check(t *testing.T, o Options, targets ...string) (string, Summary) {
	t.Helper()
	for i := range targets {
		targets[i] = strings.ReplaceAll(targets[i], "{s}", w.URL)
	}
	o.UserAgent, o.Rate = "caddy-sitemap (a bot)", 1000
	findings, s := checked(t, o, targets...)
	return strings.ReplaceAll(strings.Join(findings, "|"), w.URL, "{s}"), s
}

// patiently runs a test of what hangs with longer and longer timeouts, as a busy machine may take long for what does not.
func patiently(t *testing.T, test func(timeout time.Duration) (failed string)) {
	t.Helper()
	for timeout := 300 * time.Millisecond; ; timeout *= 10 {
		if failed := test(timeout); failed == "" {
			return
		} else if timeout > 20*time.Second {
			t.Fatal(failed)
		}
	}
}

func TestURLs(t *testing.T) {
	type site = map[string]http.HandlerFunc
	one := sendsXML(urlsetOf("{s}/"))
	plain := []string{"Content-Type", "text/plain"}
	for name, test := range map[string]struct {
		site      site
		target    string
		want      string
		unchecked int
	}{
		"site":                  {site{"/sitemap.xml": one}, "{s}", "", 0},
		"document":              {site{"/a.xml?b": one}, "{s}/a.xml?b#top", "", 0},
		"gone":                  {nil, "{s}/a.xml", "{s}/a.xml:0 error document-status", 0},
		"ftp":                   {nil, "ftp://example.com/", "ftp://example.com/:0 error document-unreachable", 1},
		"no URL":                {nil, "http://example.com/#%zz", "http://example.com/#%zz:0 error document-unreachable", 1},
		"robots.txt":            {site{"/robots.txt": sends("Sitemap: {s}/a.xml\nSitemap: {s}/b.xml", plain...), "/a.xml": one}, "{s}", "{s}/robots.txt:0 error document-status", 0},
		"feed beside a sitemap": {site{"/robots.txt": sends("Sitemap: {s}/a.xml\nSitemap: {s}/a.atom", plain...), "/a.xml": one, "/a.atom": sends("<feed xmlns='http://www.w3.org/2005/Atom'/>", "Content-Type", "application/atom+xml")}, "{s}/", "", 0},
		"no robots.txt":         {nil, "{s}/robots.txt", "{s}/robots.txt:0 error robots-status", 0},
		"failing robots.txt":    {site{"/robots.txt": answers(500), "/sitemap.xml": one}, "{s}", "{s}/robots.txt:0 error robots-unreachable", 1},
		"hanging robots.txt":    {site{"/robots.txt": hangs(""), "/sitemap.xml": one}, "{s}", "{s}/robots.txt:0 error robots-unreachable", 1},
		"index":                 {site{"/sitemap.xml": sendsXML(indexOf("{s}/a.xml", "{s}/b.xml")), "/a.xml": one, "/b.xml": answers(403)}, "{s}", "{s}/sitemap.xml:3 error document-status", 0},
		"index of an index":     {site{"/sitemap.xml": sendsXML(indexOf("{s}/a.xml")), "/a.xml": sendsXML(indexOf("{s}/b.xml"))}, "{s}", "{s}/sitemap.xml:2 error index-in-index", 0},
		"index of itself":       {site{"/sitemap.xml": sendsXML(indexOf("{s}/sitemap.xml"))}, "{s}", "{s}/sitemap.xml:2 error index-in-index", 0},
		"hanging":               {site{"/a.xml": hangs("")}, "{s}/a.xml", "{s}/a.xml:0 error document-unreachable", 1},
		"stopping":              {site{"/a.xml": hangs("<urlset>")}, "{s}/a.xml", "{s}/a.xml:1 error namespace|{s}/a.xml:1 error document-unread|{s}/a.xml:0 warning content-type", 1},
		"redirected":            {site{"/a.xml": redirects(301, "/b.xml"), "/b.xml": one}, "{s}/a.xml", "{s}/a.xml:0 warning document-redirect", 0},
		"redirected in a loop":  {site{"/a.xml": redirects(302, "/a.xml")}, "{s}/a.xml", "{s}/a.xml:0 error document-unreachable", 1},
		"redirected to a file":  {site{"/a.xml": redirects(302, "file:///etc/passwd")}, "{s}/a.xml", "{s}/a.xml:0 error document-unreachable", 1},
		"XML as HTML":           {site{"/a.xml": sends(urlsetOf("{s}/"), "Content-Type", "text/html")}, "{s}/a.xml", "{s}/a.xml:0 error content-type", 0},
		"gzip":                  {site{"/a.xml.gz": sends(zipped("http://a.example/"), "Content-Type", "application/gzip")}, "{s}/a.xml.gz", "{s}/a.xml.gz:1 error loc-outside-scope", 0},
		"gzip, encoded":         {site{"/a.xml.gz": sends(zipped("http://a.example/"), "Content-Type", "application/xml", "Content-Encoding", "gzip")}, "{s}/a.xml.gz", "{s}/a.xml.gz:1 error loc-outside-scope", 0},
		"XML named .gz":         {site{"/a.xml.gz?b": one}, "{s}/a.xml.gz?b", "{s}/a.xml.gz?b:0 error not-gzip", 0},
		"XML .gz, encoded":      {site{"/a.xml.gz": sends(zipped(urlsetOf("http://a.example/")), "Content-Type", "application/xml", "Content-Encoding", "gzip")}, "{s}/a.xml.gz", "{s}/a.xml.gz:2 error loc-outside-scope", 0},
		"redirected to gzip":    {site{"/a.xml": redirects(301, "/b.xml.gz"), "/b.xml.gz": one}, "{s}/a.xml", "{s}/a.xml:0 warning document-redirect|{s}/a.xml:0 error not-gzip", 0},
		"no gzip":               {site{"/a.xml": sends(urlsetOf("{s}/"), "Content-Type", "application/xml", "Content-Encoding", "gzip")}, "{s}/a.xml", "{s}/a.xml:0 error document-unread", 1},
	} {
		t.Run(name, func(t *testing.T) {
			patiently(t, func(timeout time.Duration) (failed string) {
				got, s := newWeb(t, test.site).check(t, Options{Timeout: timeout}, test.target)
				if got != test.want || s.Unchecked != test.unchecked {
					failed = fmt.Sprintf("got %q, %+v, want %q, %d unchecked", got, s, test.want, test.unchecked)
				}
				return failed
			})
		})
	}
	w := newWeb(t, nil)
	w.Close()
	if got, s := w.check(t, Options{}, "{s}/sitemap.xml"); got != "{s}/sitemap.xml:0 error document-unreachable" || s.Unchecked != 1 {
		t.Errorf("a server that is not there: got %q, %+v", got, s)
	}
}

func TestPages(t *testing.T) {
	pages := []struct {
		path   string
		answer http.HandlerFunc
		want   string
	}{
		{"/good", sendsPage(`<link rel="canonical" href="{s}/good">`), ""},
		{"/manual.pdf", sends("%PDF", "Content-Type", "application/pdf"), ""},
		{"/a%20b?c=d&amp;e", nil, "error page-status"},
		{"/moved", redirects(301, "/good"), "error page-redirect"},
		{"/failing", answers(500), "error page-status"},
		{"/meta", sendsPage(`<meta name="robots" content="noindex">`), "error page-noindex"},
		{"/noindex.pdf", sends("%PDF", "Content-Type", "application/pdf", "X-Robots-Tag", "none"), "error page-noindex"},
		{"/on", sendsPage(`<meta http-equiv="refresh" content="0; url=/good">`), "error page-refresh"},
		{"/other", sendsPage(`<link rel="canonical" href="/good">`), "error page-canonical"},
		{"/linked", sendsPage("", "Link", `</good>; rel="canonical"`), "error page-canonical"},
		{"/dead", sendsPage(`<link rel="canonical" href="/nosuch">`), "warning page-canonical"},
		{"/back/", sendsPage(`<link rel="canonical" href="/back">`), "warning page-canonical"},
		{"/away", sendsPage(`<link rel="canonical" href="http://nosuch.invalid/">`), "warning page-canonical"},
		{"/negotiated", func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept"), "text/html") {
				w.WriteHeader(http.StatusNotAcceptable)
				return
			}
			sendsPage("")(w, r)
		}, ""},
		{"/secret", sendsPage(""), "warning page-disallowed"},
		{"/ours", func(http.ResponseWriter, *http.Request) { t.Error("robots.txt was not heeded") }, ""},
		{"/slow", hangs(""), "error page-unreachable"},
		{"/slower", hangs("<!doctype html>"), "error page-unreachable"},
	}
	site := map[string]http.HandlerFunc{
		"/robots.txt": sends("User-agent: Googlebot\nDisallow: /secret\n\nUser-agent: caddy-sitemap\nDisallow: /ours\n\nUser-agent: *\nDisallow: /\n", "Content-Type", "text/plain"),
		"/back":       redirects(301, "/back/"),
	}
	var locs, want []string
	for i, p := range pages {
		site[strings.ReplaceAll(p.path, "&amp;", "&")] = p.answer
		if locs = append(locs, "{s}"+p.path); p.want != "" {
			want = append(want, fmt.Sprintf("{s}/sitemap.xml:%d %s", i+2, p.want))
		}
	}
	site["/sitemap.xml"] = sendsXML(urlsetOf(locs...))
	w := newWeb(t, site)
	patiently(t, func(timeout time.Duration) (failed string) {
		got, s := w.check(t, Options{Sample: 100, Timeout: timeout}, "{s}/sitemap.xml")
		if got != strings.Join(want, "|") || s.Unchecked != 2 {
			failed = fmt.Sprintf("got %s\nwant %s\n%+v", strings.ReplaceAll(got, "|", "\n"), strings.Join(want, "\n"), s)
		}
		return failed
	})
	if got, s := w.check(t, Options{}, "{s}/sitemap.xml"); got != "" || s.Fetched != 0 {
		t.Errorf("without a sample: got %q, %+v", got, s)
	}
}

// TestPagesLeftAlone is that a server that wants no more requests gets none; its pages could not be checked.
func TestPagesLeftAlone(t *testing.T) {
	unreachable := "{s}/sitemap.xml:%d error page-unreachable"
	for name, test := range map[string]struct {
		site map[string]http.HandlerFunc
		want string
	}{
		"page":               {map[string]http.HandlerFunc{"/1": answers(429)}, "{s}/sitemap.xml:2 error page-status|" + fmt.Sprintf(unreachable, 3)},
		"robots.txt":         {map[string]http.HandlerFunc{"/robots.txt": answers(503)}, fmt.Sprintf(unreachable+"|"+unreachable, 2, 3)},
		"hanging robots.txt": {map[string]http.HandlerFunc{"/robots.txt": hangs("User-agent: *\n")}, fmt.Sprintf(unreachable+"|"+unreachable, 2, 3)},
	} {
		test.site["/sitemap.xml"] = sendsXML(urlsetOf("{s}/1", "{s}/2"))
		patiently(t, func(timeout time.Duration) (failed string) {
			isAlone := true
			test.site["/2"] = func(http.ResponseWriter, *http.Request) { isAlone = false }
			if got, s := newWeb(t, test.site).check(t, Options{Sample: 9, Timeout: timeout}, "{s}/sitemap.xml"); got != test.want || s.Unchecked == 0 || !isAlone {
				failed = fmt.Sprintf("%s: got %q, %+v, want %q, left alone: %t", name, got, s, test.want, isAlone)
			}
			return failed
		})
	}
}

// TestSample is that a sample has the size that was asked for, is the same the next time, and is of all pages.
func TestSample(t *testing.T) {
	var locs []string
	for i := range 200 {
		locs = append(locs, fmt.Sprintf("http://a.example/%d", i))
	}
	draw := func() []place {
		c := newChecker(t.Context(), Options{Sample: 20, Stdin: strings.NewReader(urlsetOf(locs...))})
		c.target("-")
		return c.drawn
	}
	first := draw()
	if len(first) != 20 || !slices.Equal(first, draw()) {
		t.Errorf("got %d pages, or others the second time", len(first))
	}
	if late := slices.IndexFunc(first, func(p place) bool { return p.line > 100 }); late < 0 {
		t.Errorf("got none of the second half: %v", first)
	}
}

// TestSampleOfValid is that each valid page is as likely in a sample as any other, whatever invalid ones are between them.
func TestSampleOfValid(t *testing.T) {
	const draws = 200
	document := urlsetOf("http://a.example/first", strings.Repeat("x</loc></url>\n<url><loc>", 98)+"http://a.example/last")
	last := 0
	for seed := range uint64(draws) {
		c := newChecker(t.Context(), Options{Sample: 1, Stdin: strings.NewReader(document), Report: func(Finding) {}})
		c.random = rand.New(rand.NewPCG(seed, 0))
		c.target("-")
		if len(c.drawn) == 1 && c.drawn[0].url == "http://a.example/last" {
			last++
		}
	}
	if last < draws*4/10 || last > draws*6/10 {
		t.Errorf("of %d samples of two pages, %d are the last one", draws, last)
	}
}

// TestFetchedChildren is that what a folder lacks is fetched with a sample only.
func TestFetchedChildren(t *testing.T) {
	w := newWeb(t, map[string]http.HandlerFunc{"/b.xml": sendsXML(urlsetOf("{s}/b")), "/b": sendsPage("")})
	files := map[string]string{"sitemap.xml": indexOf(w.URL + "/b.xml")}
	if got, _ := inFolder(t, files, Options{BaseURL: w.URL + "/"}, "{d}"); len(got) != 1 || got[0] != "sitemap.xml:2 error document-missing" {
		t.Errorf("got %q", got)
	}
	if got, s := inFolder(t, files, Options{BaseURL: w.URL + "/", Sample: 9, Rate: 1000, UserAgent: "a"}, "{d}"); len(got) != 0 || s.Fetched != 1 {
		t.Errorf("with a sample: got %q, %+v", got, s)
	}
	if got, s := inFolder(t, files, Options{Sample: 9, Rate: 1000, UserAgent: "a"}, "{d}"); len(got) != 1 || got[0] != "sitemap.xml:2 error document-unreachable" || s.Unchecked != 1 {
		t.Errorf("of a private address that nobody named: got %q, %+v", got, s)
	}
}

// TestPrivate is that a stranger's document has nobody asked but strangers.
func TestPrivate(t *testing.T) {
	inside := newWeb(t, map[string]http.HandlerFunc{"/": func(http.ResponseWriter, *http.Request) { t.Error("the inside was asked") }})
	w := newWeb(t, map[string]http.HandlerFunc{
		"/robots.txt": sends("Sitemap: "+inside.URL+"/\n", "Content-Type", "text/plain"),
		"/to.xml":     redirects(302, inside.URL+"/"),
		"/of.xml":     sendsXML(urlsetOf(inside.URL + "/")),
	})
	for target, want := range map[string]string{
		"{s}": "{s}/robots.txt:0 error document-unreachable", "{s}/to.xml": "{s}/to.xml:0 error document-unreachable",
		"{s}/of.xml": "{s}/of.xml:2 error loc-outside-scope|{s}/of.xml:2 error page-unreachable",
	} {
		if got, _ := w.check(t, Options{Sample: 9}, target); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
	c := newChecker(t.Context(), Options{Timeout: time.Minute})
	for _, addr := range []string{
		"127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "::ffff:192.168.0.1", "0.0.0.0", "100.64.0.1", "192.0.0.1", "198.18.0.1",
		"0.1.2.3", "240.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "fec0::1", "100::1",
	} {
		res, err := c.get(c.follow, "http://"+net.JoinHostPort(addr, "9")+"/", acceptAny)
		if err == nil {
			_ = res.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "prohibited IP address") {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	clear(c.trusted)
	c.trust(&url.URL{Host: "Intranet:8080"})
	if !maps.Equal(c.trusted, map[string]bool{"intranet:8080": true, "intranet:80": true, "intranet:443": true}) {
		t.Errorf("got %v", c.trusted)
	}
}

// TestProxy is that no proxy is used but one that is named.
func TestProxy(t *testing.T) {
	asked := 0
	proxy := newWeb(t, nil)
	proxy.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		sendsXML("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://nosuch.invalid/a</loc></url></urlset>")(w, r)
	})
	t.Setenv("HTTP_PROXY", proxy.URL)
	w := newWeb(t, map[string]http.HandlerFunc{"/a.xml": sendsXML(urlsetOf("{s}/"))})
	if got, _ := w.check(t, Options{}, "{s}/a.xml", "http://nosuch.invalid/a.xml"); asked != 0 || got != "http://nosuch.invalid/a.xml:0 error document-unreachable" {
		t.Errorf("got %d requests, %q", asked, got)
	}
	to, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := w.check(t, Options{Proxy: to}, "http://nosuch.invalid/a.xml"); asked != 1 || got != "" {
		t.Errorf("with a proxy: got %d requests, %q", asked, got)
	}
}

// TestInsecure is that a server whose certificate nobody has signed is checked on demand only.
func TestInsecure(t *testing.T) {
	answers := http.NewServeMux()
	server := httptest.NewUnstartedServer(answers)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that the check breaks off
	server.StartTLS()
	t.Cleanup(server.Close)
	answers.HandleFunc("/sitemap.xml", sendsXML(urlsetOf(server.URL+"/a")))
	answers.HandleFunc("/a", sendsPage(""))
	for _, target := range []string{server.URL, server.URL + "/sitemap.xml"} {
		var got []string
		o := Options{Sample: 1, Rate: 1000, Timeout: time.Minute, Report: func(f Finding) { got = append(got, f.Message) }}
		s := Check(t.Context(), o, target)
		if len(got) == 0 || !strings.HasSuffix(got[0], "; --insecure accepts any certificate") || s.Fetched != 0 {
			t.Errorf("%s: got %q, %+v", target, got, s)
		}
		got, o.Insecure = nil, true
		if s := Check(t.Context(), o, target); len(got) != 0 || s.Fetched != 1 {
			t.Errorf("%s, insecure: got %q, %+v", target, got, s)
		}
	}
}

// TestSuggestions is that who leaves out the scheme is told it, and who names a file that is not there is not.
func TestSuggestions(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("public.site", 0o700); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"example.com": "https://example.com", "www.example.com/docs/sitemap.xml": "https://www.example.com/docs/sitemap.xml",
		"example.com:8443": "https://example.com:8443", "bücher.example/": "https://bücher.example/",
		"localhost": "http://localhost", "localhost:8080/a": "http://localhost:8080/a", "192.0.2.1": "http://192.0.2.1", "[::1]:80": "http://[::1]:80",
		"intranet:8080": "https://intranet:8080",
		"sitemap.xml":   "", "sitemap.XML.gz": "", "robots.txt": "", "nosuch": "", "public/sitemap.xml": "", "public.site/sitemap.xml": "",
		"./example.com": "", "../example.com": "", ".well-known/sitemap.xml": "", "/srv/example.com": "", "a b.example": "", "20": "",
	} {
		var got string
		Check(t.Context(), Options{Report: func(f Finding) { got = f.Message }}, target)
		_, got, _ = strings.Cut(got, "; for a site, write ")
		if got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// TestInterrupted is that a check ends when its context does, and says what it has found.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWeb(t, map[string]http.HandlerFunc{"/2": func(rw http.ResponseWriter, r *http.Request) {
		cancel()
		hangs("")(rw, r)
	}})
	var got []string
	Check(ctx, Options{Report: func(f Finding) { got = append(got, f.Code) }}, w.URL+"/1", w.URL+"/2", w.URL+"/3", "nosuch")
	if !slices.Equal(got, []string{"document-status"}) {
		t.Errorf("got %q", got)
	}
}
