package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const filesInFolder, foldersInSection = 200, 50

// tree makes a site of files, the same every time, unless an earlier run did.
func (b *bench) tree(name string, files int, content func(i int) []byte) (root string) {
	root = b.path(fmt.Sprintf("%s-%d", name, files))
	made := root + ".made"
	if _, err := os.Stat(made); err == nil {
		return root
	}
	b.say("making %s files in %s", number(files), root)
	for i := range files {
		name := filepath.Join(root, filepath.FromSlash(pagePath(i)))
		if i%filesInFolder == 0 {
			check(os.MkdirAll(filepath.Dir(name), 0o755))
		}
		check(writePage(name, i, content(i)))
	}
	check(os.WriteFile(made, nil, 0o644))
	return root
}

// writePage writes a file, with the time at which the ith page changed.
func writePage(name string, i int, content []byte) error {
	at := time.Unix(modified(i), 0)
	return errors.Join(os.WriteFile(name, content, 0o644), os.Chtimes(name, at, at))
}

// edit gives the ith page of a tree another text.
func edit(root string, i int) error {
	return writePage(filepath.Join(root, pagePath(i)), i, bytes.Replace(small(i), []byte("lorem"), fmt.Append(nil, time.Now().UnixNano()), 1))
}

// pagePath is the path of the ith page of a site, as its tree has it.
func pagePath(i int) string {
	folder := i / filesInFolder
	return fmt.Sprintf("/section-%03d/part-%02d/page-%03d.html", folder/foldersInSection, folder%foldersInSection, i%filesInFolder)
}

// small is a whole document of about 500 bytes. Half of the pages name themselves as
// canonical; all link to the ones beside them.
func small(i int) []byte {
	n, first, canonical := scramble(i), i-i%filesInFolder, ""
	if n>>8%2 == 0 {
		canonical = fmt.Sprintf("<link rel=\"canonical\" href=\"%s\">\n", pagePath(i))
	}
	return fmt.Appendf(nil, `<!doctype html>
<html lang="en"><head>
<meta charset="utf-8"><title>Page %[1]d</title>
%[2]s<link rel="stylesheet" href="/style.css">
</head><body>
<nav><a href="/">Home</a> <a href="page-%03[3]d.html">Back</a> <a href="page-%03[4]d.html">Next</a></nav>
<main><h1>Page %[1]d</h1>
<p>%[5]s</p></main>
</body></html>
`, i, canonical, (i+filesInFolder-1-first)%filesInFolder, (i+1-first)%filesInFolder, strings.Repeat("lorem ipsum ", 10+int(n%8)))
}

// manual is a page of 20 to 50 KB as manuals are generated: a menu, and chapters with some
// markup to nearly every word of them.
func manual(i int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en" data-content_root="../../"><head>
<meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1.0" />
<meta property="og:title" content="Chapter %[1]d" /><meta name="description" content="What chapter %[1]d of the manual says of its subject." />
<title>Chapter %[1]d &#8212; Manual 3.11</title><link rel="stylesheet" href="/_static/pygments.css?v=80d5e7a1" /><link rel="canonical" href="%[2]s" />
<script src="/_static/documentation_options.js?v=9f72a1ad"></script><style>@media only screen { table.full-width-table { width: 100%%; } }</style>
</head><body><div class="related" role="navigation" aria-label="related navigation"><h3>Navigation</h3><ul>
`, i, pagePath(i))
	n := scramble(i)
	for j := range 60 + int(n%60) {
		fmt.Fprintf(&b, `<li class="toctree-l%d"><a class="reference internal" href="%s">Section %d: more of it</a></li>`+"\n", j%3+1, pagePath(i/100*100+j), j)
	}
	b.WriteString("</ul></div>\n<main class=\"body\"><h1>A chapter<a class=\"headerlink\" href=\"#top\" title=\"Link to this heading\">¶</a></h1>\n")
	for j := range 30 + int(n>>8%50) {
		fmt.Fprintf(&b, `<dl class="py method"><dt class="sig sig-object py" id="m%[1]d"><span class="sig-name descname"><span class="pre">method%[2]d</span></span><span class="sig-paren">(</span><em class="sig-param"><span class="n">iterable</span></em>)<a class="headerlink" href="#m%[1]d">¶</a></dt>
<dd><p>Return a copy of the sequence with all its members &lt;%[2]d&gt;, as <a class="reference internal" href="#f%[2]d"><code class="xref py">function%[2]d()</code></a> does &mdash; unless told otherwise.</p></dd></dl>
`, j, scramble(i*1000+j)%997)
	}
	b.WriteString("</main><div class=\"footer\" role=\"contentinfo\">&copy; Copyright 2001-2026.</div>\n</body></html>\n")
	return []byte(b.String())
}

// modified is when the ith page changed: no two neighbours at the same time, as after two
// years of edits, which compresses worst.
func modified(i int) int64 {
	const begun, twoYears = 1672531200, 2 * 365 * 24 * 60 * 60 // 2023-01-01
	return begun + int64(scramble(i)%twoYears)
}

// scramble is splitmix64.
func scramble(i int) uint64 {
	z := (uint64(i) + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
