package html

import (
	"regexp"
	"strings"

	"golang.org/x/text/language"
)

// languagePattern matches what is written like an hreflang: x-default, or a language with or without a script and a
// country or other region.
var languagePattern = regexp.MustCompile(`(?i)^(?:x-default|([a-z]{2,3})(?:-[a-z]{4})?(?:-([a-z]{2}|[0-9]{3}))?)$`)

// IsLanguage reports whether an hreflang is one that search engines read: x-default, or a language of ISO 639, with or
// without a script of ISO 15924 and a country of ISO 3166-1. Not en-UK, which is en-GB, and not en-EU or es-419, whose
// regions are no countries
// (https://developers.google.com/search/docs/specialty/international/localized-versions#language-codes).
func IsLanguage(hreflang string) bool {
	parts := languagePattern.FindStringSubmatch(hreflang)
	if parts == nil {
		return false
	}
	base := parts[1]
	country := parts[2]
	_, err := language.ParseBase(base)
	isKnown := err == nil || base == "" // which is x-default
	return isKnown && (country == "" || isCountry(country))
}

func isCountry(code string) bool {
	region, err := language.ParseRegion(code)
	if err != nil || !region.IsCountry() {
		return false
	}
	isAssigned := region.M49() != 0
	isCurrent := region.Canonicalize() == region // UK is GB
	return isAssigned && isCurrent
}

// onlyLanguage returns the language in a lang attribute or a Content-Language, its first subtag in lower case; "": it is
// not a language, or there are several.
func onlyLanguage(s string) string {
	s = strings.TrimSpace(s)
	parts := languagePattern.FindStringSubmatch(s)
	if parts == nil || parts[1] == "" { // which is x-default
		return ""
	}
	primary := parts[1]
	return strings.ToLower(primary) + s[len(primary):]
}
