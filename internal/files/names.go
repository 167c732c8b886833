package files

import "strings"

// A file that proves to some service who owns the site, by the shape of its
// name: a prefix, then letters of a kind and a least number of them, then a
// suffix. All lower-case.
type ownership struct {
	prefix string
	least  int
	hex    bool // hexadecimal digits; else letters, digits, "-" and "_"
	suffix string
}

var ownerships = []ownership{
	{"google", 16, true, ".html"},
	{"yandex_", 8, true, ".html"},
	{"pinterest-", 5, true, ".html"},
	{"naver", 16, true, ".html"},
	{"baidu_verify_", 1, false, ".html"},
	{"y_key_", 8, true, ".html"},
	{"mywot", 16, true, ".html"},
	{"loaderio-", 16, true, ".html"},
	{"loaderio-", 16, true, ".txt"},
	{"mailru-verification", 8, true, ".html"},
	{"mailru-domain", 8, false, ".html"},
	{"wmail_", 16, true, ".html"},
	{"mj12_", 16, true, ".txt"},
	{"ahrefs_", 16, true, ""},
	{"tiktok", 16, false, ".txt"},
	{"bingsiteauth.xml", 0, true, ""},
	{"livesearchsiteauth.xml", 0, true, ""},
	{"sogousiteverification.txt", 0, true, ""},
	{"shenma-site-verification.txt", 0, true, ""},
	{"bytedanceverify.html", 0, true, ""},
	{"verifyforzoho.html", 0, true, ""},
	{"swisssign-check.txt", 0, true, ""},
}

// ownershipsBy has them by the byte that a name begins with.
var ownershipsBy = func() (by [256][]ownership) {
	for _, o := range ownerships {
		c := o.prefix[0]
		by[c] = append(by[c], o)
		by[c&^0x20] = append(by[c&^0x20], o)
	}
	return by
}()

// special says why a file of that name is no page by default: it is an error
// page, or proves the site's ownership.
func special(name string) reason {
	switch name[0] {
	case '4', '5':
		if isErrorPage(name) {
			return errorPage
		}
		return listed
	}
	for i := range ownershipsBy[name[0]] {
		if ownershipsBy[name[0]][i].match(name) {
			return ownershipFile
		}
	}
	return listed
}

// isErrorPage knows 404.html, 50x.html and their like, from 400 to 599.
func isErrorPage(name string) bool {
	stem, ext, _ := strings.Cut(name, ".")
	if len(stem) != 3 {
		return false
	}
	for _, c := range []byte(stem[1:]) {
		if (c < '0' || c > '9') && c|0x20 != 'x' {
			return false
		}
	}
	switch strings.ToLower(ext) {
	case "html", "htm", "xhtml", "shtml", "php":
		return true
	}
	return false
}

func (o *ownership) match(name string) bool {
	if len(name) < len(o.prefix)+o.least+len(o.suffix) || !hasPrefixFold(name, o.prefix) || !hasSuffixFold(name, o.suffix) {
		return false
	}
	middle := name[len(o.prefix) : len(name)-len(o.suffix)]
	if o.least == 0 {
		return middle == ""
	}
	for _, c := range []byte(middle) {
		lower := c | 0x20
		switch {
		case '0' <= c && c <= '9', 'a' <= lower && lower <= 'f':
		case !o.hex && ('a' <= lower && lower <= 'z' || c == '-' || c == '_'):
		default:
			return false
		}
	}
	return true
}

// hasSuffixFold is strings.HasSuffix without regard to the case of name's ASCII
// letters; suffix is lower-case.
func hasSuffixFold(name, suffix string) bool {
	return len(name) >= len(suffix) && equalFold(name[len(name)-len(suffix):], suffix)
}

func hasPrefixFold(name, prefix string) bool {
	return len(name) >= len(prefix) && equalFold(name[:len(prefix)], prefix)
}

func equalFold(s, lower string) bool {
	for i := 0; i < len(lower); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
