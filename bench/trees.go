package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const filesInFolder, foldersInSection = 200, 50

// tree makes a site of files, the same every time, unless an earlier run did.
func (b *bench) tree(files int) (root string) {
	root = b.path(fmt.Sprintf("tree-%d", files))
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
		check(writePage(name, i, small(i)))
	}
	check(os.WriteFile(made, nil, 0o644))
	return root
}

// writePage writes a file, with the time at which the ith page changed.
func writePage(name string, i int, content []byte) error {
	at := time.Unix(modified(i), 0)
	return errors.Join(os.WriteFile(name, content, 0o644), os.Chtimes(name, at, at))
}

// pagePath is the path of the ith page of a site, as its tree has it.
func pagePath(i int) string {
	folder := i / filesInFolder
	return fmt.Sprintf("/section-%03d/part-%02d/page-%03d.html", folder/foldersInSection, folder%foldersInSection, i%filesInFolder)
}

// small is a whole document of about 500 bytes. Half of the pages name themselves as
// canonical; all link to the ones beside them.
func small(i int) []byte {
	n := scramble(i)
	first := i - i%filesInFolder
	canonical := ""
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
