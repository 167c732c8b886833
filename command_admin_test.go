package sitemap

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
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

// TestAdminCommands asks a server that responds as the admin API does.
func TestAdminCommands(t *testing.T) {
	var asked, response string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, response)
	}))
	defer server.Close()
	encoded := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	fine := encoded(summarize(manySites(1, outcome.Unchanged)))
	many := encoded(summarize(manySites(maxShown+1, outcome.Unchanged)))
	failed := encoded(summarize(manySites(1, outcome.Failed)))
	for _, test := range []struct {
		args           string
		status         int
		response       string
		asked          string
		stdout, stderr string // parts; "": none
		want           int
	}{
		{args: "status", response: fine, asked: "GET /sitemap/sites?", stdout: "https://unchanged-000.example\n"},
		{args: "status --json", response: fine, asked: "GET /sitemap/sites?", stdout: fine},
		{args: "status", response: many, asked: "GET /sitemap/sites?", stdout: "not shown: 21 sites"},
		{args: "status --site a.example", response: many, asked: "GET /sitemap/sites?site=a.example", stdout: "sites\n"},
		{args: "status", response: failed, asked: "GET /sitemap/sites?", stdout: "sites\n", stderr: "https://failed-000.example: the last refresh failed: ", want: exitErrors},
		{args: "refresh", response: failed, asked: "POST /sitemap/refresh?", stdout: "sites\n", stderr: "https://failed-000.example: the last refresh failed: ", want: exitErrors},
		{args: "refresh --fetch", response: fine, asked: "POST /sitemap/refresh?fetch=all", stdout: "sites\n"},
		{args: "explain http://a.example/b", response: `{"url":"/b"}`, asked: "GET /sitemap/explain?url=http%3A%2F%2Fa.example%2Fb", stdout: "url  /b\n"},
		{args: "explain", stderr: "exactly one argument is required", want: exitFailed},
		{args: "status", response: "<html>", asked: "GET /sitemap/sites?", stderr: "reading the response: ", want: exitErrors},
		{args: "status", status: http.StatusServiceUnavailable, response: `{"error":"no site"}`, asked: "GET /sitemap/sites?", stderr: ": no site\n", want: exitErrors},
	} {
		asked, response = "", test.response
		status = max(test.status, http.StatusOK)
		args := append(strings.Fields(test.args), "--address", server.Listener.Addr().String())
		r := runCommand(t.Context(), nil, args...)
		isPrinted := strings.Contains(r.stdout, test.stdout) && strings.Contains(r.stderr, test.stderr)
		isMore := test.stdout == "" && r.stdout != "" || test.stderr == "" && r.stderr != ""
		if asked != test.asked || r.status != test.want || !isPrinted || isMore {
			t.Errorf("%s: asked %q, got %+v, want %q, %+v", test.args, asked, r, test.asked, test)
		}
	}
}
