package visits

import (
	"testing"
)

const combinedLine = `198.18.0.1 - - [17/May/2015:10:05:03 +0000] "GET /presentations/logstash-monitorama-2013/images/kibana-search.png HTTP/1.1" 200 203023 "http://semicomplete.com/presentations/logstash-monitorama-2013/" "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36"`

func TestParseCommon(t *testing.T) {
	const at = "[17/May/2015:10:05:03 +0000]"
	const when = 1431857103
	get := func(before string) string { return before + " " + at + ` "GET / HTTP/1.1" 200 1` }
	ask := func(request string) string { return `192.0.2.1 - - ` + at + ` "` + request + `" 200 1` }
	with := func(after string) string { return `192.0.2.1 - - ` + at + ` "GET / HTTP/1.1" 200 1` + after }
	plain := Visit{Time: when, Method: "GET", URI: "/", Status: 200}
	but := func(change func(v *Visit)) Visit {
		v := plain
		change(&v)
		return v
	}
	for _, test := range []struct {
		name, line string
		want       Visit
	}{
		{"common", get("192.0.2.1 - -"), plain},
		{"combined", with(` "-" "x"`), but(func(v *Visit) { v.UserAgent = "x" })},
		{"no user agent", with(` "-" "-"`), but(func(v *Visit) { v.UserAgent = "-" })},
		{"more", with(` "-" "x" "192.0.2.9" rt=0.003 "cut`), but(func(v *Visit) { v.UserAgent = "x" })},
		{"odd quotes", with(` "-" "x"y`), plain},
		{"no size", `192.0.2.1 - - ` + at + ` "GET / HTTP/1.1" 304 -`, but(func(v *Visit) { v.Status = 304 })},
		{"zone", `192.0.2.1 - - [17/May/2015:03:05:03.5 -0700] "GET / HTTP/1.1" 200 1`, plain},

		{"user with spaces", get("192.0.2.1 - jane q. doe"), but(func(v *Visit) { v.User = true })},
		{"IPv6 in brackets", get("[2001:db8::1]:443 - -"), plain},
		{"no client", get("- - -"), plain},
		{"host", get("example.com 192.0.2.1 - -"), but(func(v *Visit) { v.Host = "example.com" })},
		{"host and port", get("example.com:443 192.0.2.1 - jane doe"), but(func(v *Visit) { v.Host, v.User = "example.com:443", true })},

		{"other method", ask("POST /a?b=c HTTP/2.0"), but(func(v *Visit) { v.Method, v.URI = "POST", "/a?b=c" })},
		{"absolute", ask("GET http://example.com/ HTTP/1.1"), but(func(v *Visit) { v.Host, v.URI = "example.com", "/" })},
		{"quotes", with(` "\\" "x \"y\" \\"`), but(func(v *Visit) { v.UserAgent = `x \"y\" \\` })},
		{"bytes", ask("GET /\xff\x01ä HTTP/1.1"), but(func(v *Visit) { v.URI = "/\xff\x01ä" })},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, problem := parse(t, "", test.line); problem != "" || got != test.want {
				t.Errorf("%s\ngot  %+v, %q\nwant %+v", test.line, got, problem, test.want)
			}
		})
	}
}

func TestParseCommonErrors(t *testing.T) {
	const before = `192.0.2.1 - - [17/May/2015:10:05:03 +0000] `
	for _, test := range []struct{ line, want string }{
		{before + `"-" 408 -`, noRequest},
		{before + `"\x16\x03\x01\x00\xEE\x01" 400 150 "-" "-"`, noRequest},
		{before + `"GET HTTP/1.1" 400 150`, noRequest},
		{before + `"GET /a b HTTP/1.1" 200 1`, noRequest},

		{before, unread},
		{before + `"GET / HTTP/1.1"`, unread},
		{before + `"GET / HTTP/1.1" 20 1`, unread},
		{before + `"GET / HTTP/1.1" 200 1x`, unread},
		{before + `"GET /"x" HTTP/1.1" 200 1`, unread},
		{before + `"GET / HTTP/1.1\" 200 1`, unread},
		{`192.0.2.1 - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, unread},
		{`192.0.2.1 - - 17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`, unread},
		{`192.0.2.1 - - [17/May/2015:10:05:03 +0000 "GET / HTTP/1.1" 200 1`, unread},
		{`192.0.2.1 - x [y] ` + before + `"GET / HTTP/1.1" 200 1`, unread},
		{`192.0.2.1 id jane` + before[len("192.0.2.1 - -"):] + `"GET / HTTP/1.1" 200 1`, unread},
		{`Nov 21 10:00:00 web1 nginx: ` + before + `"GET / HTTP/1.1" 200 1`, unread},
		{`a/b ` + before + `"GET / HTTP/1.1" 200 1`, unread},
	} {
		if got, problem := parse(t, "", test.line); problem != test.want {
			t.Errorf("%q: got %+v, %q, want %q", test.line, got, problem, test.want)
		}
	}
}
