package document

import (
	"strings"
	"testing"
)

func TestHeadline(t *testing.T) {
	names := []string{"The Example Times", "Home - News & more", "www.example.com", "example.com", ""}
	for title, want := range map[string]string{
		"A title":                             "A title",
		"A title - The Example Times":         "A title",
		"A title | THE EXAMPLE TIMES":         "A title",
		"A title – example.com":               "A title",
		"A title — www.Example.com":           "A title",
		"A title · The Example Times":         "A title",
		"A title :: The Example Times":        "A title",
		"A title  -   The Example Times":      "A title",
		"The Example Times | A title":         "A title",
		"example.com - A title - example.com": "A title",

		// What is between stays, and what only looks like a separator or a name.
		"A title - Politics - The Example Times":    "A title - Politics",
		"A title | The Example Times | example.com": "A title",
		"A title - Home - News & more":              "A title",
		"A - B | C":                                 "A - B | C",
		"A title-The Example Times":                 "A title-The Example Times",
		"A title -The Example Times":                "A title -The Example Times",
		"A title, The Example Times":                "A title, The Example Times",
		"A title - The Example Times, 2026":         "A title - The Example Times, 2026",
		"Why The Example Times - and others - won":  "Why The Example Times - and others - won",

		// Something is left.
		"":                                      "",
		"The Example Times":                     "The Example Times",
		" - The Example Times":                  "- The Example Times",
		"The Example Times - The Example Times": "The Example Times",
		"The Example Times | example.com":       "The Example Times",
		"שלום - The Example Times":              "שלום",
		"👩‍👧 | example.com":                     "👩‍👧",
		"{{.Host}} | <b> & </b> - example.com":  "{{.Host}} | <b> & </b>",
		"A \xff title - example.com":            "A \uFFFD title",
	} {
		if got := headline(clean(title), names); got != want {
			t.Errorf("%q: got %q, want %q", title, got, want)
		}
	}
	if got := headline("A - B", nil); got != "A - B" {
		t.Errorf("without names: got %q", got)
	}
	// Letters of other lengths are the same in another case.
	if got := headline("A - ſITE", []string{"site"}); got != "A" {
		t.Errorf("folded: got %q", got)
	}
}

func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"white space", "\n A\t\u2028title \u00a0\r\n", "A title"},
		{"controls", "a\x00b\x1b[31mc\u0085d\x7f\u009b", "ab[31mc d"},
		{"not UTF-8", "a\xff\xc3b", "a\uFFFD\uFFFDb"},
		{"no characters of XML", "a\uFFFEb\uFFFFc\U0001FFFFd", "abcd"},
		{"overrides of direction", "\u202eabc\u202c\u2066d\u2069", "abcd"},
		{"right to left, with a mark", "שלום\u200f!", "שלום\u200f!"},
		{"emoji of several characters", "👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿"},
		{"as long as may be", strings.Repeat("ü", maxTitle), strings.Repeat("ü", maxTitle)},
		{"longer", strings.Repeat("ü", 10_000), strings.Repeat("ü", maxTitle-1) + "…"},
		{"longer, cut at a blank", strings.Repeat("a", maxTitle-2) + " bcd", strings.Repeat("a", maxTitle-2) + "…"},
		{"nothing", " \x00\n", ""},
	} {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestEndings: the name of the site is what more than half of the titles end in, and four at least.
func TestEndings(t *testing.T) {
	for titles, want := range map[string]string{
		"a | S;b | S;c | S;d | S;e":       "S",
		"a | S;b | S;c | S;d | S;e;f;g;h": "",
		"a | S;b - S;c | T - S":           "",
		"a;b;c;d;e":                       "",
	} {
		e := endings{count: make(map[string]int)}
		for title := range strings.SplitSeq(titles, ";") {
			e.add(title)
		}
		if got := e.most(); got != want {
			t.Errorf("%s: got %q, want %q", titles, got, want)
		}
	}
}
