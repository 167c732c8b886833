package html

import (
	"regexp"
	"strings"

	"golang.org/x/text/language"
)

// languagePattern matches what is written like an hreflang: x-default, or a language with or without a script and a
// country or other region.
var languagePattern = regexp.MustCompile(`(?i)^(?:x-default|([a-z]{2,3})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?)$`)

// IsLanguage reports whether an hreflang is one that search engines read: x-default, or a language of ISO 639, with or
// without a script of ISO 15924 and a country of ISO 3166-1. Not en-UK, which is en-GB, and not en-EU or es-419, whose
// regions are no countries
// (https://developers.google.com/search/docs/specialty/international/localized-versions#language-codes).
func IsLanguage(hreflang string) bool {
	if strings.EqualFold(hreflang, "x-default") {
		return true
	}
	tag, err := language.Raw.Parse(hreflang)
	_, _, region := tag.Raw()
	isCountry := region.IsCountry()
	isCurrent := region.Canonicalize() == region // UK is GB
	isFine := region == language.Region{} || isCountry && isCurrent
	return err == nil && isFine && languagePattern.MatchString(hreflang)
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
