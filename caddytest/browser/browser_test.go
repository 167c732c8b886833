// Package browser opens the documents for people in a real browser, as visitors would.
package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func TestMain(m *testing.M) { harness.Main(m, ".*") }

// browser is a tab of a browser. Its methods end the test where the browser fails.
type browser interface {
	open(url string)
	evaluate(expression string) json.RawMessage // empty if it has no value
	press(keys string)
	screens() []screen // that it knows; desktop is the last
	resize(s screen)
	emulate(m media)
	disableScripts() // of pages that are opened from now on
	screenshot() []byte
	heard() (messages, requests []string) // what the page has written to the console, and the URLs it has requested
	tree() []string                       // roles and names of what screen readers present; nil if it does not tell
}

// screen is what a page is shown on. On a phone, a document may be scaled down.
type screen struct {
	width, height int64
	isPhone       bool
}

var (
	phone   = screen{360, 740, true}
	narrow  = screen{360, 740, false} // a window
	desktop = screen{1280, 900, false}
)

// media is what a page is shown for.
type media struct {
	scheme string // colors: light or dark
	kind   string // print; or "", which is screen
}

// installed is the path of a browser. Without one, the test is skipped, unless the environment names it.
func installed(t *testing.T, variable string, names ...string) string {
	t.Helper()
	required := os.Getenv(variable)
	if required != "" {
		names = []string{required}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if required != "" {
		t.Fatalf("%s is %s, which is not installed", variable, required)
	}
	t.Skipf("this browser is not installed: install %s to run this test", names[0])
	return ""
}

// patience is how long a test waits for the browser.
const patience = 2 * time.Minute

// tab is a browser that visits a server.
type tab struct {
	*harness.Server
	browser
}

// eval is the value of an expression in the page.
func eval[T any](b *tab, expression string) (value T) {
	b.T.Helper()
	encoded := b.evaluate(expression)
	if err := json.Unmarshal(encoded, &value); err != nil {
		b.T.Fatalf("%s is %q: %v", expression, encoded, err)
	}
	return value
}

// visit opens a path of the site.
func (b *tab) visit(path string) {
	b.T.Helper()
	b.open(b.Expand(harness.Local + path))
}

// brightness is that of the page's corner: 0 to 255.
func (b *tab) brightness() uint8 {
	b.T.Helper()
	picture, err := png.Decode(bytes.NewReader(b.screenshot()))
	harness.Must(b.T, err)
	return color.GrayModel.Convert(picture.At(2, 2)).(color.Gray).Y
}

// wantQuiet checks that the page has written nothing to the console, and has requested nothing of other sites.
func (b *tab) wantQuiet() {
	b.T.Helper()
	messages, requests := b.heard()
	if len(messages) > 0 {
		b.T.Errorf("the console has %q", messages)
	}
	origin := b.Expand(harness.Local + "/")
	if others := slices.DeleteFunc(slices.Clone(requests), func(url string) bool { return strings.HasPrefix(url, origin) }); len(others) > 0 || len(requests) == 0 {
		b.T.Errorf("got requests for %q, want all below %s", requests, origin)
	}
}

// wantLooks checks the page in all sizes and color schemes. selectors are those of its texts.
func (b *tab) wantLooks(path, selectors string) {
	b.T.Helper()
	for _, screen := range b.screens() {
		b.resize(screen)
		bright := make(map[string]uint8)
		for _, scheme := range []string{"light", "dark"} {
			b.emulate(media{scheme: scheme})
			b.visit(path)
			at := fmt.Sprintf("%s, %d pixels, phone %t, %s", path, screen.width, screen.isPhone, scheme)
			if wider := eval[float64](b, "document.documentElement.scrollWidth - innerWidth"); wider > 0 {
				b.T.Errorf("%s: the page is %v pixels too wide", at, wider)
			}
			if size := eval[float64](b, fmt.Sprintf(sizeOf, selectors, screen.width)); size < 12 {
				b.T.Errorf("%s: a text has %v pixels", at, size)
			}
			for _, low := range eval[[]string](b, fmt.Sprintf(lowContrast, selectors)) {
				b.T.Errorf("%s: contrast: %s", at, low)
			}
			bright[scheme] = b.brightness()
			b.wantQuiet()
			if !screen.isPhone {
				b.wantAccessible(at)
			}
		}
		if bright["light"] < 200 || bright["dark"] > 60 {
			b.T.Errorf("%s, %d pixels: got brightness %v", path, screen.width, bright)
		}
	}

	b.emulate(media{scheme: "dark", kind: "print"})
	b.visit(path)
	for _, low := range eval[[]string](b, fmt.Sprintf(lowContrast, selectors)) {
		b.T.Errorf("%s, printed: contrast: %s", path, low)
	}
	if bright := b.brightness(); bright < 250 {
		b.T.Errorf("%s, printed: got brightness %d", path, bright)
	}
	if extras := eval[[]string](b, printedExtras); len(extras) > 0 {
		b.T.Errorf("%s, printed: there are %q", path, extras)
	}
	b.emulate(media{scheme: "light"})
}

// printedExtras is what is of no use on paper: the filter, ways to other documents, and links without their URLs.
const printedExtras = `Array.from(document.querySelectorAll("search, nav, ul[lang] a"))
	.filter(element => element.checkVisibility() && getComputedStyle(element, "::after").display !== "block")
	.map(element => element.localName)`

// sizeOf is the smallest size of a text on a screen of a width, in its pixels.
const sizeOf = `Math.min(...Array.from(document.querySelectorAll(%q), e => parseFloat(getComputedStyle(e).fontSize))) * %d / innerWidth`

// lowContrast are the elements whose text is hard to read (https://www.w3.org/TR/WCAG22/#contrast-minimum).
const lowContrast = `(() => {
	const context = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas").getContext("2d", { willReadFrequently: true });
	const luminance = color => {
		context.fillStyle = color;
		context.fillRect(0, 0, 1, 1);
		const [r, g, b] = Array.from(context.getImageData(0, 0, 1, 1).data, v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const paper = luminance(getComputedStyle(document.querySelector("search") ?? document.documentElement).backgroundColor);
	return Array.from(document.querySelectorAll(%q), element => {
		const ink = luminance(getComputedStyle(element).color);
		const ratio = (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
		return ratio < 4.5 ? element.localName + " " + ratio : "";
	}).filter(low => low);
})()`

// wantAccessible checks the page with axe-core (https://github.com/dequelabs/axe-core), if CADDYTEST_AXE names its file. It is
// for HTML.
func (b *tab) wantAccessible(at string) {
	b.T.Helper()
	file := os.Getenv("CADDYTEST_AXE")
	if file == "" || eval[string](b, "document.contentType") != "text/html" {
		return
	}
	axe, err := os.ReadFile(file)
	harness.Must(b.T, err)
	b.evaluate("(() => {" + string(axe) + "\n})()")
	b.evaluate(startAxe)
	b.Eventually(func() bool { return eval[bool](b, "Boolean(window.axeResult)") }, func() string { return at + ": axe does not end" })
	result := eval[struct {
		Passes     int
		Violations []string
	}](b, "axeResult")
	if result.Passes == 0 || len(result.Violations) > 0 {
		b.T.Errorf("%s: axe passes %d rules, and finds %q", at, result.Passes, result.Violations)
	}
}

// startAxe has axe write to axeResult. Rows are alike: it looks at the first of a list.
const startAxe = `void axe.run({ exclude: "main li:nth-child(n + 20)" }, { resultTypes: ["violations"] }).then(
	({ passes, violations }) => {
		const said = violations.map(({ id, nodes }) => id + ": " + nodes[0].html + ": " + nodes[0].failureSummary);
		window.axeResult = { passes: passes.length, violations: said };
	},
	error => window.axeResult = { passes: 0, violations: [String(error)] },
)`

// wantTree checks the accessibility tree, which screen readers present: it has nodes of these roles and names.
func (b *tab) wantTree(want ...string) {
	b.T.Helper()
	got := b.tree()
	if got == nil {
		return
	}
	for _, node := range want {
		if !slices.Contains(got, b.Expand(node)) {
			b.T.Errorf("no %s in the accessibility tree %q", b.Expand(node), got)
		}
	}
}

const (
	shown   = `Array.from(document.querySelectorAll("main li")).filter(row => row.checkVisibility()).map(row => row.textContent)`
	pattern = "a title that a test looks for"
)

// site are files with titles, in several folders.
func site() map[string]string {
	files := map[string]string{"site/favicon.ico": "icon", "site/index.html": harness.Whole("", "text")}
	for i, title := range []string{
		"Café", pattern, "</title><script>alert(1)</script>", `" onmouseover="alert(1)`, "שלום עולם (1)", "👩‍👩‍👧‍👦 🇩🇪", strings.Repeat("W", 300), "\u202eabc", "",
	} {
		title = strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(title)
		files[fmt.Sprintf("site/folder %d/%s.html", i%2, strings.Repeat("x", 1+i*20))] =
			fmt.Sprintf(`<!doctype html><title>%s</title><meta property="article:modified_time" content="2024-0%d-06"><p>%d`, title, i+1, i)
	}
	return files
}

const caddyfile = harness.Local + " {\nheader Content-Security-Policy \"default-src 'self'\"\nroot * {dir}/site\nsitemap {\nhtml\nfeed\nextensions alternates images\nrule /* {\nchangefreq weekly\npriority 0.5\n}\n}\nfile_server\n}"

func TestPageInChromium(t *testing.T) { testPage(t, inChromium) }
func TestPageInFirefox(t *testing.T)  { testPage(t, inFirefox) }

func testPage(t *testing.T, in func(*testing.T) browser) {
	b := &tab{harness.Start(t, caddyfile, site()), in(t)}
	b.WantStatus(harness.Local+"/sitemap.html", 200)
	b.wantLooks("/sitemap.html", "h1, h2, header p, header li, label, a, li > bdi, li > span, time")

	all := eval[[]string](b, shown)
	if len(all) != 10 || !strings.Contains(strings.Join(all, "\n"), "</title><script>alert(1)</script>") {
		t.Errorf("got rows %q", all)
	}
	b.wantTree("navigation Sitemap", "link Home", "heading a page", "heading folder 0 5", "search", "searchbox Filter", "main", "list",
		"link Café", "link "+pattern, "link שלום עולם (1)")

	count := func() string { b.T.Helper(); return eval[string](b, `document.querySelector("output").textContent`) }
	input := func() string { b.T.Helper(); return eval[string](b, `document.querySelector("#words").value`) }
	toFilter := func() { b.T.Helper(); b.press("\t\t") } // after the way home
	for words, want := range map[string]int{"LOOKS title": 1, "cafe": 1, "2024": 9, "2024-05-06": 1, "folder": 9, "no such page": 0} {
		b.visit("/sitemap.html")
		toFilter()
		b.press(words)
		rows := eval[[]string](b, shown)
		found := fmt.Sprintf("%d / 10", want)
		if want == 0 {
			found = "Nothing found"
		}
		if len(rows) != want || count() != found {
			t.Errorf("%s: got %q and rows %q, want %q", words, count(), rows, found)
		}
		if sections := eval[int](b, `document.querySelectorAll("section:not([hidden])").length`); (sections == 0) != (want == 0) {
			t.Errorf("%s: got %d sections", words, sections)
		}
		b.press("\u001b") // Escape
		if rows := eval[[]string](b, shown); input() != "" || count() != "" || len(rows) != len(all) {
			t.Errorf("after Escape: got %q, %q and rows %q", input(), count(), rows)
		}
		b.wantQuiet()
	}

	for _, keys := range []string{"\r", "\t\r"} { // Enter opens the first hit, as on its link
		b.visit("/sitemap.html")
		toFilter()
		b.press("cafe" + keys)
		b.Eventually(func() bool { return eval[string](b, "document.title") == "Café" }, func() string { return "the link was not followed" })
	}
	b.evaluate("history.back()")
	b.Eventually(func() bool { return eval[string](b, "document.title") != "Café" }, func() string { return "there was no way back" })
	if rows := eval[[]string](b, shown); (input() == "cafe") != (len(rows) == 1) || (count() == "1 / 10") != (len(rows) == 1) || input() == "" && len(rows) != len(all) {
		t.Errorf("after going back: got %q, %q and rows %q", input(), count(), rows)
	}

	b.visit("/sitemap.html")
	toFilter()
	b.press("\rno such page\r") // there is nothing to open
	if got := eval[string](b, "location.pathname"); got != "/sitemap.html" {
		t.Errorf("Enter leads to %s", got)
	}

	b.visit("/sitemap.html")
	toFilter()
	b.press("\t")
	if got := eval[string](b, `document.activeElement.localName + " " + getComputedStyle(document.activeElement).outlineStyle`); got != "a solid" {
		t.Errorf("the focus is on %s", got)
	}

	b.disableScripts()
	b.visit("/sitemap.html")
	if rows := eval[[]string](b, shown); len(rows) != len(all) || eval[bool](b, `document.querySelector("search").checkVisibility()`) {
		t.Errorf("without scripts: got rows %q, or the filter", rows)
	}
	b.wantQuiet()
}

// TestFolders goes through the documents of a site that does not fit into one.
func TestFoldersInChromium(t *testing.T) { testFolders(t, inChromium) }
func TestFoldersInFirefox(t *testing.T)  { testFolders(t, inFirefox) }

func testFolders(t *testing.T, in func(*testing.T) browser) {
	const rows = "main li"
	var list strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&list, harness.Local+"/folder-%d/page-%04d.html lastmod=2024-05-06\n", i/1500, i)
	}
	s := harness.Prepare(t, map[string]string{"site/favicon.ico": "icon"})
	s.WriteRaw("list.txt", s.Expand(list.String()))
	s.Load(harness.Local + " {\nsitemap {\ncrawl off\nhtml\nurls {dir}/list.txt\n}\nroot * {dir}/site\nfile_server\n}")
	b := &tab{s, in(t)}
	s.WantStatus(harness.Local+"/sitemap.html", 200)
	b.visit("/sitemap.html")
	follow := func(selector, heading string) {
		t.Helper()
		before := eval[string](b, "location.pathname")
		b.evaluate(fmt.Sprintf("document.querySelector(%q).focus()", selector))
		b.press("\r")
		b.Eventually(func() bool {
			isOther := eval[string](b, "location.pathname") != before
			isWhole := eval[string](b, "document.readyState") == "complete"
			return isOther && isWhole && eval[string](b, `document.querySelector("h1")?.innerText ?? ""`) == b.Expand(heading)
		}, func() string { return "no " + heading })
	}
	follow(rows+" a", "folder-0") // its first part
	b.wantTree("navigation Sitemap", "link Home", "link Sitemap", "heading folder-0")
	from := eval[string](b, `document.querySelector("header p").innerText`)
	follow("header li + li a", "localhost:{port}")
	follow("section:last-child li:last-child a", "folder-1")
	if got := eval[string](b, `document.querySelector("header p").innerText`); got == from {
		t.Errorf("both parts are %q", got)
	}
	path := eval[string](b, "location.pathname")
	b.wantLooks(path, "h1, h2, header p, header li, label, a, time")

	// What has the focus is not below the filter, which stays at the top.
	b.resize(narrow)
	b.visit(path)
	b.evaluate(`document.querySelector("#words").focus()`)
	b.press("page")
	const focus = `(() => {
		const filter = document.querySelector("search"), link = document.querySelectorAll("main a")[99];
		scrollBy(0, link.getBoundingClientRect().top - 20);
		const before = filter.getBoundingClientRect().bottom - link.getBoundingClientRect().top;
		link.focus();
		return before < 9 ? 999 : filter.getBoundingClientRect().bottom - link.getBoundingClientRect().top;
	})()`
	if below := eval[float64](b, focus); below > 0 {
		t.Errorf("%v pixels of the focus are below the filter", below)
	}
	b.wantQuiet()
	follow("nav li + li a", "localhost:{port}")
	b.wantLooks("/sitemap.html", "h1, h2, header p, header li, label, a, li > span")
}

