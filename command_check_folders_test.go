package sitemap

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// checkFolder makes files; a content that begins with "-> " is a symbolic link.
func checkFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if to, ok := strings.CutPrefix(content, "-> "); ok && err == nil {
			err = os.Symlink(to, file)
		} else if err == nil {
			err = os.WriteFile(file, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inFolder runs the command with {d} in its arguments for the folder, which is in its
// output, with slashes.
func inFolder(t *testing.T, dir, stdin string, args ...string) commandRun {
	t.Helper()
	whole := []string{"check"}
	for _, arg := range args {
		whole = append(whole, filepath.FromSlash(strings.ReplaceAll(arg, "{d}", filepath.ToSlash(dir))))
	}
	r := runCommand(t.Context(), strings.NewReader(stdin), whole...)
	for _, text := range []*string{&r.stdout, &r.stderr} {
		*text = filepath.ToSlash(strings.ReplaceAll(*text, dir, "{d}"))
	}
	return r
}

func TestCheckFiles(t *testing.T) {
	const home = "https://example.com/"
	page, a, b := urlsetOf(home), urlsetOf(home+"a"), urlsetOf(home+"b")
	for name, test := range map[string]struct {
		files  map[string]string
		stdin  string
		args   []string
		want   string
		stderr string // a part
		status int
	}{
		"a file":             {files: map[string]string{"x.xml": page}, args: []string{"{d}/x.xml"}, stderr: "checked 1 document with 1 page: 0 errors, 0 warnings\n"},
		"two files":          {files: map[string]string{"x.xml": page, "y.xml": a}, args: []string{"{d}/x.xml", "{d}/y.xml"}, stderr: "checked 2 documents with 2 pages"},
		"a file twice":       {files: map[string]string{"x.xml": page}, args: []string{"{d}/x.xml", "{d}/../" + "{b}/x.xml"}, stderr: "checked 1 document with 1 page"},
		"gzip":               {files: map[string]string{"x.xml.gz": gzipped(page)}, args: []string{"{d}/x.xml.gz"}, stderr: "with 1 page"},
		"text":               {files: map[string]string{"x.txt": home + "\n" + home + "a\n"}, args: []string{"{d}/x.txt"}, stderr: "with 2 pages"},
		"standard input":     {stdin: page, args: []string{"-"}, stderr: "checked 1 document with 1 page"},
		"index from nowhere": {stdin: indexOf(home + "a.xml"), args: []string{"-"}, want: "-:3: warning: document-missing: names a document that was not checked, as it is not in the folder: https://example.com/a.xml\n"},
		"no such file":       {args: []string{"{d}/nosuch.xml"}, stderr: "nosuch.xml: ", status: 2},
		"no such file, and another": {files: map[string]string{"x.xml": page}, args: []string{"{d}/nosuch.xml", "{d}/x.xml"},
			stderr: "checked 1 document with 1 page", status: 2},
		"robots.txt": {files: map[string]string{"robots.txt": "Sitemap: https://example.com/x.xml\n", "x.xml": page}, args: []string{"{d}/robots.txt"}, stderr: "with 1 page"},
		"base":       {files: map[string]string{"x.xml": urlsetOf(home + "docs/a")}, args: []string{"--base-url", home + "docs", "{d}/x.xml"}, stderr: "with 1 page: 0 errors"},
		"index": {files: map[string]string{"i.xml": indexOf(home+"a.xml", home+"b.xml.gz"), "a.xml": a, "b.xml.gz": gzipped(b)}, args: []string{"{d}/i.xml"},
			stderr: "with 2 pages: 0 errors, 0 warnings"},
		"index with a child elsewhere": {files: map[string]string{"i.xml": indexOf(home+"a.xml", home+"b.xml"), "a.xml": a}, args: []string{"{d}/i.xml"},
			want: "{d}/i.xml:4: warning: document-missing: names a document that was not checked, as it is not in the folder: https://example.com/b.xml\n"},
		"index of an index": {files: map[string]string{"i.xml": indexOf(home + "a.xml"), "a.xml": indexOf(home + "i.xml")}, args: []string{"{d}/i.xml"},
			want: "{d}/i.xml:3: error: index-in-index: names a document that is an index itself; an index lists documents of pages alone: https://example.com/a.xml\n", status: 1},
		"index that leads out": {files: map[string]string{"in/i.xml": indexOf(home+"../../a.xml", home+"%2e%2e/a.xml"), "a.xml": a}, args: []string{"{d}/in/i.xml"},
			want: "document-missing", stderr: "with 0 pages"},

		"folder": {files: map[string]string{
			"robots.txt": "Sitemap: https://example.com/sitemap.xml\n", "sitemap.xml": indexOf(home+"s/sitemap-a.xml", home+"sitemap-b.xml"), "s/sitemap-a.xml": urlsetOf(home + "s/a"),
			"sitemap-b.xml": b, "sitemap-b.xml.gz": gzipped(b), "feed.xml": "<feed/>", "index.html": "<urlset", "config.xml": "<config/>", "deep/er/pages.xml": urlsetOf(home + "deep/er/"),
		}, args: []string{"{d}"}, want: "{d}/deep/er/pages.xml: warning: document-orphan: is named by no index and no robots.txt of the folder\n"},
		"orphans": {files: map[string]string{"sitemap.xml": indexOf(home + "sitemap-a.xml"), "sitemap-a.xml": a, "sitemap-b.xml": b}, args: []string{"{d}"},
			want: "{d}/sitemap-b.xml: warning: document-orphan: is named by no index and no robots.txt of the folder\n"},
		"no index":     {files: map[string]string{"sitemap.xml": page, "sitemap-b.xml": b}, args: []string{"{d}"}, stderr: "with 2 pages: 0 errors, 0 warnings"},
		"empty folder": {files: map[string]string{"a.html": "a"}, args: []string{"{d}"}, stderr: "Error: {d}: there is no sitemap and no robots.txt in it\n", status: 2},
		"folder with base": {files: map[string]string{"sitemap.xml": indexOf(home+"docs/sitemap-a.xml", home+"docs/sitemap-c.xml"), "sitemap-a.xml": urlsetOf(home + "docs/a")},
			args: []string{"--base-url", home + "docs/", "{d}"}, want: "{d}/sitemap.xml:4: error: document-missing: names a document that is not in {d}: https://example.com/docs/sitemap-c.xml\n", status: 1},
		"robots.txt that names what is not there": {files: map[string]string{"robots.txt": "Sitemap: https://example.com/x.xml\n"}, args: []string{"{d}"},
			want: "{d}/robots.txt: warning: document-missing: names a document that was not checked, as it is not in the folder: https://example.com/x.xml\n"},
		"nested indexes": {files: map[string]string{"sitemap.xml": indexOf(home + "sitemap-a.xml"), "sitemap-a.xml": indexOf(home + "sitemap-b.xml"), "sitemap-b.xml": b}, args: []string{"{d}"},
			want: "{d}/sitemap.xml:3: error: index-in-index: names a document that is an index itself; an index lists documents of pages alone: https://example.com/sitemap-a.xml\n", status: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := checkFolder(t, test.files)
			for i := range test.args {
				test.args[i] = strings.ReplaceAll(test.args[i], "{b}", filepath.Base(dir))
			}
			r := inFolder(t, dir, test.stdin, test.args...)
			same := r.stdout == test.want
			if !strings.HasSuffix(test.want, "\n") {
				same = strings.Contains(r.stdout, test.want)
			}
			if !same || !strings.Contains(r.stderr, test.stderr) || r.status != test.status {
				t.Errorf("got status %d\n%s%s, want %d\n%s%s", r.status, r.stdout, r.stderr, test.status, test.want, test.stderr)
			}
		})
	}
}

// TestCheckIndexDates is what an index says of its children's dates.
func TestCheckIndexDates(t *testing.T) {
	child := strings.Replace(urlsetOf("https://example.com/"), "</loc>", "</loc><lastmod>2024-05-02T10:00:00+02:00</lastmod>", 1)
	const warning = "{d}/i.xml:3: warning: index-lastmod: has the lastmod \"{m}\" for a document with a page of 2024-05-02T08:00:00Z, so readers may not come for it: https://example.com/a.xml\n"
	for date, wrong := range map[string]bool{
		"2024-05-02": false, "2024-05-01": false, "2024-04-30": true, "2024-05-02T08:00:00Z": false, "2024-05-02T09:59:59+02:00": true, "2026-05-02": false,
	} {
		index := strings.Replace(indexOf("https://example.com/a.xml"), "</loc>", "</loc><lastmod>"+date+"</lastmod>", 1)
		dir := checkFolder(t, map[string]string{"i.xml": index, "a.xml": child})
		want := ""
		if wrong {
			want = strings.ReplaceAll(warning, "{m}", date)
		}
		if r := inFolder(t, dir, "", "{d}/i.xml"); r.stdout != want || r.status != 0 {
			t.Errorf("%s: got %+v, want %q", date, r, want)
		}
		s := newCheckSite(t, nil)
		s.answers = map[string]http.HandlerFunc{
			"/i.xml": sendsXML(strings.ReplaceAll(index, "https://example.com", s.URL)), "/a.xml": sendsXML(strings.ReplaceAll(child, "https://example.com", s.URL)),
		}
		want = strings.NewReplacer("{d}", s.URL, "https://example.com", s.URL).Replace(want)
		if r := s.check(t, "{s}/i.xml"); r.stdout != want || r.status != 0 {
			t.Errorf("%s: got %+v, want %q", date, r, want)
		}
	}
}

// TestCheckBombs are documents that are larger than they look.
func TestCheckBombs(t *testing.T) {
	var entities strings.Builder
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&entities, "<!ENTITY lol%d %q>", i, strings.Repeat(fmt.Sprintf("&lol%d;", i-1), 10))
	}
	head := `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	entry := "<url><loc>https://example.com/</loc></url>\n"
	for name, test := range map[string]struct{ document, want string }{
		"a billion laughs": {`<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol0 "lol">` + entities.String() + `]><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>&lol9;</loc></url></urlset>`, "error: doctype: "},
		"a file's content": {`<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>&b;</loc></url></urlset>`, "error: doctype: "},
		"10 GB of zeros":   {strings.Repeat(gzipped(strings.Repeat("\x00", 10_000_000)), 1000), "error: "},
		"10 GB of pages":   {gzipped(head) + strings.Repeat(gzipped(strings.Repeat(entry, 200_000)), 1200), "error: too-long: "},
		"a long tag":       {head + "<url " + strings.Repeat("a", 8<<20) + "></url></urlset>", "error: too-large: "},
		"deep":             {head + strings.Repeat("<url>", 1<<20), "error: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := runCommand(t.Context(), strings.NewReader(test.document), "check", "-")
			if r.status != 1 || !strings.Contains(r.stdout, test.want) || len(r.stdout) > 100_000 || !strings.Contains(r.stderr, "checked 1 document") {
				t.Errorf("got status %d\n%.3000s%s, want %q", r.status, r.stdout, r.stderr, test.want)
			}
		})
	}
}

// TestCheckLinks is that links are followed within a folder, and not out of it.
func TestCheckLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // symbolic links are for administrators there
	}
	outside := checkFolder(t, map[string]string{"sitemap-secret.xml": urlsetOf("https://example.com/secret")})
	dir := checkFolder(t, map[string]string{
		"sitemap.xml": "-> real.xml", "real.xml": urlsetOf("https://example.com/"), "round": "-> .", "sitemap-gone.xml": "-> nosuch",
		"sitemap-out.xml": "-> " + filepath.Join(outside, "sitemap-secret.xml"),
	})
	r := inFolder(t, dir, "", "{d}")
	if r.status != 0 || !strings.Contains(r.stderr, "checked 2 documents with 2 pages") {
		t.Errorf("got %+v", r)
	}
}

// TestCheckDeepFolder is a folder without a bottom, nearly.
func TestCheckDeepFolder(t *testing.T) {
	dir := checkFolder(t, map[string]string{strings.Repeat("d/", maxCheckDepth+2) + "sitemap.xml": urlsetOf("https://example.com/"), "sitemap.xml": urlsetOf("https://example.com/")})
	r := inFolder(t, dir, "", "{d}")
	if r.status != exitFailed || !strings.Contains(r.stderr, "folders are nested too deep") || !strings.Contains(r.stderr, "checked 1 document") {
		t.Errorf("got %+v", r)
	}
}

// TestCheckUnreadable is what cannot be read: nothing else is lost by it.
func TestCheckUnreadable(t *testing.T) {
	dir := checkFolder(t, map[string]string{"sitemap.xml": urlsetOf("https://example.com/"), "sitemap-a.xml": urlsetOf("https://example.com/a")})
	file := filepath.Join(dir, "sitemap-a.xml")
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(file); err == nil {
		f.Close() // the tests run as root, or where modes mean nothing: make it a loop
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(file, fs.ModePerm); err != nil {
			t.Fatal(err)
		}
	}
	r := inFolder(t, dir, "", "{d}/sitemap.xml", "{d}/sitemap-a.xml")
	if r.status != exitFailed || !strings.Contains(r.stderr, "checked 1 document with 1 page") || !strings.Contains(r.stderr, "sitemap-a.xml") {
		t.Errorf("got %+v", r)
	}
}

// TestCheckFolderFetched is that what a folder lacks comes from the network with
// --fetch alone.
func TestCheckFolderFetched(t *testing.T) {
	s := newCheckSite(t, map[string]http.HandlerFunc{"/b.xml": sendsXML(urlsetOf("{s}/b")), "/a": sendsPage(""), "/b": sendsPage("")})
	dir := checkFolder(t, map[string]string{"sitemap.xml": indexOf(s.URL+"/a.xml", s.URL+"/b.xml"), "a.xml": urlsetOf(s.URL + "/a")})
	r := inFolder(t, dir, "", "--base-url", s.URL, "{d}")
	if want := "{d}/sitemap.xml:4: error: document-missing: names a document that is not in {d}: " + s.URL + "/b.xml\n"; r.stdout != want {
		t.Errorf("got %+v, want %q", r, want)
	}
	r = inFolder(t, dir, "", "--base-url", s.URL, "--fetch", "--rate", "1000/s", "{d}")
	if r.stdout != "" || r.status != 0 || !strings.Contains(r.stderr, "with 2 pages, asked for 2: 0 errors, 0 warnings") {
		t.Errorf("got %+v", r)
	}
	r = inFolder(t, dir, "", "--fetch", "--rate", "1000/s", "{d}")
	if want := "sitemap.xml:4: error: document-unreachable: names a document that cannot be had: " + errWebPrivate.Error(); r.status != 1 || !strings.Contains(r.stdout, want) {
		t.Errorf("got %+v, want %q", r, want)
	}
}
