package caddytest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// browser is what a visitor's browser says that it is.
// Of the application's articles.
const (
	articles       = 25
	taggedArticles = 23 // the others are linked to from the last page of the list alone
	articlesAPage  = 10
)

var tags = []string{"oak", "ash", "elm", "yew", "fir"}

// application is a site that has no files: its pages exist as answers alone.
type application struct {
	addr  string
	pages map[string]appPage

	mu       sync.Mutex
	requests []appRequest
	answers  map[string]http.HandlerFunc // in the place of what a path answers, by path
}

// appPage is one that the application has by its path. All have a text of their own, and
// links to the front page and to /logout.
type appPage struct {
	text     string
	links    []string // as they are written
	head     string   // more in the document's head
	header   []string // pairs "Name: value"
	modified time.Time
	answer   http.HandlerFunc // in the place of a document

	listed bool // by a sitemap that knows all pages that are linked to
}

type appRequest struct{ method, uri, agent string }

// startApplication runs one, which ends before the server does.
func startApplication(t *testing.T) *application {
	t.Helper()
	a := &application{pages: applicationPages(), answers: make(map[string]http.HandlerFunc)}
	listening := httptest.NewServer(a)
	a.addr = listening.Listener.Addr().String()
	t.Cleanup(func() {
		listening.CloseClientConnections()
		listening.Close()
	})
	return a
}

// in is a Caddyfile whose {app} is replaced by the application's address.
func (a *application) in(caddyfile string) string {
	return strings.ReplaceAll(caddyfile, "{app}", a.addr)
}

// startProxy runs an application and Caddy before it, by a Caddyfile with {app} for the
// application's address.
func startProxy(t *testing.T, caddyfile string, files map[string]string) (*server, *application) {
	t.Helper()
	s := prepare(t, files)
	a := startApplication(t)
	s.Load(a.in(caddyfile))
	return s, a
}

// applicationPages are the pages that have a path of their own.
func applicationPages() map[string]appPage {
	pages := map[string]appPage{
		"/": {
			text: "Welcome to the joinery.", listed: true,
			links: append([]string{
				"/about", "/articles", "/shop", "/wiki/", "/calendar/2026/11", "/account", "/members/", "/vault/", "/internal/report",
				"/old-news", "/news", "/moved", "/greeting", "/drafts/meta", "/drafts/header", "/print/1", "/api/articles", "/feed", "/data", "/gone", "/broken",
				"/Style.css", "/logo.png", "/manual.pdf", "https://elsewhere.example/page", "//elsewhere.example/other", "mailto:us@example.com", "javascript:void(0)", "#top", "/about#team", "/about?utm_source=front",
				"/articles/1%2F..%2Fvault", "/articles//2", "/./about", "/login?next=%2Faccount",
			}, tagLinks()...),
		},
		"/about":           {text: "We have made chairs since 1911.", listed: true, links: []string{"/articles/2;jsessionid=0A1B2C3D", "/news?fbclid=abc"}},
		"/news":            {text: "The workshop is open again.", listed: true},
		"/landing":         {text: "Only a redirect leads here.", listed: true},
		"/login":           {text: "Who are you?", listed: true},
		"/greeting":        {text: "Good day, whoever you are.", listed: true, header: []string{"Cache-Control: private, no-store"}},
		"/shop/chair":      {text: "A chair with four legs.", listed: true},
		"/shop/lamp":       {text: "A lamp with a shade.", listed: true},
		"/wiki/":           {text: "All that we know.", listed: true, links: []string{"start", "/wiki/rules", "/wiki/unwritten", "/wiki/unwritten-too"}},
		"/wiki/start":      {text: "Where to start.", listed: true},
		"/wiki/rules":      {text: "How to write here.", listed: true, links: []string{"/wiki/start"}},
		"/drafts/meta":     {text: "A draft.", head: `<meta name="robots" content="noindex">`, links: []string{"/drafts/behind"}},
		"/drafts/header":   {text: "Another draft.", header: []string{"X-Robots-Tag: noindex"}, links: []string{"/drafts/behind"}},
		"/drafts/behind":   {text: "Only drafts lead here."},
		"/print/1":         {text: "Article 1, for paper.", head: `<link rel="canonical" href="/articles/1">`},
		"/internal/report": {text: "What robots are to leave alone."},
		"/logout":          {text: "You have left."},
		"/orders/7":        {text: "Your order 7."},
		"/old-news":        {answer: redirectTo("/news", http.StatusMovedPermanently)},
		"/moved":           {answer: redirectTo("/landing", http.StatusMovedPermanently)},
		"/robots.txt":      {answer: answerText("text/plain", "User-agent: *\nDisallow: /internal/\n")},
		"/api/articles":    {answer: answerText("application/json", `["one","two"]`)},
		"/data":            {answer: answerText("application/json", `{"one":2}`)},
		"/feed":            {answer: answerText("application/atom+xml", "<feed/>")},
		"/Style.css":       {answer: answerText("text/css", "p { color: green }")},
		"/logo.png":        {answer: answerText("image/png", "\x89PNG\r\n\x1a\n")},
		"/manual.pdf":      {answer: answerText("application/pdf", "%PDF-1.7")},
		"/gone":            {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }},
		"/account":         {answer: account},
		"/members/":        {answer: members},
		"/vault/":          {answer: vault},
	}
	for n := 1; n <= articles; n++ {
		p := appPage{text: fmt.Sprintf("This is article %d, on wood.", n), listed: true, links: []string{"/articles"}}
		if n <= taggedArticles {
			p.links = append(p.links, "/tags/"+tags[n%len(tags)])
		}
		if n%2 == 0 {
			p.header = []string{fmt.Sprintf(`Etag: "article-%d"`, n)}
			p.modified = harness.DayOf(n)
		}
		pages[fmt.Sprintf("/articles/%d", n)] = p
	}
	for i, tag := range tags {
		p := appPage{text: "All on " + tag + ".", listed: true}
		for n := 1; n <= taggedArticles; n++ {
			if n%len(tags) == i {
				p.links = append(p.links, fmt.Sprintf("/articles/%d", n))
			}
		}
		pages["/tags/"+tag] = p
	}
	return pages
}

