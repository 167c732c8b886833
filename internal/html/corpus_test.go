package html

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestCorpus: of two editions of a manual, and of a blog in each of two themes, the pages whose text was changed have another
// sum of blocks, and those have none on which only links, stamps, hashes and figures of the build are others. Which these are
// says the list, by words that one edition has and the other one lacks; a tree of the page, of which nothing else is asked
// here, tells whether the list is right.
func TestCorpus(t *testing.T) {
	for _, test := range []struct{ folder, page, old, new string }{
		{"postgresql", "logical-replication-security", "", "The name of the output plugin used"},
		{"postgresql", "textsearch-limitations", "(lexemes + operators)", "(lexemes only)"},
		{"postgresql", "infoschema-routine-sequence-usage", "", "sequence_catalog sql_identifier"},
		{"postgresql", "sql-do", "$$DECLARE", "$$ DECLARE"},
		{"postgresql", "release-prior", "E.20. Prior Releases", "E.22. Prior Releases"}, // in a table, as well as in the heading
		{"postgresql", "tutorial-start", "", ""},
		{"postgresql", "sql-dropuser", "", ""},
		{"postgresql", "gin-limit", "", ""},
		{"landscape", "wells", "31 metres deep", "33 metres deep"},
		{"landscape", "rain", "", ""},
		{"a4", "wells", "31 metres deep", "33 metres deep"},
		{"a4", "rain", "", ""},
	} {
		name := test.folder + "/" + test.page
		before := readFile(t, "testdata/"+test.folder+"/before/"+test.page+".html")
		after := readFile(t, "testdata/"+test.folder+"/after/"+test.page+".html")
		if bytes.Equal(before, after) {
			t.Errorf("%s: both editions are the same file", name)
		}
		checkEdition(t, name, before, test.old, test.new)
		checkEdition(t, name, after, test.new, test.old)
		isChanged := test.old != test.new
		if !isChanged && unlinked(t, before) != unlinked(t, after) {
			t.Errorf("%s: the list says that nothing has changed:\n%s\n%s", name, unlinked(t, before), unlinked(t, after))
		}
		if got := blocksOf(before) != blocksOf(after); got != isChanged {
			t.Errorf("%s: the sums differ: %t", name, got)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func blocksOf(body []byte) uint64 {
	pg := testPage
	pg.Header = http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	return Parse(body, pg).Blocks
}

// checkEdition: an edition has some words, and lacks those of the other one.
func checkEdition(t *testing.T, name string, body []byte, has, lacks string) {
	t.Helper()
	text := treeText(t, body, "script", "style")
	if !strings.Contains(text, has) || lacks != "" && strings.Contains(text, lacks) {
		t.Errorf("%s: the list says that it has %q, and not %q", name, has, lacks)
	}
}

// unlinked returns the text of a page without that of its links, and without digits.
func unlinked(t *testing.T, body []byte) string {
	t.Helper()
	return strings.Map(func(c rune) rune {
		if '0' <= c && c <= '9' {
			return -1
		}
		return c
	}, treeText(t, body, "script", "style", "title", "a"))
}

// treeText returns the text of a page but for that of some elements, with one space for all white space.
func treeText(t *testing.T, body []byte, without ...string) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	skipped := make(map[*html.Node]bool)
	var text strings.Builder
	for node := range root.Descendants() {
		isSkipped := skipped[node.Parent]
		for _, name := range without {
			isSkipped = isSkipped || node.Type == html.ElementNode && node.Data == name
		}
		skipped[node] = isSkipped
		if node.Type == html.TextNode && !isSkipped {
			text.WriteString(node.Data)
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
