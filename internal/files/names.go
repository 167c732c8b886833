package files

import "regexp"

// ownershipName matches the names of files that prove to some service who owns the site.
var ownershipName = regexp.MustCompile(`(?i)^(?:` +
	`(?:google|naver|mywot|wmail_)[0-9a-f]{16,}\.html|` +
	`(?:yandex_|y_key_|mailru-verification)[0-9a-f]{8,}\.html|` +
	`pinterest-[0-9a-f]{5,}\.html|` +
	`(?:baidu_verify_|mailru-domain[\w-]{7})[\w-]+\.html|` +
	`loaderio-[0-9a-f]{16,}\.(?:html|txt)|` +
	`mj12_[0-9a-f]{16,}\.txt|` +
	`tiktok[\w-]{16,}\.txt|` +
	`ahrefs_[0-9a-f]{16,}|` +
	`(?:bing|livesearch)siteauth\.xml|` +
	`(?:sogousiteverification|shenma-site-verification|swisssign-check)\.txt|` +
	`(?:bytedanceverify|verifyforzoho)\.html)$`)

// errorPageName matches 404.html, 50x.html and their like, from 400 to 599.
var errorPageName = regexp.MustCompile(`(?i)^[45][0-9x]{2}\.(?:html|htm|xhtml|shtml|php)$`)

// special says why a file of that name is no page by default: it is an error
// page, or proves the site's ownership.
func special(name string) reason {
	switch c := name[0]; {
	case c == '4' || c == '5':
		if errorPageName.MatchString(name) {
			return errorPage
		}
	case ownershipName.MatchString(name):
		return ownershipFile
	}
	return listed
}