func tagLinks() []string {
	var links []string
	for _, tag := range tags {
		links = append(links, "/tags/"+tag)
	}
	return links
}

func redirectTo(path string, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, path, status) }
}

func answerText(contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}
}

// account is for those who have a session.
func account(w http.ResponseWriter, r *http.Request) {
	if _, err := r.Cookie("session"); err != nil {
		http.Redirect(w, r, "/login?next=/account", http.StatusFound)
		return
	}
	writeHTML(w, r, "Your account.", "", []string{"/orders/7"}, time.Time{})
}

// members is for those who say who they are, whoever they are.
func members(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	writeHTML(w, r, "For members.", "", []string{"/members/list"}, time.Time{})
}

func vault(w http.ResponseWriter, r *http.Request) {
	if name, word, ok := r.BasicAuth(); !ok || name != "guard" || word != "key" {
		w.Header().Set("WWW-Authenticate", `Basic realm="vault"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	writeHTML(w, r, "Gold.", "", nil, time.Time{})
}

// writeHTML answers with a document.
func writeHTML(w http.ResponseWriter, r *http.Request, text, head string, links []string, modified time.Time) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!doctype html><html><head><title>%s</title><link rel=stylesheet href=/Style.css>%s</head><body><nav><a href=/>home</a> <a href=/logout>leave</a></nav><main><img src=/logo.png><p>%s</p>", text, head, text)
	for _, link := range links {
		fmt.Fprintf(&b, "<a href=\"%s\">more</a>\n", strings.ReplaceAll(link, "&", "&amp;"))
	}
	b.WriteString("</main></body></html>")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	http.ServeContent(w, r, "", modified, bytes.NewReader(b.Bytes()))
}

func (a *application) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, appRequest{r.Method, r.RequestURI, r.UserAgent()})
	path, _, _ := strings.Cut(r.URL.Path, ";jsessionid=")
	answer := a.answers[path]
	a.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	if p, ok := a.pages[path]; ok {
		p.serve(w, r)
		return
	}
	top, rest, _ := strings.Cut(path[1:], "/")
	switch top {
	case "articles":
		listArticles(w, r, rest)
	case "shop":
		serveShop(w, r, rest)
	case "calendar":
		calendar(w, r, rest)
	case "wiki":
		writeHTML(w, r, "There is no such article.", "", []string{"/wiki/"}, time.Time{})
	case "share":
		writeHTML(w, r, "What somebody shares as "+rest, "", nil, time.Time{})
	case "orders":
		if strings.Trim(rest, "0123456789") != "" {
			http.NotFound(w, r)
			return
		}
		writeHTML(w, r, "Your order "+rest, "", nil, time.Time{})
	default:
		http.NotFound(w, r)
	}
}

func (p *appPage) serve(w http.ResponseWriter, r *http.Request) {
	if p.answer != nil {
		p.answer(w, r)
		return
	}
	for _, header := range p.header {
		name, value, _ := strings.Cut(header, ": ")
		w.Header().Set(name, value)
	}
	writeHTML(w, r, p.text, p.head, p.links, p.modified)
}

// listArticles is a list in pages: /articles?page=2. The first one goes by /articles.
func listArticles(w http.ResponseWriter, r *http.Request, rest string) {
	page, head := 1, ""
	if given := r.URL.Query().Get("page"); given != "" {
		if _, err := fmt.Sscan(given, &page); err != nil || page < 1 || (page-1)*articlesAPage >= articles {
			http.NotFound(w, r)
			return
		}
	}
	if rest != "" {
		http.NotFound(w, r)
		return
	}
	if page == 1 {
		head = `<link rel="canonical" href="/articles">`
	}
	links := []string{"/articles?page=1", "/articles?page=2&utm_source=list", "/articles?sort=old&page=3#first"}
	for n := (page-1)*articlesAPage + 1; n <= min(page*articlesAPage, articles); n++ {
		links = append(links, fmt.Sprintf("/articles/%d", n))
	}
	writeHTML(w, r, fmt.Sprintf("Articles, page %d", page), head, links, time.Time{})
}

// serveShop serves a list with facets that lead to one another.
func serveShop(w http.ResponseWriter, r *http.Request, rest string) {
	if rest != "" {
		http.NotFound(w, r)
		return
	}
	links := []string{"/shop/chair", "/shop/lamp"}
	for _, colour := range []string{"red", "green", "blue"} {
		links = append(links, "/shop?colour="+colour+"&size=m", "/shop?size=l&colour="+colour)
	}
	writeHTML(w, r, "All that we sell, "+r.URL.Query().Get("colour")+" "+r.URL.Query().Get("size"), "", links, time.Time{})
}

// calendar has no end in either direction.
func calendar(w http.ResponseWriter, r *http.Request, rest string) {
	month, err := time.Parse("2006/01", rest)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	writeHTML(w, r, "Appointments in "+month.Format("January 2006"), "",
		[]string{monthPath(month.AddDate(0, -1, 0)), monthPath(month.AddDate(0, 1, 0))}, time.Time{})
}

func monthPath(month time.Time) string { return month.Format("/calendar/2006/01") }

// answer has a path answered so from now on; nil: as at first.
func (a *application) answer(path string, answer http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[path] = answer
}

// expected are the pages that a sitemap lists which knows all that are linked to, in its
// order: of the calendar those to which so many links lead from the front page, two or more.
func (a *application) expected(depth int) []string {
	paths := []string{"/articles", "/shop"}
	for path, p := range a.pages {
		if p.listed && path != "/articles/24" && path != "/articles/25" { // to which only a query leads
			paths = append(paths, path)
		}
	}
	front := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC) // which the front page links to
	for i := 1 - depth; i < depth; i++ {
		paths = append(paths, monthPath(front.AddDate(0, i, 0)))
	}
	slices.Sort(paths)
	return paths
}

// asked are the URIs that the module asked for, each once, in order. The sitemap's own
// and robots.txt are left out.
func (a *application) asked() []string {
	uris := make(map[string]bool)
	for _, r := range a.seen() {
		if r.isAsk() && r.uri != "/robots.txt" && !strings.HasPrefix(r.uri, "/sitemap") {
			uris[r.uri] = true
		}
	}
	var all []string
	for uri := range uris {
		all = append(all, uri)
	}
	slices.Sort(all)
	return all
}

// asksName is what the module's own User-Agent begins with.
const asksName = "caddy-sitemap "

func (r *appRequest) isAsk() bool { return strings.HasPrefix(r.agent, asksName) }

// asks is how often the module asked for a URI with GET.
func (a *application) asks(uri string) (n int) {
	for _, r := range a.seen() {
		if r.isAsk() && r.uri == uri && r.method == http.MethodGet {
			n++
		}
	}
	return n
}

// seen is all that was requested so far.
func (a *application) seen() []appRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// forget forgets what was requested so far.
func (a *application) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = nil
}

// neverAsked wants nothing to have been asked for that begins with one of these.
func (a *application) neverAsked(t *testing.T, prefixes ...string) {
	t.Helper()
	for _, uri := range a.asked() {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(uri, prefix) }) {
			t.Errorf("%s was asked for", uri)
		}
	}
}

// browse is visits by a browser from an address: a site that trusts its proxies takes
// it for the visitor's.
func (s *server) browse(address string, uris ...string) {
	s.T.Helper()
	for _, uri := range uris {
		if r := s.Get(harness.Local+uri, browser, "X-Forwarded-For: "+address); r.StatusCode >= 500 {
			s.T.Fatalf("visiting %s: status %d", uri, r.StatusCode)
		}
	}
}

// wantPages refreshes until the sitemap lists just these paths.
func (s *server) wantPages(want ...string) {
	s.T.Helper()
	want = harness.Below(s.Expand(harness.Local), want)
	var got []string
	var err error
	s.Eventually(func() bool {
		s.Refreshes(1)
		got, err = s.TryLocs(harness.Local + "/sitemap.xml")
		return err == nil && slices.Equal(got, want)
	}, func() string { return fmt.Sprintf("got %q (%v), want %q\n%s", got, err, want, s.SitemapLog()) })
}

// crawled refreshes until nothing more is asked for: pages that are not listed may come last.
func (s *server) crawled(a *application) {
	s.T.Helper()
	s.Eventually(func() bool {
		before := a.asked()
		s.Refreshes(1)
		return slices.Equal(a.asked(), before)
	}, s.SitemapLog)
}

// stay wants the sitemap to list just these paths still, some refreshes later.
func (s *server) stay(want ...string) {
	s.T.Helper()
	s.Refreshes(2)
	want = harness.Below(s.Expand(harness.Local), want)
	if got := s.Locs(harness.Local + "/sitemap.xml"); !slices.Equal(got, want) {
		s.T.Errorf("the sitemap has become %q, want %q\n%s", got, want, s.SitemapLog())
	}
}
