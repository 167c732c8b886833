package html

import (
	"net/http"
	"strings"
	"testing"
)

// BenchmarkParse parses a small page, and one of a manual: menus of links, prose, code and tables.
func BenchmarkParse(b *testing.B) {
	const head = `<!doctype html><html lang=en><head><meta charset="utf-8"><title>A page</title>
<link rel="canonical" href="https://example.com/docs/a.html"><link rel="stylesheet" href="/style.css"></head>`
	const prose = `<p class="text">The <em>second</em> paragraph says <a class="reference internal" href="other.html#part">more</a>, in
version 3.12 and later &mdash; see <code class="docutils literal"><span class="pre">os.path.join()</span></code>, which is from 2019.</p>
`
	menu := "<ul>" + strings.Repeat(`<li class="toctree-l1"><a class="reference internal" href="library/index.html">Library reference</a></li>
`, 60) + "</ul>"
	section := `<div class="section" id="part"><h2>A part<a class="headerlink" href="#part">¶</a></h2>` + strings.Repeat(prose, 8) +
		`<div class="highlight-python3 notranslate"><div class="highlight"><pre>` +
		strings.Repeat(`<span class="gp">&gt;&gt;&gt; </span><span class="n">total</span> <span class="o">=</span> <span class="mi">1024</span>
`, 10) + `</pre></div></div><table class="docutils"><tr><td>1.0</td><td>2026-11-24</td></tr></table></div>`
	pages := []struct{ name, body string }{
		{"small", head + `<body><div class="header"><a href="/">Home</a></div><h1>Title</h1>` + strings.Repeat(prose, 4) +
			`<div class="footer">© 2019-2026 Example. Last updated on Nov 24, 2026.</div></body></html>`},
		{"manual", head + `<body><div class="related" role="navigation"><h3>Navigation</h3>` + menu + `</div>
<div class="document"><div class="body" role="main">` + strings.Repeat(section, 10) + `</div></div>
<div class="sphinxsidebar">` + menu + `</div><div class="footer">© Copyright 2026. Last updated on Nov 24, 2026.</div></body></html>`},
		{"plain", head + "<body>" + strings.Repeat(section, 10) + "</body></html>"},
	}
	for _, page := range pages {
		b.Run(page.name, func(b *testing.B) {
			body := []byte(page.body)
			pg := plainPage
			pg.Header = http.Header{"Content-Type": {"text/html; charset=utf-8"}}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(body, pg)
			}
		})
	}
}
