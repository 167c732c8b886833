package page

import (
	"strings"
	"testing"
)

func TestDisallow(t *testing.T) {
	for _, test := range []struct {
		words         []string
		match, others string
	}{
		{DefaultDisallow(), "/docs/logout.php /users/sign_out /add-to-cart/5 /log-out /users/sign-out /LogOut /a/logout;x /log%6Fut /signOut /cart?x /a/delete/b /Add",
			"/ /address /additional /logouts /xlogout /api/v1 /admin /author/admin/ /a?b=/logout /cartography /logo/ut"},
		{[]string{"Café", "sign-out", "/private/*", "*.cgi"}, "/caf%C3%A9 /CAF%C3%89/ /signout /sign_out.html /private/a /x.cgi", "/cafe /private /logout"},
		{[]string{}, "", "/logout"},
	} {
		d, err := ParseDisallow(test.words)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range strings.Fields(test.match) {
			if d.Match(path) == "" {
				t.Errorf("%q: %s does not match", test.words, path)
			}
		}
		for _, path := range strings.Fields(test.others) {
			if word := d.Match(path); word != "" {
				t.Errorf("%q: %s matches %s", test.words, path, word)
			}
		}
	}
	for _, word := range []string{"", "-", "x/*", "/[a"} {
		if _, err := ParseDisallow([]string{word}); err == nil {
			t.Errorf("%q is no error", word)
		}
	}
}
