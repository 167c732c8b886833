package sitemap

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/lint"
)

const checkedSitemap = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://example.com/a` + "\u202e\u2028" + `</loc><priority>2</priority></url></urlset>`

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestCheckFlags(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"no argument":     {"", "nothing to check: name a file, a folder, a URL, or - for standard input"},
		"rate":            {"--rate 2 -", `invalid argument "2" for "--rate" flag: use a number per second, such as 2/s or 0.5/s`},
		"no sample":       {"--fetch=few -", `invalid argument "few" for "--fetch" flag: strconv.ParseInt: parsing "few": invalid syntax`},
		"sample below 0":  {"--fetch=-1 -", `invalid argument "-1" for "--fetch" flag: use a number of pages, such as 20`},
		"sample apart":    {"--fetch 20 -", "no such file: 20; to fetch 20 pages, write --fetch=20"},
		"base with query": {"--base-url http://example.com/?a -", `invalid argument "http://example.com/?a" for "--base-url" flag: only scheme, host, port and folder are allowed`},
		"proxy":           {"--proxy localhost:8080 -", `invalid argument "localhost:8080" for "--proxy" flag: use a URL such as http://localhost:3128`},
	} {
		t.Run(name, func(t *testing.T) {
			r := runCommand(t.Context(), nil, append([]string{"check"}, strings.Fields(test.args)...)...)
			if r.stderr != "Error: "+test.want+"\n" || r.status != exitFailed || r.stdout != "" {
				t.Errorf("got %+v, want %q", r, test.want)
			}
		})
	}
}

func TestCheckOutput(t *testing.T) {
	const warning, found = "-:1: warning: loc-not-ascii: loc has characters that should be percent-encoded: https://example.com/a\\u202e\\u2028\n",
		"-:1: error: priority: priority \"2\" is not a decimal number from 0.0 to 1.0: https://example.com/a\\u202e\\u2028\n"
	const object = `{"severity":"error","file":"-","line":1,"code":"priority","message":"priority \"2\" is not a decimal number from 0.0 to 1.0","url":"https://example.com/a\u202e\u2028"}` + "\n"
	for args, want := range map[string]commandRun{
		"-":                {warning + found, "documents: 1, pages: 1, fetched: 0, errors: 1, warnings: 1\n", exitErrors},
		"--quiet -":        {found, "", exitErrors},
		"--quiet --json -": {object, "", exitErrors},
	} {
		if r := runCommand(t.Context(), strings.NewReader(checkedSitemap), append([]string{"check"}, strings.Fields(args)...)...); r != want {
			t.Errorf("%s: got %+v, want %+v", args, r, want)
		}
	}
	lines := strings.Split(runCommand(t.Context(), strings.NewReader(checkedSitemap), "check", "--json", "-").stdout, "\n")
	var last struct{ Summary lint.Summary }
	if err := json.Unmarshal([]byte(lines[len(lines)-2]), &last); err != nil || len(lines) != 4 || last.Summary.Errors != 1 || last.Summary.Codes["priority"] != 1 {
		t.Errorf("got %q, %+v, %v", lines, last, err)
	}
	if r := runCommand(t.Context(), nil, "check", "--quiet", "nosuch"); !strings.HasPrefix(r.stdout, "nosuch: error: document-unread: ") || r.status != exitFailed {
		t.Errorf("no such file: got %+v", r)
	}
	if r := runCommand(t.Context(), strings.NewReader("<rss/>"), "check", "-"); r.stdout != "" || r.stderr != "documents: 1, feeds (not checked): 1, pages: 0, fetched: 0, errors: 0, warnings: 0\n" || r.status != 0 {
		t.Errorf("a feed: got %+v", r)
	}
	if r := runCommand(t.Context(), strings.NewReader(strings.Replace(checkedSitemap, "2</priority>", "1</priority>", 1)), "check", "-"); r.status != 0 {
		t.Errorf("a warning: got %+v", r)
	}
	var stderr strings.Builder
	status := runCommandInto(t.Context(), strings.NewReader(checkedSitemap), brokenWriter{}, &stderr, "check", "-")
	if status != exitFailed || !strings.HasSuffix(stderr.String(), "Error: the disk is full\n") {
		t.Errorf("findings that nobody got: got %d, %q", status, stderr.String())
	}
}
