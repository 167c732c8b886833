package robotstxt

import (
	"bytes"
	"slices"
	"testing"
)

const sitemap = "https://example.com/sitemap.xml"

func TestMerge(t *testing.T) {
	const feed = "https://example.com/sitemap.atom"
	const line, feedLine = "Sitemap: " + sitemap + "\n", "Sitemap: " + feed + "\n"
	const lines = line + feedLine
	for _, test := range []struct{ name, body, want string }{
		{"empty", "", lines},
		{"BOM alone", bom, bom + "\n\n" + lines},
		{"blank lines alone", "\r\n\n", lines},
		{"LF", "User-agent: *\nDisallow: /x\n", "User-agent: *\nDisallow: /x\n\n" + lines},
		{"CR LF", "User-agent: *\r\nDisallow:\r\n", "User-agent: *\r\nDisallow:\n\n" + lines},
		{"CR", "User-agent: *\rDisallow:\r", "User-agent: *\rDisallow:\n\n" + lines},
		{"no last line end", "User-agent: *\nDisallow: /x", "User-agent: *\nDisallow: /x\n\n" + lines},
		{"a blank line already", "Disallow:\n\n", "Disallow:\n\n" + lines},
		{"a last line of spaces", "Disallow:\n  ", "Disallow:\n  \n\n" + lines},
		{"BOM", bom + "Disallow: /x\n", bom + "Disallow: /x\n\n" + lines},
		{"Latin-1", "# f\xfcr\n", "# f\xfcr\n\n" + lines},
		{"DOS end of file", "Disallow:\r\n\x1a", "Disallow:\r\n\x1a\n\n" + lines},

		{"other sitemaps", "Sitemap: https://example.com/a.xml\n", "Sitemap: https://example.com/a.xml\n\n" + lines},
		{"a longer URL", "Sitemap: " + sitemap + ".gz\n", "Sitemap: " + sitemap + ".gz\n\n" + lines},
		{"other case of the URL", "Sitemap: HTTPS" + sitemap[5:], "Sitemap: HTTPS" + sitemap[5:] + "\n\n" + lines},
		{"commented out", "#" + line, "#" + line + "\n" + lines},
		{"within a comment", "Disallow: # " + line, "Disallow: # " + line + "\n" + lines},
		{"without a colon", "Sitemap " + sitemap, "Sitemap " + sitemap + "\n\n" + lines},
		{"the sitemap is there", line + "Disallow:\n", line + "Disallow:\n\n" + feedLine},
		{"the feed is there", feedLine, feedLine + "\n" + line},

		{"there", lines, lines},
		{"there, amid others", "a\n" + feedLine + "b\n" + line + "c", "a\n" + feedLine + "b\n" + line + "c"},
		{"there, CR", "a\rSitemap: " + feed + "\rSitemap: " + sitemap + "\rb\r", "a\rSitemap: " + feed + "\rSitemap: " + sitemap + "\rb\r"},
		{"there, BOM and white space", bom + " \tSiteMap\t :" + sitemap + "\t \r\nSITEMAP:" + feed + "#x", bom + " \tSiteMap\t :" + sitemap + "\t \r\nSITEMAP:" + feed + "#x"},

		{"UTF-16", "\xff\xfea\x00", "\xff\xfea\x00"},
		{"gzip", "\x1f\x8b\x08", "\x1f\x8b\x08"},
		{"controls", "a\x7f\x0b", "a\x7f\x0b"},
	} {
		body := []byte(test.body)
		got := Merge(body, sitemap, feed)
		if string(got) != test.want || string(body) != test.body {
			t.Errorf("%s: got %q, want %q, and the body became %q", test.name, got, test.want, body)
		}
		if again := Merge(got, sitemap, feed); !bytes.Equal(again, got) {
			t.Errorf("%s: merged twice: got %q, want %q", test.name, again, got)
		}
	}
	if got := Merge([]byte("a\n")); string(got) != "a\n" {
		t.Errorf("no URLs: got %q", got)
	}
}

func TestNew(t *testing.T) {
	const want = "User-agent: *\nDisallow:\n\nSitemap: https://example.com/sitemap.xml\n"
	if got, made := Naming("", nil, sitemap); !made || string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, made := Naming("application/json", []byte("{}"), sitemap); made || string(got) != "{}\n\nSitemap: "+sitemap+"\n" {
		t.Errorf("of another type: got %q", got)
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
		html              bool
	}{
		{"text/plain", rules, false},
		{"text/plain; charset=utf-8", rules, false},
		{"Text/Plain ;charset=ISO-8859-1", rules, false},
		{"text/plain; charset", rules, false},
		{"text/markdown", rules, false},
		{"", rules, false},
		{"application/octet-stream", rules, false},
		{"", "", false},

		{"text/html", rules, true},
		{"TEXT/HTML; charset=utf-8", rules, true},
		{"application/xhtml+xml", rules, true},
		{"", page, true},
		{"application/octet-stream", page, true},
		{"text/plain", page, true},
		{"text/plain", bom + page, true},
		{"", "<html lang=en>", true},
		{"", "<!-- x --><html>", true},
		{"", `<?xml version="1.0"?><urlset>`, false},
		{"", "# <html>", false},

		{"application/json", page, false},
		{"image/png", page, false},
		{"multipart/form-data", rules, false},
	} {
		if got := IsHTML(test.contentType, []byte(test.body)); got != test.html {
			t.Errorf("IsHTML(%q, %q): got %t, want %t", test.contentType, test.body, got, test.html)
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
		if !bytes.Equal(body, before) || !bytes.HasPrefix(got, bytes.TrimRight(body, "\r\n")) {
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
