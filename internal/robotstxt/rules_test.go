package robotstxt

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	const all = "User-agent: *\n"
	for _, test := range []struct {
		name, body string
		allowed    string // paths, with blanks between
		forbidden  string
	}{
		{"nothing", "", "/ /a", ""},
		{"no rule", "User-agent: *\nSitemap: https://example.com/sitemap.xml\n", "/ /a", ""},
		{"everything", all + "Disallow: /\n", "", "/ /a /a?b"},
		{"an empty rule", all + "Disallow:\n", "/ /a", ""},
		{"an empty rule among others", all + "Disallow:\nDisallow: /a\nAllow:", "/ /b", "/a /ab /a/b"},
		{"a comment for a path", all + "Disallow: # nothing\n", "/ /a", ""},
		{"no line end", all + "Disallow: /a", "/", "/a"},
		{"BOM", bom + all + "Disallow: /a\n", "/", "/a"},
		{"CR LF", "User-agent: *\r\nDisallow: /a\r\n\r\nDisallow: /b\r\n", "/", "/a /b"},
		{"CR", "User-agent: *\rDisallow: /a\rDisallow: /b\r", "/", "/a /b"},
		{"upper case", "USER-AGENT: GOOGLEBOT\nDISALLOW: /a\n", "/ /A", "/a"},
		{"blanks", " User-agent :\t* \n\tDisallow :  /a\t \n", "/ /%20", "/a /a%09"},
		{"no blanks", "User-agent:*\nDisallow:/a\n", "/", "/a"},
		{"no colon", "User-agent *\nDisallow /a\nDisallow /b /c", "/ /b /c", "/a"},
		{"names without a hyphen", "Useragent: *\nDisallow: /a\nUser agent: googlebot\nDisallow: /b", "/a", "/b"},
		{"comments", all + "Disallow: /a # not this\n#Disallow: /b\nDisallow: /c#d\n", "/ /b", "/a /c /cd"},
		{"no leading slash", all + "Disallow: a", "/ /b", "/a"},
		{"lines of binary bytes", all + "\x00\xff\xfe: \x01\nDisallow: /a\n\xff", "/", "/a"},

		{"rules before any group", "Disallow: /\n" + all + "Disallow: /a", "/ /b", "/a"},
		{"delays that are none", all + "Crawl-delay: soon\nCrawl-delay: -1\nCrawl-delay:\nDisallow: /a\n", "/", "/a"},
		{"lines that are unknown", all + "Noindex: /b\nHost: \nClean-param: a /c\nDisallow: /a\n", "/ /b /c", "/a"},

		{"its own group", all + "Disallow: /\n\nUser-agent: Googlebot\nDisallow: /a\n", "/ /b", "/a"},
		{"its own group first", "User-agent: Googlebot\nDisallow: /a\n\n" + all + "Disallow: /\n", "/ /b", "/a"},
		{"its own group is empty", all + "Disallow: /\n\nUser-agent: Googlebot\n", "/ /a", ""},
		{"its own groups are one", "User-agent: Googlebot\nDisallow: /a\n\n" + all + "Disallow: /c\n\nUser-agent: googlebot\nDisallow: /b\n", "/c", "/a /b"},
		{"groups for all are one", all + "Disallow: /a\n\nUser-agent: x\nDisallow: /\n\n" + all + "Disallow: /b\n", "/ /c", "/a /b"},
		{"a group for several", "User-agent: x\nUser-agent: Googlebot\nUser-agent: y\nDisallow: /a\n", "/", "/a"},
		{"a group for all and others", "User-agent: *\nUser-agent: x\nDisallow: /a\n", "/", "/a"},
		{"a line between the names", "User-agent: Googlebot\nCrawl-delay: 1\nSitemap: /x\n\nUser-agent: x\nDisallow: /a\n", "/", "/a"},
		{"a group for others", "User-agent: Bingbot\nDisallow: /\n", "/ /a", ""},
		{"a version", "User-agent: Googlebot/2.1\nDisallow: /a\n", "/", "/a"},
		{"a part of its name", all + "Disallow: /b\n\nUser-agent: google\nDisallow: /a\n\nUser-agent: g\nDisallow: /c\n", "/a /c", "/b"},
		{"more than its name", all + "Disallow: /b\n\nUser-agent: Googlebot-Image\nDisallow: /a\n", "/a", "/b"},
		{"a name with an asterisk", "User-agent: *bot\nDisallow: /\n", "/ /a", ""},
		{"no name", "User-agent:\nDisallow: /\n", "/ /a", ""},

		{"the longest", all + "Allow: /a/b\nDisallow: /a\nDisallow: /a/b/c\n", "/ /a/b /a/bc", "/a /a/x /a/b/c"},
		{"a tie", all + "Disallow: /a\nAllow: /a\n", "/a /ab", ""},
		{"a tie of different forms", all + "Disallow: /*b\nAllow: /a*\n", "/ab", "/b /cb"},
		{"an asterisk counts", all + "Allow: /page\nDisallow: /*.htm\n", "/page", "/page.htm"},
		{"an end counts", all + "Allow: /$\nDisallow: /", "/", "/a /page.htm"},

		{"the path's beginning", all + "Disallow: /fish*.php\n", "/x/fish.php /Fish.php /fish", "/fish.php /fishheads/a.php?id=1"},
		{"an asterisk at the beginning", all + "Disallow: *.pdf\n", "/ /pdf", "/.pdf /a/b.pdf /a.pdfs"},
		{"an asterisk at the end", all + "Disallow: /a*\n", "/", "/a /ab /a/b"},
		{"an asterisk alone", all + "Disallow: *\n", "", "/ /a"},
		{"asterisks", all + "Disallow: /**a***b\n", "/ /ba", "/ab /xaxbx"},
		{"an end", all + "Disallow: /*.php$\n", "/a.php?b /a.php5 /php", "/a.php /a.php.php"},
		{"an end without asterisk", all + "Disallow: /a$\n", "/ab /a/ /a?b", "/a"},
		{"an end after an asterisk", all + "Disallow: /a*$\n", "/", "/a /ab"},
		{"a dollar within", all + "Disallow: /a$b\n", "/a /", "/a$b /a$bc /a%24b"},
		{"two dollars", all + "Disallow: /a$$\n", "/a /a$b", "/a$"},
		{"no overlap", all + "Disallow: /ab*ba$\n", "/aba", "/abba /abxba"},
		{"an encoded question mark", all + "Disallow: /*?", "/ /why%3F", "/a?x /why?"},
		{"a query", all + "Disallow: /*?print\nDisallow: /q?a=1&b", "/ /a?x /q?a=1", "/a?print /a?print=1 /q?a=1&b=2"},
		{"characters of expressions", all + "Disallow: /a.b+(c)[d]\n", "/axb", "/a.b+(c)%5Bd%5D"},

		{"UTF-8", all + "Disallow: /é\n", "/e", "/%C3%A9 /%C3%A9t%C3%A9"},
		{"percent-encoded UTF-8", all + "Disallow: /%c3%a9\n", "/e", "/%C3%A9"},
		{"an encoded letter", all + "Disallow: /%61%2e\n", "/b", "/a. /a.b"},
		{"encoded dots alone", all + "Disallow: /%2e%2e\n", "/ /a", "/..a"},
		{"an encoded slash", all + "Disallow: /a%2fb\n", "/ab", "/a%2Fb /a/b"},
		{"a slash", all + "Disallow: /a/\n", "/ab", "/a/b%2Fc /a%2Fb"},
		{"a comma", all + "Disallow: /a,b\nDisallow: /c?d,e\n", "/a%2Fb", "/a,b /a%2Cb /a,b%2Fc /c?d,e /c?d%2Ce"},
		{"an encoded comma", all + "Disallow: /a%2cb\n", "/a", "/a,b /a%2Cb /a%2Cb?c%2Cd"},
		{"an encoded equals sign", all + "Disallow: /a%3Db\nDisallow: /c?d%3De\n", "/a", "/a=b /c?d%3De /c?d=e"},
		{"an encoded dollar", all + "Disallow: /a%24\n", "/a", "/a$ /a$b"},
		{"an encoded asterisk", all + "Disallow: /a%2Ab\n", "/axb", "/a*b /a%2Ab"},
		{"a percent sign alone", all + "Disallow: /100%\nDisallow: /5%z\n", "/100", "/100%25 /100%25a /5%25z"},
		{"a blank within", all + "Disallow: /a b\n", "/a", "/a%20b"},
		{"a byte of Latin-1", all + "Disallow: /\xe9\n", "/%C3%A9", "/%E9"},
	} {
		rules := ReadRules([]byte(test.body), "Googlebot")
		for _, path := range strings.Fields(test.allowed) {
			if !rules.Allows(path) {
				t.Errorf("%s: %s is forbidden by %q", test.name, path, rules.String())
			}
		}
		for _, path := range strings.Fields(test.forbidden) {
			if rules.Allows(path) {
				t.Errorf("%s: %s is allowed by %q", test.name, path, rules.String())
			}
		}
	}
}

