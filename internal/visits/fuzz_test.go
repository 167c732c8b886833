package visits

import "testing"

// FuzzParse: a line that has a request has the path of one, whatever else is in it.
func FuzzParse(f *testing.F) {
	const at = ` [17/May/2015:10:05:03 +0000] `
	for _, line := range sampleLines(f) {
		f.Add(string(line))
	}
	for _, s := range []string{
		caddyLine,
		`{}`, `{"request":{}}`, ` { "request" : { "uri" : "/" , "headers" : { "Cookie" : [ "a" , "b" ] } } } `,
		`{"request":{"uri":"\u00e4\ud83d\ude00\ud83d\"\\\/\b\f\n\r\t","client_ip":"[::1]:80","remote_addr":"192.0.2.1:1"}}`,
		`{"request":{"uri":"/"},"request":{"uri":"/x"}}`, `{"r\u0065quest":{"uri":"/"}}`,
		`{"ts":1e9,"status":2e2,"user_id":-0.0,"request":{"uri":"/"}}`, `{"ts":"1795226077.5","status":"200","request":{"uri":"/"}}`,
		`{"ts":"2026/11/21 01:54:37.000","request":{"uri":"/"}}`, `{"ts":"2026-11-21T01:54:37.000Z","request":{"uri":"/"}}`, `{"ts":"21/Nov/2026:01:54:37 +0000","request":{"uri":"/"}}`,
		`{"resp_headers":{"Etag":["\"a\"","b",null,["c"],{"d":"e"}],"Content-Type":"x","Cache-Control":[]},"request":{"uri":"/"}}`,
		`{"logger":"http.log.error","request":{"uri":"/"}}`, `{"a":[{"b":[[],{},true,false,null]}],"request":{"uri":"/"}}`,
		"{\"request\":{\"uri\":\"/\xff\xc3\xa4\\n\"}}", "{\"a\":\"\x1f\"}",
		`{"request":{"uri":"0123456` + `\"","host":"01234567\"","method":"012345678\u0022"}}`,
		combinedLine,
		`192.0.2.1 - -` + at + `"GET / HTTP/1.1" 200 1`,
		`example.com:443 2001:db8::1 - jane doe` + at + `"GET / HTTP/1.1" 304 - "-" "\"\\\n\t\x41" "more" 0.003`,
		`[2001:db8::1]:443 [::1]:8 - ""` + at + `"OPTIONS * HTTP/2.0" - -`,
		`192.0.2.1 id jane` + at + `"GET /" 200 1 "x"`,
		`192.0.2.1 - x [y]` + at + `"GET / HTTP/1.1" 200 1 0.3 "`,
		`- - -` + at + `"-" 408 0 "-" "-"`,
		`- - - [17/May/2015:10:05:03.123 Z] "\x16\x03\x01" 400 0`,
		`- - - [31/Feb/2015:10:05:03-07:30] "GET  /a b\" HTTP/1.0" 400 0`,
		`Nov 21 09:18:01 host nginx: 192.0.2.1 - -` + at + `"GET / HTTP/1.1" 200 1`,
		`192.0.2.1 - -` + at + `"GET / HTTP/1.1" 200 1 "-" "cut`,
		`"192.0.2.1 - -` + at + `\"GET / HTTP/1.1\" 200 1"`,
		"\x00", "192.0.2.1 - -" + at + "\"GET /\xff\x00 HTTP/1.1\" 200 1\r",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		v, problem := parse(t, "auto", line)
		if problem == "" && (v.URI == "" || v.Status < 0) {
			t.Errorf("%q: got %+v", line, v)
		}
	})
}
