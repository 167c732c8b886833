package page

import (
	"slices"
	"strings"
	"testing"
)

func TestAliases(t *testing.T) {
	for path, want := range map[string]string{
		"/":           "/ /index /index.html /index.htm /index.php",
		"/index.html": "/ /index /index.html /index.htm /index.php",
		"/b/":         "/b /b/ /b/index /b/index.html /b/index.htm /b/index.php /b.html /b.htm /b.php",
		"/b.php?x=1":  "/b?x=1 /b/?x=1 /b/index?x=1 /b/index.html?x=1 /b/index.htm?x=1 /b/index.php?x=1 /b.html?x=1 /b.htm?x=1 /b.php?x=1",
		"/b.txt":      "/b.txt /b.txt/ /b.txt/index /b.txt/index.html /b.txt/index.htm /b.txt/index.php /b.txt.html /b.txt.htm /b.txt.php",
	} {
		aliases := Aliases(path)
		if got := strings.Join(aliases, " "); got != want || !slices.Contains(aliases, path) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
		for _, alias := range aliases {
			if Bare(alias) != Bare(path) {
				t.Errorf("%s and %s: %s and %s", path, alias, Bare(path), Bare(alias))
			}
		}
	}
}
