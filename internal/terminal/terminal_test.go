package terminal

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

// TestClean is that nothing of a stranger's gets to a terminal but what it shows.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"Zoë ~ 世界":              "Zoë ~ 世界",
		"\x1b[31m\r\nb\x00\x7f": `\u001b[31m\u000d\u000ab\u0000\u007f`,
		"\u009b\u202e\u2028\t":  `\u009b\u202e\u2028\u0009`,
		"\xff":                  "\ufffd",
		"a\U000e0001":           `a\udb40\udc01`,
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// FuzzClean is that any text becomes a line of what can be shown, and JSON stays the same JSON.
func FuzzClean(f *testing.F) {
	f.Add("\x1b[31m\u009b\u202e\xff\U000e0001 \\u0041\"")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Clean(text) {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q has %q", Clean(text), r)
			}
		}
		var want, got string
		encoded, err := json.Marshal(text)
		if err == nil {
			err = errors.Join(json.Unmarshal(encoded, &want), json.Unmarshal([]byte(Clean(string(encoded))), &got))
		}
		if err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	})
}

// TestPrintJSON prints texts that strangers may have written.
func TestPrintJSON(t *testing.T) {
	const response = `{"sites":[{"site":"http://a.example","named_by":"visitors","pages":3,"last_refresh":{"duration_seconds":1e-7,"left_out":{"noindex":1,"\u001b":2,"<b>":3},"warnings":["one\tline","\u202egpj"]}},{"site":"http://b.example"}]}`
	const want = `sites
  site      http://a.example
  named by  visitors
  pages     3
  last refresh
    duration seconds  1e-7
    left out
      noindex  1
      \u001b   2
      <b>      3
    warnings   one\u0009line
    warnings   \u202egpj
sites
  site  http://b.example
`
	var got strings.Builder
	if err := PrintJSON(&got, []byte(response)); err != nil || got.String() != want {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, got.String(), want)
	}
}

// TestClip: a text is cut, not even in the midst of a letter.
func TestClip(t *testing.T) {
	long := strings.Repeat("x", 2047)
	for text, want := range map[string]string{
		"": "", "short": "short", long + "y": long + "y", long + "yz": long + "y", long + "ä": long + "\uFFFD", "a\xff": "a\uFFFD",
	} {
		if got := Clip(text); got != want {
			t.Errorf("%.20q…: got %d bytes, want %d", text, len(got), len(want))
		}
	}
}
