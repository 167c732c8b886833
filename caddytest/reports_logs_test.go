package caddytest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// combinedLine is a line of an access log in the combined format.
func combinedLine(client, request, agent string) string {
	when := time.Now().Add(-time.Hour).Format("02/Jan/2006:15:04:05 -0700")
	return fmt.Sprintf("%s - - [%s] \"%s\" 200 1234 \"-\" \"%s\"\n", client, when, request, agent)
}

// firefox is the User-Agent of a browser.
var firefox = strings.TrimPrefix(browser, "User-Agent: ")

// logSite is a site that lists what its log {dir}/<name>.log says that visitors have requested.
func logSite(name string) string {
	return originOf(name) + ` {
	sitemap {
		access_log {dir}/` + name + `.log {
			unlinked /*
		}
	}
	handle /robots.txt {
		error 404
	}
	handle {
		header Content-Type text/html
		respond "<!doctype html><title>{path}</title>{path}"
	}
}
`
}

// TestCombinedLogs reads lines as proxies and content delivery networks write them.
func TestCombinedLogs(t *testing.T) {
	s := prepare(t, nil)
	var log strings.Builder
	for _, line := range [][2]string{
		{"203.0.113.9, 10.0.0.1", "GET /list HTTP/1.1"},
		{"203.0.113.9,10.0.0.1,10.0.0.2", "GET /tight HTTP/1.1"},
		{"2001:db8::1, unknown, 10.0.0.1", "GET /three HTTP/2.0"},
		{"lines.localhost:{port} 203.0.113.9, 10.0.0.1", "GET /host HTTP/1.1"},
		{"other.example:80 203.0.113.9, 10.0.0.1", "GET /other-host HTTP/1.1"},
		{"203.0.113.9", "GET http://lines.localhost:{port}/absolute?x=1 HTTP/1.1"},
		{"203.0.113.9, 10.0.0.1", "GET HTTP://lines.localhost/upper HTTP/1.1"},
		{"203.0.113.9", "GET http://evil.example/absolute-elsewhere HTTP/1.1"},
	} {
		log.WriteString(combinedLine(s.Expand(line[0]), s.Expand(line[1]), firefox))
	}
	s.WriteRaw("lines.log", log.String())
	s.Load(logSite("lines"))
	s.Logged(harness.LogRead)
	s.Refreshes(1)
	s.WantLocs(originOf("lines")+"/sitemap.xml", harness.Below(originOf("lines"), []string{"/", "/absolute", "/host", "/list", "/three", "/tight", "/upper"})...)
}

// TestLogWithoutAgents: where no line has the User-Agent of a browser, as its format drops it, no visit counts, and a hint says so.
func TestLogWithoutAgents(t *testing.T) {
	const hint = "no line has the User-Agent of a browser"
	cases := map[string]struct {
		agent func(i int) string
		hints bool
	}{
		"missing":  {func(int) string { return "-" }, true},
		"replaced": {func(int) string { return "REDACTED" }, true},
		"hash":     {func(int) string { return "9b74c9897bac770ffc029102a200c5de" }, true},
		"hashes":   {func(i int) string { return fmt.Sprintf("%08x", 0x63b0c442+i%7) }, true},
		"tools":    {func(int) string { return "curl/8.5.0" }, true},
		"browser": {func(i int) string {
			if i == 70 {
				return firefox
			}
			return "-"
		}, false},
	}
	s := prepareWithAdmin(t, nil)
	config := ""
	for name, test := range cases {
		var log strings.Builder
		for i := range 120 {
			log.WriteString(combinedLine("203.0.113.9", fmt.Sprintf("GET /%d HTTP/1.1", i), test.agent(i)))
		}
		s.WriteRaw(name+".log", log.String())
		config += logSite(name)
	}
	s.Load(config)
	s.Eventually(func() bool { return len(s.LogLines(harness.LogRead)) == len(cases) }, s.SitemapLog)
	for name, test := range cases {
		hinted := s.LogLines(`"level":"warn"`, name+".log", hint)
		status := s.Get(api + "/sitemap/sites?site=" + originOf(name)).Text
		if test.hints != (len(hinted) > 0) || test.hints != strings.Contains(status, hint) {
			t.Errorf("%s: the log says %q, the status\n%s", name, hinted, status)
		}
	}
}
