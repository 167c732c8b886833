package sitemap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

func TestAskDefaults(t *testing.T) {
	for name, ask := range map[string]*Ask{"none": nil, "empty": {}} {
		m, err := ask.compile()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.off || m.rate != 2 || m.concurrency != 1 {
			t.Errorf("%s: got %+v, want a rate of 2 and a concurrency of 1", name, m)
		}
		for _, segment := range []string{"logout", "signout", "unsubscribe", "cart", "checkout", "confirm", "verify", "delete", "admin", "api"} {
			if !m.guards("/" + segment) {
				t.Errorf("%s: /%s is asked for", name, segment)
			}
		}
	}
	if m, err := (&Ask{Off: true}).compile(); err != nil || !m.off {
		t.Errorf("off: got %+v and %v", m, err)
	}
	m, err := (&Ask{Rate: 1.0 / 3600, Concurrency: 100, Never: []string{"/x"}}).compile()
	if err != nil || m.rate != 1.0/3600 || m.concurrency != 100 {
		t.Errorf("bounds: got %+v and %v", m, err)
	}
	if m.guards("/logout") {
		t.Error("a list of one's own does not replace the default")
	}
	if m, err := (&Ask{Never: []string{}}).compile(); err != nil || m.guards("/logout") {
		t.Errorf("an empty list: got %+v and %v", m, err)
	}
}

func TestAskErrors(t *testing.T) {
	const offAndMore = "ask is off: no other setting of it has any effect"
	for _, test := range []struct {
		ask  Ask
		want string
	}{
		{Ask{Off: true, Rate: 1}, offAndMore},
		{Ask{Off: true, Concurrency: 1}, offAndMore},
		{Ask{Off: true, Never: []string{"x"}}, offAndMore},
		{Ask{Off: true, Never: []string{}}, offAndMore},
		{Ask{Rate: -1}, "the rate of asking is -1/s: it is at least one an hour and at most 1000/s"},
		{Ask{Rate: 1000.5}, "the rate of asking is 1000.5/s: it is at least one an hour and at most 1000/s"},
		{Ask{Rate: 0.0002}, "the rate of asking is 0.0002/s: it is at least one an hour and at most 1000/s"},
		{Ask{Concurrency: -1}, "the concurrency of asking is -1: it is 1 to 100"},
		{Ask{Concurrency: 101}, "the concurrency of asking is 101: it is 1 to 100"},
		{Ask{Never: []string{"x", ""}}, "ask never has an empty value"},
		{Ask{Never: []string{"x/*"}}, "ask never: path pattern 'x/*' matches nothing: it begins with '/' or '*'"},
		{Ask{Never: []string{"/[a"}}, "ask never: path pattern in '/[a': syntax error in pattern"},
		{Ask{Never: []string{"{env.X}"}}, "ask never '{env.X}': {env.X} has no value here: placeholders are not replaced"},
		{Ask{Never: []string{"/{host}/*"}}, "ask never '/{host}/*': {host} has no value here: placeholders are not replaced"},
	} {
		if _, err := test.ask.compile(); err == nil || err.Error() != test.want {
			t.Errorf("%+v: got %v, want %s", test.ask, err, test.want)
		}
	}
}

func TestGuards(t *testing.T) {
	for _, test := range []struct {
		never  string // "": the default
		guards string
		passes string
	}{
		{"", "/logout /logout/ /a/logout /a/logout/b /LogOut /a/LOGOUT?x /logout?next=/ /api/v1 /admin", "/ /logout.html /log-out /logouts /xlogout /a?b=/logout/ /apis /administration"},
		{"", "/log%6Fut /%6c%6f%67out/x /logout;jsessionid=1 /a/cart;x/b", "/%2Flogout /logout%20 /a;logout"},
		{"Café caf%C3%A9s", "/caf%C3%A9 /CAF%C3%89/ /caf%C3%A9s", "/cafe /logout"},
		{"/private/* *.cgi /exact", "/private/ /Private/a /private/a?b /x.cgi /x.cgi?y /exact /EXACT", "/private /exact/ /a/private/ /x.cgi/ /logout"},
		{"logout */edit /%2F/*", "/logout/ /a/b/edit /%2F/a", "/edits /a/edit/b"},
		{"wp-login.php", "/wp-login.php /blog/wp-login.php?action=x", "/wp-login /wp-login.php.html"},
	} {
		ask := new(Ask)
		if test.never != "" {
			ask.Never = strings.Fields(test.never)
		}
		m, err := ask.compile()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range strings.Fields(test.guards) {
			if !m.guards(path) {
				t.Errorf("never %q: %s is asked for", test.never, path)
			}
		}
		for _, path := range strings.Fields(test.passes) {
			if m.guards(path) {
				t.Errorf("never %q: %s is not asked for", test.never, path)
			}
		}
	}
}