// TestRulesString tells robots.txt apart only where they say something else.
func TestRulesString(t *testing.T) {
	text := func(body string) string {
		rules := ReadRules([]byte(body), "Googlebot")
		return rules.String()
	}
	const want = "Allow: /%c3%a9\nDisallow: /a*b$\nDisallow: /x\n"
	for _, body := range []string{
		"User-agent: *\nDisallow: /x\nAllow: /%c3%a9\nDisallow: /a*b$\n",
		"# hello\r\nUser-agent: Googlebot\r\nDisallow: /a*b$ # so\r\nAllow: /%c3%a9\r\nDisallow:\r\nDisallow: x\r\n\r\nUser-agent: *\r\nDisallow: /\r\n",
	} {
		if got := text(body); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
		if rules := ReadRules([]byte(body), "Googlebot"); rules.String() == "" {
			t.Errorf("%q: it is empty", body)
		}
	}
	if got := text("User-agent: x\nDisallow: /\n"); got != "" {
		t.Errorf("got %q, want none", got)
	}
	if rules := ReadRules([]byte("User-agent: *\nDisallow:\n"), "Googlebot"); rules.String() != "" {
		t.Errorf("got %q, want none", rules.String())
	}
}

// TestRulesLine: which line decides.
func TestRulesLine(t *testing.T) {
	rules := ReadRules([]byte("User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*.pdf$\nDisallow: /%2a\n"), "Googlebot")
	for path, want := range map[string]string{
		"/":         "",
		"/a":        "Disallow: /a",
		"/a/c":      "Disallow: /a",
		"/a/b/c":    "Allow: /a/b",
		"/x.pdf":    "Disallow: /*.pdf$",
		"/x.pdf?y":  "",
		"/a/b.pdf":  "Disallow: /*.pdf$",
		"/*":        "Disallow: /%2a",
		"/x.html?a": "",
	} {
		if got := rules.Line(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
		if got := rules.Allows(path); got == strings.HasPrefix(want, "Disallow") {
			t.Errorf("%s: got %t, and %q decides", path, got, want)
		}
	}
	var none Rules
	if got := none.Line("/"); got != "" {
		t.Errorf("no rules: got %q", got)
	}
}

// FuzzRules: what is read of rules reads as the same ones, and decides alike.
func FuzzRules(f *testing.F) {
	f.Add("/a*b$", "/axb")
	f.Add("*.pdf", "/a.pdf?b")
	f.Add("/**a", "/ba")
	f.Add("/%2a$%", "/*$%25")
	f.Add("/ab*ba$", "/aba")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		rules := ReadRules([]byte("User-agent: *\nDisallow: "+pattern), "Googlebot")
		again := ReadRules([]byte("User-agent: *\n"+rules.String()), "Googlebot")
		if again.String() != rules.String() || again.Line(path) != rules.Line(path) {
			t.Fatalf("read again: got %q, want %q", again.String(), rules.String())
		}
	})
}

// TestCloses: no other client error than 429 keeps crawlers away.
func TestCloses(t *testing.T) {
	for status, want := range map[int]bool{200: false, 301: false, 403: false, 404: false, 408: false, 428: false, 429: true, 430: false, 499: false, 500: true, 503: true} {
		if got := Closes(status); got != want {
			t.Errorf("%d: got %t", status, got)
		}
	}
}
