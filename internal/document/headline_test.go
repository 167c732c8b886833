package document

import (
	"strings"
	"testing"
	"unicode/utf8"
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

func FuzzHeadline(f *testing.F) {
	for _, title := range []string{"A - B", "B | A :: B", " - ", "B - B", "A – b\xff", "ſ · S"} {
		f.Add(title, "B", "s")
	}
	f.Fuzz(func(t *testing.T, title, name, other string) {
		title = clean(title)
		names := []string{name, other}
		got := headline(title, names)
		if !strings.Contains(title, got) || got == "" && title != "" {
			t.Errorf("%q: got %q", title, got)
		}
		if utf8.ValidString(title) && !utf8.ValidString(got) {
			t.Errorf("%q: got the invalid %q", title, got)
		}
		if again := headline(got, names); again != got {
			t.Errorf("%q: got %q, then %q", title, got, again)
		}
	})
}