func TestStylesheetInChromium(t *testing.T) { testStylesheet(t, inChromium) }
func TestStylesheetInFirefox(t *testing.T)  { testStylesheet(t, inFirefox) }

func testStylesheet(t *testing.T, in func(*testing.T) browser) {
	files := site()
	files["site/index.html"] = harness.Whole(`<link rel="alternate" hreflang="en" href="/"><link rel="alternate" hreflang="de" href="/de.html">`, `<img src="https://cdn.example.net/a.png">`)
	files["site/de.html"] = harness.Whole(`<link rel="alternate" hreflang="en" href="/"><link rel="alternate" hreflang="de" href="/de.html">`, "Text")
	b := &tab{harness.Start(t, caddyfile, files), in(t)}
	b.WantStatus(harness.Local+"/sitemap.xml", 200)
	b.wantLooks("/sitemap.xml", "loc, lastmod, changefreq, priority, link, image")
	b.wantColumns("url", 11)
	b.wantTree("StaticText Sitemap", "StaticText This list of pages is for search engines. Pages:", "StaticText 11",
		"StaticText For people: "+harness.Local+"/sitemap.html", "StaticText Page Last change", "StaticText "+harness.Local+"/de.html")
	b.wantDays()
	front := b.Expand(harness.Local + "/")
	plain := strings.NewReplacer("attr(hreflang)", "en", "attr(href)", front, `"`, "", ": ", ":", " ", "") // Firefox leaves attr() as it is
	for name, want := range map[string]string{"url": "Sitemap", "link": "en:" + front, "image": "image:"} {
		if got := eval[string](b, fmt.Sprintf(`getComputedStyle(document.querySelector(%q), "::before").content`, name)); plain.Replace(got) != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	b.Reload(strings.Replace(caddyfile, "html\n", "shard_urls 5\n", 1))
	var shards int
	b.Eventually(func() bool {
		shards = strings.Count(b.Get(harness.Local+"/sitemap.xml").Text, "<sitemap>")
		return shards > 1
	}, b.SitemapLog)
	b.wantLooks("/sitemap.xml", "loc, lastmod")
	b.wantColumns("sitemap", shards)
	b.wantTree("StaticText Index of sitemaps", "StaticText This list of sitemaps is for search engines. Sitemaps:",
		fmt.Sprint("StaticText ", shards), "StaticText Sitemap Last change")
	b.wantDays()

	// There is no column of what no page has.
	b.Reload(strings.Replace(caddyfile, "html\nfeed\n", "lastmod off\n", 1))
	b.Eventually(func() bool { return !strings.Contains(b.Get(harness.Local+"/sitemap.xml").Text, "<lastmod>") }, b.SitemapLog)
	b.visit("/sitemap.xml")
	b.wantTree("StaticText Page", "StaticText This list of pages is for search engines. Pages:", "StaticText 11")
}

// wantDays checks that dates are shown as days: the time is below, where it is not seen.
func (b *tab) wantDays() {
	b.T.Helper()
	const firstLines = `Array.from(document.querySelectorAll("lastmod"), date => {
		const text = date.firstChild, range = document.createRange();
		const inSight = Array.from(text.data).filter((_, i) => {
			range.setStart(text, i);
			range.setEnd(text, i + 1);
			return range.getBoundingClientRect().bottom <= date.getBoundingClientRect().bottom + 1;
		});
		return inSight.join("");
	})`
	got := eval[[]string](b, firstLines)
	for _, day := range got {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			b.T.Errorf("a date is shown as %q", day)
		}
	}
	if len(got) == 0 {
		b.T.Error("there are no dates")
	}
}

