package page

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, test := range []struct {
		words         []string
		match, others string
	}{
		{strings.Fields("logout signout add delete cart"), "/docs/logout.php /users/sign_out /add-to-cart/5 /log-out /users/sign-out /LogOut /a/logout;x /log%6Fut /signOut /cart?x /a/delete/b /Add",
			"/ /address /additional /logouts /xlogout /api/v1 /admin /author/admin/ /a?b=/logout /cartography /logo/ut"},
		{[]string{"Café", "sign-out"}, "/caf%C3%A9 /CAF%C3%89/ /signout /sign_out.html", "/cafe /sign /logout"},
		{nil, "", "/logout"},
	} {
		var w Words
		for _, word := range test.words {
			if err := w.Add(word); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range strings.Fields(test.match) {
			if w.Match(path) == "" {
				t.Errorf("%q: %s does not match", test.words, path)
			}
		}
		for _, path := range strings.Fields(test.others) {
			if word := w.Match(path); word != "" {
				t.Errorf("%q: %s matches %s", test.words, path, word)
			}
		}
	}
	for _, word := range []string{"", "-", "logout,cart"} {
		if err := new(Words).Add(word); err == nil {
			t.Errorf("%q is no error", word)
		}
	}
}
