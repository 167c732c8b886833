package html

import (
	"os"
	"strings"
	"testing"
)

// TestCorpus: of two editions of a manual, and of a blog in each of two themes, the pages whose text was changed have another
// sum of blocks, and those have none on which only links, stamps, hashes and figures of the build are others.
func TestCorpus(t *testing.T) {
	for page, isChanged := range map[string]bool{
		"postgresql/logical-replication-security":      true,  // a paragraph was added
		"postgresql/textsearch-limitations":            true,  // "(lexemes + operators)" became "(lexemes only)"
		"postgresql/infoschema-routine-sequence-usage": true,  // a column of a table was added
		"postgresql/sql-do":                            true,  // "$$DECLARE" became "$$ DECLARE"
		"postgresql/release-prior":                     true,  // another number, in a table as well as in the heading
		"postgresql/tutorial-start":                    false, // links and figures of the build
		"postgresql/sql-dropuser":                      false,
		"postgresql/gin-limit":                         false,
		"landscape/wells":                              true, // "31 metres deep" became "33 metres deep"
		"landscape/rain":                               false,
		"a4/wells":                                     true, // as in the other theme
		"a4/rain":                                      false,
	} {
		blocks := func(edition string) uint64 {
			folder, name, _ := strings.Cut(page, "/")
			body, err := os.ReadFile("testdata/" + folder + "/" + edition + "/" + name + ".html")
			if err != nil {
				t.Fatal(err)
			}
			return Parse(body, withHeader("Content-Type", "text/html; charset=utf-8")).Blocks
		}
		if got := blocks("before") != blocks("after"); got != isChanged {
			t.Errorf("%s: the sums differ: %t", page, got)
		}
	}
}
