package sitemap

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAdminQuestion: what commands ask the server for, by their flags and arguments.
func TestAdminQuestion(t *testing.T) {
	explain := adminQuestion{explains: true}
	refresh := adminQuestion{refreshes: true}
	refetch := adminQuestion{refreshes: true, fetches: true}
	const one = "exactly one argument is required: the URL of a page, or its path with --site"
	for _, test := range []struct {
		name      string
		question  adminQuestion
		args      string
		want, err string
	}{
		{"all sites", adminQuestion{}, "", "", ""},
		{"one site", adminQuestion{site: "http://a.example"}, "", "site=http%3A%2F%2Fa.example", ""},
		{"a site as an argument", adminQuestion{}, "http://a.example", "", "unexpected argument 'http://a.example': use --site for one site"},
		{"a refresh", refresh, "", "", ""},
		{"a refresh of an argument", refresh, "a b", "", "unexpected argument 'a': use --site for one site, or --fetch to fetch pages again"},
		{"all pages again", refetch, "", "fetch=all", ""},
		{"two pages again", refetch, "http://a.example/b http://a.example/c", "fetch=http%3A%2F%2Fa.example%2Fb&fetch=http%3A%2F%2Fa.example%2Fc", ""},
		{
			"too many pages", refetch, strings.Repeat("x ", maxQuery/8+1), "",
			"7501 URLs are too long for one request: use several commands, or --fetch without a URL",
		},
		{"a page", explain, "http://a.example/b", "url=http%3A%2F%2Fa.example%2Fb", ""},
		{"a path of a site", adminQuestion{explains: true, site: "a.example"}, "/b", "site=a.example&url=%2Fb", ""},
		{"no page", explain, "", "", one},
		{"two pages", explain, "/a /b", "", one},
	} {
		got, err := test.question.query(strings.Fields(test.args))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != test.want || text != test.err {
			t.Errorf("%s: got %q, %q, want %q, %q", test.name, got, text, test.want, test.err)
		}
	}
	longest := strings.Repeat("x", maxQuery-len("fetch="))
	if _, err := refetch.query([]string{longest}); err != nil {
		t.Errorf("the longest URL: %v", err)
	}
	if _, err := refetch.query([]string{longest + "x"}); err == nil {
		t.Error("a longer URL is requested")
	}
}

// TestAdminError: errors are in the words of the admin API, where there are any.
func TestAdminError(t *testing.T) {
	for text, want := range map[string]string{
		`caddy responded with error: HTTP 404: {"error":"no site"}` + "\n": "no site",
		`caddy responded with error: HTTP 500: {"error":""}`:               `caddy responded with error: HTTP 500: {"error":""}`,
		`caddy responded with error: HTTP 500: {"error"`:                   `caddy responded with error: HTTP 500: {"error"`,
		"HTTP 404: 404 page not found\n":                                   "this Caddy has no sitemap module (HTTP 404): run one that was built with it, or name another --address",
		"connection refused":                                               "connection refused",
		"performing request: connection refused":                           "performing request: connection refused; if the admin API is elsewhere, add --address, or --config",
	} {
		if got := adminError(errors.New(text)); got.Error() != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestAdminResponse: what is no response of the admin API is an error of the command.
func TestAdminResponse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>")
	}))
	defer server.Close()
	r := runCommand(t.Context(), nil, "status", "--address", server.Listener.Addr().String())
	if r.status != exitErrors || r.stdout != "" || !strings.Contains(r.stderr, "reading the response: ") {
		t.Errorf("got %+v", r)
	}
}
