package robotstxt

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

const sitemap = "https://example.com/sitemap.xml"

func TestMerge(t *testing.T) {
	const line = "Sitemap: " + sitemap
	for _, test := range []struct{ name, body, want string }{
		{"empty", "", line + "\n"},
		{"BOM alone", bom, bom + line + "\n"},
		{"blank lines alone", "\n\n", "\n\n" + line + "\n"},
		{"one blank line", "\r\n", "\r\n\r\n" + line + "\r\n"},
		{"LF", "User-agent: *\nDisallow: /x\n", "User-agent: *\nDisallow: /x\n\n" + line + "\n"},
		{"CR LF", "User-agent: *\r\nDisallow:\r\n", "User-agent: *\r\nDisallow:\r\n\r\n" + line + "\r\n"},
		{"CR", "User-agent: *\rDisallow:\r", "User-agent: *\rDisallow:\r\n\n" + line + "\n"},
		{"LF, no last line end", "User-agent: *\nDisallow: /x", "User-agent: *\nDisallow: /x\n\n" + line + "\n"},
		{"CR LF, no last line end", "User-agent: *\r\nDisallow: /x", "User-agent: *\r\nDisallow: /x\r\n\r\n" + line + "\r\n"},
		{"no line end at all", "User-agent: *", "User-agent: *\n\n" + line + "\n"},
		{"a blank line already", "Disallow:\n\n", "Disallow:\n\n" + line + "\n"},
		{"a blank line in CR LF", "Disallow:\r\n\r\n", "Disallow:\r\n\r\n" + line + "\r\n"},
		{"a last line of spaces", "Disallow:\n  ", "Disallow:\n  \n\n" + line + "\n"},
		{"BOM", bom + "Disallow: /x\n", bom + "Disallow: /x\n\n" + line + "\n"},
		{"Latin-1", "# f\xfcr\n", "# f\xfcr\n\n" + line + "\n"},
		{"DOS end of file", "Disallow:\r\n\x1a", "Disallow:\r\n\x1a\r\n\r\n" + line + "\r\n"},

		{"other sitemaps", "Sitemap: https://example.com/a.xml\n", "Sitemap: https://example.com/a.xml\n\n" + line + "\n"},
		{"a longer URL", line + ".gz\n", line + ".gz\n\n" + line + "\n"},
		{"other case of the URL", "Sitemap: " + strings.ToUpper(sitemap), "Sitemap: " + strings.ToUpper(sitemap) + "\n\n" + line + "\n"},
		{"commented out", "#" + line, "#" + line + "\n\n" + line + "\n"},
		{"within a comment", "Disallow: # " + line, "Disallow: # " + line + "\n\n" + line + "\n"},
		{"without a colon", "Sitemap " + sitemap, "Sitemap " + sitemap + "\n\n" + line + "\n"},

		{"there", line, line},
		{"there, in the middle", "a\n" + line + "\nb", "a\n" + line + "\nb"},
		{"there, CR", "a\r" + line + "\rb\r", "a\r" + line + "\rb\r"},
		{"there, CR LF", "a\r\n" + line + "\r\n", "a\r\n" + line + "\r\n"},
		{"there, BOM", bom + line, bom + line},
		{"there, white space", " \tSiteMap\t :" + sitemap + "\t ", " \tSiteMap\t :" + sitemap + "\t "},
		{"there, comment", "SITEMAP:" + sitemap + "#x", "SITEMAP:" + sitemap + "#x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := []byte(test.body)
			got := Merge(body, sitemap)
			if string(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if string(body) != test.body {
				t.Errorf("the body became %q", body)
			}
			if again := Merge(got, sitemap); !bytes.Equal(again, got) {
				t.Errorf("merged twice: got %q, want %q", again, got)
			}
		})
	}
}

func TestMergeSeveral(t *testing.T) {
	const feed = "https://example.com/sitemap.atom"
	const line, feedLine = "Sitemap: " + sitemap + "\n", "Sitemap: " + feed + "\n"
	for _, test := range []struct{ name, body, want string }{
		{"empty", "", line + feedLine},
		{"CR LF", "Disallow:\r\n", "Disallow:\r\n\r\nSitemap: " + sitemap + "\r\nSitemap: " + feed + "\r\n"},
		{"the sitemap is there", line + "Disallow:\n", line + "Disallow:\n\n" + feedLine},
		{"the feed is there", feedLine, feedLine + "\n" + line},
		{"both are there", feedLine + "Disallow:\n" + line, feedLine + "Disallow:\n" + line},
	} {
		got := Merge([]byte(test.body), sitemap, feed)
		if again := Merge(got, sitemap, feed); string(got) != test.want || !bytes.Equal(again, got) {
			t.Errorf("%s: got %q, then %q, want %q", test.name, got, again, test.want)
		}
	}
	if got := Merge([]byte("a\n")); string(got) != "a\n" {
		t.Errorf("no URLs: got %q", got)
	}
}

