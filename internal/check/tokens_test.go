package check

import (
	"bytes"
	"encoding/xml"
	"errors"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readLocs is the text of each loc by the tokenizer.
func readLocs(r io.Reader) (locs []string, encoding string, err error) {
	t := newTokenizer(r, maphash.MakeSeed())
	var open []bool // whether an element is a loc
	for {
		kind, err := t.next()
		if err != nil || kind == tokenEOF {
			return locs, t.encoding, err
		}
		switch kind {
		case tokenStart:
			open = append(open, string(t.name.local) == "loc")
			if open[len(open)-1] {
				locs = append(locs, "")
			}
		case tokenText:
			if open[len(open)-1] {
				locs[len(locs)-1] += string(t.text)
			}
		case tokenEnd:
			open = open[:len(open)-1]
		}
	}
}

// standardLocs is readLocs by encoding/xml.
func standardLocs(body []byte) (locs []string, err error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	var open []bool
	for {
		token, err := d.Token()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return locs, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			open = append(open, token.Name.Local == "loc")
			if open[len(open)-1] {
				locs = append(locs, "")
			}
		case xml.CharData:
			if len(open) > 0 && open[len(open)-1] {
				locs[len(locs)-1] += string(token)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// plainFlaws are what encoding/xml refuses, too. It lets much else pass: several
// roots, text outside of them, attributes twice, prefixes of nothing.
var plainFlaws = []flaw{errEnd, errEndTag, errTag, errValue, errEntity, errBrackets, errComment}

func FuzzTokens(f *testing.F) {
	for _, d := range documents {
		if len(d.body) < 3000 {
			f.Add([]byte(d.body))
		}
	}
	for _, s := range []string{
		"<a><loc>\r\n\r&#13;<![CDATA[\r\n<&]]></loc></a>", "<a><loc>a<!-- b -->c<?d e?>f<b>g</b>h</loc></a>",
		"<a b='>' c=\">\"/>", "<a b = 'x'\n/>", "<a b='x'c='y'/>", "<a b/>", "<a b=x/>", "<a b='<'/>", "<a b='&lt;&#60;]]>'/>",
		"<a/ >", "</a>", "<a></a\n>", "< a/>", "<a></ a>", "<a><!-- -- --></a>", "<a><!--- --></a>", "<a><!----></a>", "<a><!---></a>",
		"<a><loc>]]</loc><loc>]]&gt;</loc></a>", "<a:b:c/>", "<:a/>", "<a:/>", "<é/>", "<a·/>", "<a>&#x10FFFF;&#x110000;</a>",
		"<a>&#xFFFE;</a>", "<a>\uFFFE</a>", "<a>&#;</a>", "<a>&#x;</a>", "<a>&amp</a>", "<a>&;</a>", "<?xml version='1.0'?><a/>",
		"<?xml version='1.1'?><a/>", "<?xml encoding='utf-8'?><a/>", "<?XML?><a/>", "<a><?b?></a>", "<a><??></a>", "<a", "<a b='", "<!", "<",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, encoding, err := readLocs(bytes.NewReader(body))
		slow, _, slowErr := readLocs(iotest.OneByteReader(bytes.NewReader(body)))
		if !errors.Is(slowErr, err) || !slices.Equal(slow, got) {
			t.Fatalf("read byte by byte: got %q, %v, want %q, %v", slow, slowErr, got, err)
		}
		if encoding != "" && !strings.EqualFold(encoding, "utf-8") {
			return // encoding/xml refuses it at once
		}
		want, standardErr := standardLocs(body)
		switch {
		case err == nil && standardErr != nil:
			// Names may have more characters since XML 1.0's fifth edition.
			if strings.Contains(standardErr.Error(), "invalid XML name") && !isASCII(body) {
				return
			}
			t.Fatalf("encoding/xml says %v", standardErr)
		case err == nil && !slices.Equal(got, want):
			t.Fatalf("got %q, want %q", got, want)
		case err != nil && standardErr == nil:
			if flaw := flaw(""); errors.As(err, &flaw) && slices.Contains(plainFlaws, flaw) && bytes.IndexByte(body, ':') < 0 {
				t.Fatalf("got %v, but encoding/xml takes it", err)
			}
		}
	})
}

func isASCII(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c >= 0x80 })
}
