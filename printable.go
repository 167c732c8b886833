package sitemap

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable escapes control characters, line ends and marks of writing direction as JSON
// does, so that what strangers wrote cannot control a terminal, and JSON stays the same.
func printable(text string) string {
	plain := true
	for i := 0; plain && i < len(text); i++ {
		plain = ' ' <= text[i] && text[i] <= '~'
	}
	if plain {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := (r-0x10000)>>10, (r-0x10000)&0x3ff
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+high, 0xdc00+low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
