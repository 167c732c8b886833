package evidence

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// FuzzAttributes compares with what the tokenizer tells.
func FuzzAttributes(f *testing.F) {
	for _, s := range append([]string{
		`<a href=x REL="a b" href=y>`, `<link rel = 'x' hreflang href="" href=z/>`, `<a =href=x =rel>`, `<a/href/=x/rel=y/>`, `<a b='c>d'e href="x"rel=y>`,
		"<a\nhref\n=\nx\tHREF=y\f>", `<a href=>`, `<a href="x>`, `<a href=x`, `<a href='x'/ rel=/>`, `<a href="a&amp;b" rel>`, "<a hre\x00f=x href=\r\n>",
	}, seeds...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		z := html.NewTokenizer(bytes.NewReader(body))
		for {
			kind := z.Next()
			if kind == html.ErrorToken {
				return
			}
			if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
				continue
			}
			token := bytes.Clone(z.Raw())
			for _, names := range [][]string{anchorName, imageNames, metaNames, linkNames, {"b", "=href", "=", "c"}} {
				again := html.NewTokenizer(bytes.NewReader(token))
				if k := again.Next(); k != kind {
					t.Fatalf("%q: %v, %v", token, k, kind)
				}
				var got, want attributes
				got.read(again, again.Raw(), names)
				value := make(map[string][]byte)
				again = html.NewTokenizer(bytes.NewReader(token))
				again.Next()
				for more := true; more; {
					var key, v []byte
					if key, v, more = again.TagAttr(); key != nil {
						value[string(key)] = v
					}
				}
				for i, name := range names {
					want.value[i], want.has[i] = value[name]
					if got.has[i] != want.has[i] || !bytes.Equal(got.value[i], want.value[i]) || (got.value[i] == nil) != (len(want.value[i]) == 0) {
						t.Fatalf("%q: %s: got %q, %v, want %q, %v", token, strings.Join(names, " "), got.value[i], got.has[i], want.value[i], want.has[i])
					}
				}
			}
		}
	})
}