func TestMergeNoText(t *testing.T) {
	for _, body := range []string{"\xff\xfea\x00", "\xfe\xff\x00a", "a\x00\n\x00", "\x1f\x8b\x08", "a\x7f\x0b"} {
		if got := Merge([]byte(body), sitemap); string(got) != body {
			t.Errorf("%q: got %q", body, got)
		}
	}
}

func TestNew(t *testing.T) {
	const want = "User-agent: *\nDisallow:\n\nSitemap: https://example.com/sitemap.xml\n"
	if got, made := Naming("", nil, sitemap); !made || string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, made := Naming("text/html", []byte("<html>"), sitemap, sitemap+".atom"); !made || string(got) != want+"Sitemap: "+sitemap+".atom\n" {
		t.Errorf("two URLs: got %q", got)
	}
	if got, made := Naming("", bytes.Repeat([]byte("#\n"), MaxBody), sitemap); made || len(got) != 2*MaxBody {
		t.Errorf("too long: got %d bytes, made %t", len(got), made)
	}
}

func TestContentTypes(t *testing.T) {
	const page, rules = " \r\n<!DOCTYPE html><title>x</title>", "User-agent: *\n"
	for _, test := range []struct {
		contentType, body string
		html, text        bool
	}{
		{"text/plain", rules, false, true},
		{"text/plain; charset=utf-8", rules, false, true},
		{"Text/Plain ;charset=ISO-8859-1", rules, false, true},
		{"text/plain; charset", rules, false, true},
		{"text/plain; charset=UTF-16LE", rules, false, false},
		{"text/plain; charset=utf-32", rules, false, false},
		{"text/markdown", rules, false, true},
		{"", rules, false, true},
		{"application/octet-stream", rules, false, true},
		{"", "", false, true},

		{"text/html", rules, true, false},
		{"TEXT/HTML; charset=utf-8", rules, true, false},
		{"application/xhtml+xml", rules, true, false},
		{"", page, true, true},
		{"application/octet-stream", page, true, true},
		{"text/plain", page, true, true},
		{"text/plain", bom + page, true, true},
		{"", "<html lang=en>", true, true},
		{"", "<!-- x --><html>", true, true},
		{"", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">`, true, true},
		{"", `<?xml version="1.0"?><urlset>`, false, true},
		{"", "# <html>", false, true},

		{"application/json", page, false, false},
		{"image/png", page, false, false},
		{"multipart/form-data", rules, false, false},
	} {
		if got := IsHTML(test.contentType, []byte(test.body)); got != test.html {
			t.Errorf("IsHTML(%q, %q): got %t, want %t", test.contentType, test.body, got, test.html)
		}
		if got := isText(test.contentType); got != test.text {
			t.Errorf("isText(%q): got %t, want %t", test.contentType, got, test.text)
		}
	}
}

// saysSame reports whether two robots.txt say the same to crawlers, besides Sitemap lines.
func saysSame(a, b []byte) bool {
	for _, crawler := range []string{"a", "b", "none"} {
		is, was := ReadRules(a, crawler), ReadRules(b, crawler)
		if is.String() != was.String() {
			return false
		}
	}
	return true
}

func FuzzMerge(f *testing.F) {
	for _, body := range []string{
		"", bom, "a", "a\n", "a\r\n", "a\r", "\n", "\r\n\r", "a\nb\r", "User-agent: *\r\nDisallow: /\r\n\r\nsitemap : " + sitemap + " # x", "\xff\xfe", "User-agent: \xe1",
		"User-agent: a\nUser-agent: b\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n", "User-agent: a\rDisallow: /x", bom + "User-agent: *\nDisallow: /x",
		"User-agent: a\r\nDisallow: /x\r\n\r\nSitemap: https://example.com/a.xml\r\nUser-agent: *",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := slices.Clone(body)
		got := Merge(body, sitemap, sitemap+".atom")
		if !bytes.Equal(body, before) || !bytes.HasPrefix(got, body) {
			t.Fatalf("got %.100q, and the body became %.100q", got, body)
		}
		if again := Merge(got, sitemap, sitemap+".atom"); !bytes.Equal(again, got) {
			t.Fatal("merging twice changes it")
		}
		if all := Sitemaps(got); !bytes.ContainsFunc(body, isBinary) && (!slices.Contains(all, sitemap) || !slices.Contains(all, sitemap+".atom") || !saysSame(got, body)) {
			t.Fatalf("%.100q became %.100q", body, got)
		}
	})
}

func TestSitemaps(t *testing.T) {
	body := "\xEF\xBB\xBFsitemap: https://example.com/a.xml\r\nUser-agent: *\nDisallow: /x\nSITEMAP : /b.xml # ours\rSitemap:\n#Sitemap: no\nSitemap: https://example.com/c.xml"
	want := []string{"https://example.com/a.xml", "/b.xml", "https://example.com/c.xml"}
	if got := Sitemaps([]byte(body)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
