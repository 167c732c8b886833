package html

import (
	"strings"
	"testing"
)

func TestLanguages(t *testing.T) {
	for languages, want := range map[string]bool{
		"de de-AT EN-us fil zh-Hant zh-Hant-TW sr-Latn x-default X-Default en-XK haw":                                 true,
		"en-UK en-EU jp cn xx en_US es-419 en-001 de-DE-1996 en- -de de-D en-ZZ de-DD en-AC zh-CHN english x-other e": false,
	} {
		for value := range strings.FieldsSeq(languages) {
			if got := IsLanguage(value); got != want {
				t.Errorf("%s: got %t", value, got)
			}
		}
	}
	if IsLanguage("") {
		t.Error("no language is one")
	}
}
