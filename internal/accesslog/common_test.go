package accesslog

import (
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

const combinedLine = `198.18.0.1 - - [17/May/2015:10:05:03 +0000] "GET /presentations/logstash-monitorama-2013/images/kibana-search.png HTTP/1.1" 200 203023 "http://semicomplete.com/presentations/logstash-monitorama-2013/" "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36"`

func TestParseCommon(t *testing.T) {
	p := newParser(t, "")
	const at = "[17/May/2015:10:05:03 +0000]"
	const when = 1431857103
	get := func(before string) string { return before + " " + at + ` "GET / HTTP/1.1" 200 1` }
	ask := func(request string) string { return `192.0.2.1 - - ` + at + ` "` + request + `" 200 1` }
	with := func(after string) string { return `192.0.2.1 - - ` + at + ` "GET / HTTP/1.1" 200 1` + after }
	plain := visits.Visit{Time: when, Method: "GET", URI: "/", Status: 200}
	but := func(change func(v *visits.Visit)) visits.Visit {
		v := plain
		change(&v)
		return v
	}
	for _, test := range []struct {
		name, line string
		want       visits.Visit
	}{
		{"common", get("192.0.2.1 - -"), plain},
		{"combined", with(` "-" "x"`), but(func(v *visits.Visit) { v.UserAgent = "x" })},
		{"no user agent", with(` "-" "-"`), but(func(v *visits.Visit) { v.UserAgent = "-" })},
		{"more", with(` "-" "x" "192.0.2.9" rt=0.003 "cut`), but(func(v *visits.Visit) { v.UserAgent = "x" })},
		{"more, but no user agent", with(` 0.003 "x"`), plain},
		{"one in quotes", with(` "x"`), plain},
		{"space after it", with(` `), plain},
		{"no size", `192.0.2.1 - - ` + at + ` "GET / HTTP/1.1" 304 -`, but(func(v *visits.Visit) { v.Status = 304 })},
		{"no status", `192.0.2.1 - - ` + at + ` "GET / HTTP/1.1" - -`, but(func(v *visits.Visit) { v.Status = 0 })},
		{"no time", `192.0.2.1 - - [-] "GET / HTTP/1.1" 200 1`, but(func(v *visits.Visit) { v.Time = 0 })},
		{"zone", `192.0.2.1 - - [17/May/2015:03:05:03.5 -0700] "GET / HTTP/1.1" 200 1`, plain},

		{"user", get("192.0.2.1 - jane"), but(func(v *visits.Visit) { v.User = true })},
		{"user with spaces", get("192.0.2.1 - jane q. doe"), but(func(v *visits.Visit) { v.User = true })},
		{"identity", get("192.0.2.1 id jane"), but(func(v *visits.Visit) { v.User = true })},
		{"empty user", get(`192.0.2.1 - ""`), plain},
		{"no user", get(`192.0.2.1 - `), plain},
		{"IPv6", get("2001:db8::1 - -"), plain},
		{"IPv6 in brackets", get("[2001:db8::1]:443 - -"), plain},
		{"name", get("a-b.example.com - -"), plain},
		{"no client", get("- - -"), plain},
		{"host", get("example.com 192.0.2.1 - -"), but(func(v *visits.Visit) { v.Host = "example.com" })},
		{"host and port", get("example.com:443 192.0.2.1 - jane doe"), but(func(v *visits.Visit) { v.Host, v.User = "example.com:443", true })},
		{"host of IPv6", get("[2001:db8::1]:443 192.0.2.1 - -"), but(func(v *visits.Visit) { v.Host = "[2001:db8::1]:443" })},
		{"host of IPv6, no port", get("[2001:db8::1] 192.0.2.1 - -"), but(func(v *visits.Visit) { v.Host = "[2001:db8::1]" })},
		{"no host", get("- 192.0.2.1 - -"), plain},

		{"other method", ask("POST /a?b=c HTTP/2.0"), but(func(v *visits.Visit) { v.Method, v.URI = "POST", "/a?b=c" })},
		{"absolute", ask("GET http://example.com/ HTTP/1.1"), but(func(v *visits.Visit) { v.Host, v.URI = "example.com", "/" })},
		{"asterisk", ask("OPTIONS * HTTP/1.1"), but(func(v *visits.Visit) { v.Method, v.URI = "OPTIONS", "*" })},
		{"spaces", ask("GET  /a b  HTTP/1.1"), but(func(v *visits.Visit) { v.URI = "/a b" })},
		{"HTTP/0.9", ask("GET /a"), but(func(v *visits.Visit) { v.URI = "/a" })},
		{"HTTP/0.9 and a space", ask("GET /a "), but(func(v *visits.Visit) { v.URI = "/a" })},
		{"nginx", ask(`GET /\x22\xC3\xa4\x5C\x5Cx41 HTTP/1.1`), but(func(v *visits.Visit) { v.URI = `/"ä\\x41` })},
		{"Apache", ask(`GET /\"\\\n\t\r\b\v\f\\x41 HTTP/1.1`), but(func(v *visits.Visit) { v.URI = "/\"\\\n\t\r\b\v\f\\x41" })},
		{"no escapes", ask(`GET /\x4g\y\x4 HTTP/1.1`), but(func(v *visits.Visit) { v.URI = `/\x4g\y\x4` })},
		{"backslash at the end", ask(`GET /a\ HTTP/1.1`), but(func(v *visits.Visit) { v.URI = `/a\` })},
		{"backslash before the quote", with(` "\\" "x\\"`), but(func(v *visits.Visit) { v.UserAgent = `x\` })},
		{"bytes", ask("GET /\xff\x01ä HTTP/1.1"), but(func(v *visits.Visit) { v.URI = "/\xff\x01ä" })},
		{"quotes in the user agent", with(` "-" "a \"b\" \x22c\x22"`), but(func(v *visits.Visit) { v.UserAgent = `a "b" "c"` })},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := parse(t, p, test.line); err != nil || got != test.want {
				t.Errorf("%s\ngot  %+v, %v\nwant %+v", test.line, got, err, test.want)
			}
		})
	}
}

func TestParseCommonErrors(t *testing.T) {
	p := newParser(t, "")
	const before = `192.0.2.1 - - [17/May/2015:10:05:03 +0000] `
	for _, test := range []struct {
		line string
		want error
	}{
		{before + `"-" 408 -`, ErrNoRequest},
		{before + `"" 400 0 "-" "-"`, ErrNoRequest},
		{before + `"\x16\x03\x01\x00\xEE\x01" 400 150 "-" "-"`, ErrNoRequest},
		{before + "\"\x16\x03\x01 / HTTP/1.1\" 400 150", ErrNoRequest},
		{before + `"GET" 400 150`, ErrNoRequest},
		{before + `"GET HTTP/1.1" 400 150`, ErrNoRequest},
		{before + `"OPTIONS / RTSP/1.0" 400 150`, ErrNoRequest},
		{before + `"G(T / HTTP/1.1" 400 150`, ErrNoRequest},

		{before, ErrSyntax},
		{before + `"GET / HTTP/1.1"`, ErrSyntax},
		{before + `"GET / HTTP/1.1" 200`, ErrSyntax},
		{before + `"GET / HTTP/1.1" 20 1`, ErrSyntax},
		{before + `"GET / HTTP/1.1" 2000 1`, ErrSyntax},
		{before + `"GET / HTTP/1.1" 200 1x`, ErrSyntax},
		{before + `"GET / HTTP/1.1"200 1`, ErrSyntax},
		{before + `"GET /"x" HTTP/1.1" 200 1`, ErrSyntax},
		{before + `"GET / HTTP/1.1 200 1`, ErrSyntax},
		{before + `"GET / HTTP/1.1\" 200 1`, ErrSyntax},
		{before + `GET / HTTP/1.1 200 1`, ErrSyntax},
		{before + `"GET / HTTP/1.1" 200 1 "cut`, ErrSyntax},
		{before + `"GET / HTTP/1.1" 200 1 "-" "cut`, ErrSyntax},
		{before + `"GET / HTTP/1.1" 200 1 "-" "x"y`, ErrSyntax},
		{`192.0.2.1 - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, ErrSyntax},
		{`[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, ErrSyntax},
		{`192.0.2.1 - - 17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`, ErrSyntax},
		{`192.0.2.1 - - [17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`, ErrSyntax},
		{`192.0.2.1 - -[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, ErrSyntax},
		{`192.0.2.1 - x [y] ` + before + `"GET / HTTP/1.1" 200 1`, ErrSyntax},
		{`a/b ` + before + `"GET / HTTP/1.1" 200 1`, ErrSyntax},
		{`example.com:x ` + before + `"GET / HTTP/1.1" 200 1`, ErrSyntax},
	} {
		if got, err := parse(t, p, test.line); err != test.want {
			t.Errorf("%q: got %+v, %v, want %v", test.line, got, err, test.want)
		}
	}
}
