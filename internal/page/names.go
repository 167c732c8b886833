package page

import (
	"slices"
	"strings"
)

// endings are what the names of pages end in.
var endings = []struct {
	text    string
	isFile  bool // of a file with HTML; else of a program that writes it
	isUsual bool // so common that a page may be looked for under a name with it
}{
	{".html", true, true},
	{".htm", true, true},
	{".php", false, true},
	{".xhtml", true, false},
	{".shtml", false, false},
	{".asp", false, false},
	{".aspx", false, false},
	{".jsp", false, false},
}

// indexNames are the names, without their endings, of what servers show for a folder, the usual one first. The other is
// that of IIS.
var indexNames = []string{"index", "default"}

// IsFile reports whether a name, in any case, is that of a file with HTML.
func IsFile(name string) bool {
	for i := range endings {
		if e := &endings[i]; e.isFile && hasSuffixFold(name, e.text) {
			return true
		}
	}
	return false
}

// CutEnding returns a path or name without the ending, in any case, of a file with HTML or of a program that writes it.
func CutEnding(path string) string {
	for i := range endings {
		if ending := endings[i].text; hasSuffixFold(path, ending) {
			return path[:len(path)-len(ending)]
		}
	}
	return path
}

// CutIndex returns a path, whose ending was cut, without the name of what is shown for its folder, and without the slash
// before that.
func CutIndex(path string) string {
	for _, name := range indexNames {
		slash := len(path) - len(name) - 1
		if slash >= 0 && path[slash] == '/' && strings.EqualFold(path[slash+1:], name) {
			return path[:slash]
		}
	}
	return path
}

// hasSuffixFold is strings.HasSuffix without regard to the case of letters; a suffix begins with a dot.
func hasSuffixFold(name, suffix string) bool {
	dot := len(name) - len(suffix)
	return dot >= 0 && name[dot] == '.' && strings.EqualFold(name[dot:], suffix)
}

// UsualEndings returns what is often left out of the path of a page, or added to it. A longer one comes before those that
// it ends in, and "" last.
func UsualEndings() []string {
	var usual []string
	for _, e := range endings {
		if e.isUsual {
			usual = append(usual, e.text)
		}
	}
	var all []string
	for _, ending := range append(usual, "") {
		all = append(all, "/"+indexNames[0]+ending)
	}
	all = append(all, usual...)
	return append(all, "/", "")
}

// IsFirstPage reports whether a query asks for the first page of a list.
func IsFirstPage(query string) bool {
	name, value, _ := strings.Cut(query, "=")
	return (value == "0" || value == "1") && slices.Contains([]string{"page", "paged", "p", "pg"}, name)
}
