package page

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, test := range []struct {
		path    string
		isFile  bool
		ending  string // that is cut
		without string // the name of an index, too
	}{
		{"/a.html", true, ".html", "/a"},
		{"/a.HTM", true, ".HTM", "/a"},
		{"/a.xhtml", true, ".xhtml", "/a"},
		{"/a.shtml", false, ".shtml", "/a"},
		{"/a.php", false, ".php", "/a"},
		{"/a.asp", false, ".asp", "/a"},
		{"/a.ASPX", false, ".ASPX", "/a"},
		{"/a.jsp", false, ".jsp", "/a"},
		{"/a.txt", false, "", "/a.txt"},
		{"/ahtml", false, "", "/ahtml"},
		{"/a.html/", false, "", "/a.html/"},
		{"/a.html.gz", false, "", "/a.html.gz"},
		{"/a.php.html", true, ".html", "/a.php"},
		{"/", false, "", "/"},
		{"", false, "", ""},
		{"/a/index.html", true, ".html", "/a"},
		{"/a/Index", false, "", "/a"},
		{"/a/index.php", false, ".php", "/a"},
		{"/a/Default.aspx", false, ".aspx", "/a"},
		{"/index.html", true, ".html", ""},
		{"index.html", true, ".html", "index"},
		{"/a-index.html", true, ".html", "/a-index"},
		{"/a/index/", false, "", "/a/index/"},
		{"/index/default.htm", true, ".htm", "/index"},
	} {
		name := CutEnding(test.path)
		if name+test.ending != test.path || IsFile(test.path) != test.isFile || CutIndex(name) != test.without {
			t.Errorf("%s: got %q, and %q, %t", test.path, name, CutIndex(name), IsFile(test.path))
		}
	}
}

func TestEndings(t *testing.T) {
	want := []string{"/index.html", "/index.htm", "/index.php", "/index", ".html", ".htm", ".php", "/", ""}
	got := UsualEndings()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, shorter := range got {
		for _, longer := range got[i+1:] {
			if longer != shorter && strings.HasSuffix(longer, shorter) {
				t.Errorf("%q comes before %q", shorter, longer)
			}
		}
	}
}