func BenchmarkGuards(b *testing.B) {
	m, err := new(Ask).compile()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.guards("/folder/of/many/pages/page-00012345.html")
	}
}

// TestCrawlRules is of what is made of the site's answer; what its lines mean is the
// parser's to test.
func TestCrawlRules(t *testing.T) {
	const forbidding = "User-agent: *\nDisallow: /a\n"
	long := forbidding + strings.Repeat("#", robotstxt.MaxBody-len(forbidding)-len("\nDisallow: /")) + "\nDisallow: /b/c\n"
	for name, test := range map[string]struct {
		status      int
		contentType string
		body        string
		closed      bool
		forbidden   bool // /a is
	}{
		"rules":               {200, "text/plain; charset=utf-8", forbidding, false, true},
		"no type":             {200, "", forbidding, false, true},
		"an application":      {200, "text/html; charset=utf-8", "<!doctype html>\n" + forbidding, false, false},
		"nothing":             {200, "text/plain", "", false, false},
		"not found":           {404, "text/plain", forbidding, false, false},
		"gone":                {410, "text/plain", forbidding, false, false},
		"refused":             {403, "text/plain", forbidding, false, false},
		"an error":            {500, "text/plain", "", true, false},
		"unavailable":         {503, "text/plain", forbidding, true, false},
		"too many":            {429, "text/plain", forbidding, true, false},
		"half a path at last": {200, "text/plain", long, false, true},
	} {
		b := newBench(t, new(Handler))
		s := b.site("named.example")
		s.shelf = newShelf(state.NewMemory(), name)
		b.app.askers[b.handler.server] = asking(func(w http.ResponseWriter, r *http.Request) error {
			if r.URL.Path != "/robots.txt" {
				t.Errorf("%s: %s was asked for", name, r.URL.Path)
			}
			w.Header().Set("Content-Type", test.contentType)
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
			return nil
		})
		rules, err := s.crawlRules(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if rules.closed != test.closed || rules.forbid("/a") != test.forbidden || rules.forbid("/b") {
			t.Errorf("%s: got closed %v, /a forbidden %v, /b forbidden %v", name, rules.closed, rules.forbid("/a"), rules.forbid("/b"))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := newBench(t, new(Handler))
	s := b.site("named.example")
	b.app.askers[b.handler.server] = asking(func(http.ResponseWriter, *http.Request) error { return nil })
	if _, err := s.crawlRules(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: got %v", err)
	}
	b.app.askers[b.handler.server] = asking(func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) })
	if rules, err := s.crawlRules(t.Context()); err != nil || !rules.closed {
		t.Errorf("aborted: got %+v and %v, want closed", rules, err)
	}
}

func TestReadCrawlRules(t *testing.T) {
	read := func(body string) crawlRules { return readCrawlRules([]byte(body)) }
	none, one := read("User-agent: *\nDisallow:\n"), read("User-agent: *\nDisallow: /a\n")
	if none.sum != 0 || none.forbid("/a") || none.closed {
		t.Errorf("got %+v, want no rules", none)
	}
	if !one.forbid("/a?b") || one.forbid("/b") {
		t.Errorf("got %+v, want /a forbidden", one)
	}
	if same := read("# hello\nUser-agent: Googlebot\nCrawl-delay: 1e999\nDisallow: /a\n"); same.sum != one.sum {
		t.Error("the same rules have another sum")
	}
	if other := read("User-agent: *\nDisallow: /b\n"); other.sum == one.sum || other.sum == 0 {
		t.Error("other rules have the same sum")
	}
}
