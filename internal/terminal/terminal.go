// Package terminal makes untrusted text fit to be shown, and prints JSON with such text: nothing in it controls the
// terminal.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
)

// Clean escapes what is not printable, such as control characters, line ends and marks of writing
// direction, as JSON does: JSON keeps its meaning.
func Clean(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		// Escapes of JSON have four digits, so characters beyond U+FFFF are two of them (RFC 8259, section 7).
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// Clip returns the first 2,048 bytes of a text, as valid UTF-8.
func Clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 2048)], "\uFFFD")
}

// PrintJSON prints valid JSON in columns: the members of an object below its name, and the
// elements of an array one after the other, each under the array's name.
func PrintJSON(w io.Writer, value []byte) error {
	var text bytes.Buffer // one error of w instead of one of each line
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber() // a float64 would print large numbers with an exponent
	printNext(columns, d, "", "")
	_ = columns.Flush()
	_, err := w.Write(text.Bytes())
	return err
}

// printNext prints the decoder's next value.
func printNext(w io.Writer, d *json.Decoder, indent, name string) {
	token, _ := d.Token()
	delim, isNested := token.(json.Delim)
	if !isNested {
		_, _ = fmt.Fprintf(w, "%s%s\t%s\n", indent, name, Clean(fmt.Sprint(token)))
		return
	}
	isObject := delim == '{'
	if isObject && name != "" {
		_, _ = fmt.Fprintln(w, indent+name)
		indent += "  "
	}
	for d.More() {
		if isObject {
			token, _ = d.Token()
			name = Clean(strings.ReplaceAll(fmt.Sprint(token), "_", " "))
		}
		printNext(w, d, indent, name)
	}
	_, _ = d.Token() // the end
}