// wantColumns checks that a document has so many rows, whose columns line up.
func (b *tab) wantColumns(row string, rows int) {
	b.T.Helper()
	if got := eval[int](b, fmt.Sprintf("document.querySelectorAll(%q).length", row)); got != rows {
		b.T.Errorf("got %d rows, want %d", got, rows)
	}
	for _, column := range []string{row + " > loc", "lastmod", "changefreq", "priority"} {
		if got := eval[[]int](b, fmt.Sprintf("[...new Set(Array.from(document.querySelectorAll(%q), e => Math.round(e.getBoundingClientRect().left)))]", column)); len(got) > 1 {
			b.T.Errorf("%s: columns begin at %v", column, got)
		}
	}
}

// TestLargeSitemap opens a document of as many pages as one may have.
func TestLargeSitemapInChromium(t *testing.T) {
	const pages, fewer = 50_000, 5000
	var list, sites strings.Builder
	for i := range pages {
		fmt.Fprintf(&list, "/folder-%03d/page-%05d.html lastmod=2024-05-06\n", i/100, i)
	}
	for _, site := range []struct {
		port       string
		pages      int
		stylesheet string
	}{{"{port}", pages, "on"}, {"{more}", fewer, "on"}, {"{tls}", fewer, "off"}} {
		fmt.Fprintf(&sites, "http://localhost:%s {\nsitemap {\ncrawl off\nurls {dir}/list.txt\nmax_urls %d\nstylesheet %s\n}\nroot * {dir}/site\nfile_server\n}\n",
			site.port, site.pages, site.stylesheet)
	}
	s := harness.Prepare(t, map[string]string{"site/favicon.ico": "icon"})
	s.WriteRaw("list.txt", list.String())
	s.Load(sites.String())
	b := &tab{s, inChromium(t)}
	load := func(port string, rows int) time.Duration {
		t.Helper()
		url := "http://localhost:" + port + "/sitemap.xml"
		for until := time.Now().Add(patience); s.Get(url).StatusCode != 200; {
			if time.Now().After(until) {
				t.Fatalf("no %s\n%s", url, s.SitemapLog())
			}
		}
		begun := time.Now()
		b.open(s.Expand(url))
		took := time.Since(begun)
		if got := eval[int](b, `document.getElementsByTagNameNS("http://www.sitemaps.org/schemas/sitemap/0.9", "loc").length`); got != rows {
			t.Errorf("got %d rows, want %d", got, rows)
		}
		return took
	}
	took := load("{port}", pages)
	begun := time.Now()
	height := eval[float64](b, `scrollTo(0, document.documentElement.scrollHeight), document.querySelector("url:last-child").getBoundingClientRect().bottom`)
	if height <= 0 || height > 900 {
		t.Errorf("after scrolling down, the last row ends at %v", height)
	}
	if got := eval[string](b, `document.elementFromPoint(innerWidth / 2, 10).localName`); got != "urlset" {
		t.Errorf("a %s is on top, want the headings of the columns", got)
	}
	b.wantQuiet()
	t.Logf("%d rows in %s, scrolled down in %s", pages, took, time.Since(begun))
	t.Logf("%d rows in %s, in %s without a stylesheet", fewer, load("{more}", fewer), load("{tls}", fewer))
}
