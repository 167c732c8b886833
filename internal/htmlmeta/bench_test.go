package htmlmeta

import (
	"fmt"
	"strings"
	"testing"
)

// documentation is a page as manuals are generated: of about 30 KB, a third of it
// menus, with some 400 links.
func documentation() []byte {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html>
<html lang="en" data-content_root="../">
<head>
<meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1.0" />
<meta property="og:title" content="Built-in Types" /><meta property="og:type" content="website" /><meta property="og:url" content="https://example.com/docs/a.html" />
<meta name="description" content="The following sections describe the standard types that are built into the interpreter." />
<title>Built-in Types &#8212; Manual 3.11</title>
<link rel="stylesheet" type="text/css" href="../_static/pygments.css?v=80d5e7a1" /><link rel="stylesheet" href="../_static/classic.css?v=514cf933" />
<script src="../_static/documentation_options.js?v=9f72a1ad"></script><script src="../_static/doctools.js?v=9a2dae69"></script>
<link rel="search" type="application/opensearchdescription+xml" title="Search" href="../_static/opensearch.xml"/>
<link rel="canonical" href="https://example.com/docs/a.html" />
<style>@media only screen { table.full-width-table { width: 100%; } }</style>
</head><body>
<div class="related" role="navigation" aria-label="related navigation"><h3>Navigation</h3><ul>
`)
	for i := range 120 {
		fmt.Fprintf(&b, `<li class="toctree-l%d"><a class="reference internal" href="chapter%d.html#section-%d">Section %d: more of it</a></li>`+"\n", i%3+1, i/4, i, i)
	}
	b.WriteString("</ul></div>\n<div class=\"document\"><div class=\"body\" role=\"main\"><section id=\"built-in-types\"><h1>Built-in Types<a class=\"headerlink\" href=\"#built-in-types\" title=\"Link to this heading\">¶</a></h1>\n")
	for i := range 60 {
		fmt.Fprintf(&b, `<dl class="py method"><dt class="sig sig-object py" id="m%d"><span class="sig-name descname"><span class="pre">method%d</span></span><span class="sig-paren">(</span><em class="sig-param"><span class="n"><span class="pre">iterable</span></span></em>)<a class="headerlink" href="#m%d" title="Link to this definition">¶</a></dt>
<dd><p>Return a copy of the sequence with all its members &lt;%d&gt;, as <a class="reference internal" href="functions.html#f%d"><code class="xref py"><span class="pre">function%d()</span></code></a> does &mdash; unless told otherwise.</p></dd></dl>
`, i, i, i, i, i, i)
	}
	b.WriteString("</section></div></div><div class=\"footer\" role=\"contentinfo\">&copy; Copyright 2001-2026. Last updated on Jun 15.</div>\n<script>document.body.className += ' ready';</script></body></html>\n")
	return []byte(b.String())
}

const small = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Page 12345</title><link rel="stylesheet" href="/style.css"></head>
<body><nav><a href="/">Home</a> <a href="/section-042/">Section</a></nav><main><h1>Page 12345</h1><p>This is the text of a page that has not much to say, of which there are a million.</p><p>It links to <a href="page-12346.html">the next one</a> and to <a href="page-12344.html">the one before</a>.</p></main><footer>Generated</footer></body></html>
`

func BenchmarkParse(b *testing.B) {
	for _, bench := range []struct {
		name string
		body []byte
		kind string
	}{
		{"documentation", documentation(), "text/html; charset=utf-8"}, // as Caddy sends it
		{"small", []byte(small), "text/html; charset=utf-8"},
		{"no charset", []byte(small), "text/html"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := NewParser(Options{})
			p := withHeader("Content-Type", bench.kind)
			b.SetBytes(int64(len(bench.body)))
			b.ReportAllocs()
			for b.Loop() {
				r.Parse(bench.body, p)
			}
		})
	}
}
