package accesslog

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

const caddyLine = `{"level":"info","ts":1795226077.1071894,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"192.0.2.7","remote_port":"49478","client_ip":"198.51.100.3","proto":"HTTP/2.0","method":"GET","host":"example.com:8098","uri":"/a.html?x=1&y=2","headers":{"Cookie":["REDACTED"],"Accept-Encoding":["gzip, deflate, br, zstd"],"User-Agent":["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/132.0.0.0 Safari/537.36"],"Accept":["*/*"],"Sec-Ch-Ua":["\"Chromium\";v=\"132\", \"Not A(Brand\";v=\"99\""]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com","ech":false}},"bytes_read":0,"user_id":"","duration":0.00102336,"size":115,"status":200,"resp_headers":{"Server":["Caddy"],"Vary":["Accept-Encoding"],"Cache-Control":["public","max-age=60"],"X-Robots-Tag":["noindex"],"Etag":["\"dn0i4th4znyp-37\""],"Content-Type":["text/html; charset=utf-8"],"Last-Modified":["Sat, 21 Nov 2026 01:35:51 GMT"],"Accept-Ranges":["bytes"],"Content-Length":["115"]}}`

var caddyVisit = visits.Visit{
	Time: 1795226077, Method: "GET", Host: "example.com:8098", URI: "/a.html?x=1&y=2", Status: 200,
	UserAgent:   "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/132.0.0.0 Safari/537.36",
	ContentType: "text/html; charset=utf-8", RobotsTag: "noindex",
}

func TestParseCaddy(t *testing.T) {
	p := newParser(t, "")
	got, err := parse(t, p, caddyLine)
	if err != nil || got != caddyVisit {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, caddyVisit)
	}
	for i := 1; i < len(caddyLine); i++ {
		if _, err := parse(t, p, caddyLine[:i]); err != ErrSyntax {
			t.Errorf("cut at %d: got %v", i, err)
		}
	}
	spaced := strings.NewReplacer(`{"`, "{ \t\"", `,"`, ` , "`, `":`, "\"\r\n : ", `]`, ` ] `, `[`, ` [ `, `}`, ` }`).Replace(caddyLine)
	if got, err := parse(t, p, spaced); err != nil || got != caddyVisit {
		t.Errorf("with white space: got %+v, %v", got, err)
	}
}

func TestParseJSON(t *testing.T) {
	p := newParser(t, "")
	in := func(more string) string { return `{"request":{"uri":"/"` + more }
	uri := func(s string) string { return `{"request":{"uri":` + s + `}}` }
	for _, test := range []struct {
		name, line string
		want       visits.Visit
	}{
		{"any order", `{"status":404,"request":{"headers":{},"uri":"/"},"ts":7}`, visits.Visit{URI: "/", Status: 404, Time: 7}},
		{"milliseconds", in(`},"ts":1795226077095.7985}`), visits.Visit{URI: "/", Time: 1795226077}},
		{"nanoseconds", in(`},"ts":1795226077095798500}`), visits.Visit{URI: "/", Time: 1795226077}},
		{"numbers as strings", in(`},"ts":"1795226077.09","status":"308"}`), visits.Visit{URI: "/", Time: 1795226077, Status: 308}},
		{"odd numbers", in(`},"ts":1.795226077E+9,"status":2e2}`), visits.Visit{URI: "/", Time: 1795226077}},
		{"negative", in(`},"ts":-1,"status":-1}`), visits.Visit{URI: "/"}},
		{"large status", in(`},"status":2000}`), visits.Visit{URI: "/"}},
		{"no time", in(`},"ts":"yesterday","status":"good"}`), visits.Visit{URI: "/"}},
		{"null", `{"ts":null,"status":null,"user_id":null,"resp_headers":null,"request":{"uri":"/","method":null,"headers":null,"client_ip":null}}`, visits.Visit{URI: "/"}},
		{"other kinds", `{"ts":{"a":[1]},"status":[200],"user_id":[],"resp_headers":[{"Etag":"a"}],"request":{"uri":"/","method":1,"host":true,"headers":"REDACTED","client_ip":{}}}`, visits.Visit{URI: "/", Method: "1", Host: "true"}},
		{"replaced", `{"ts":"","status":"REDACTED","user_id":"REDACTED","resp_headers":"REDACTED","request":{"uri":"REDACTED","method":"REDACTED","client_ip":"1f2e3d4c"}}`, visits.Visit{URI: "REDACTED", Method: "REDACTED", User: true}},
		{"common_log", in(`},"common_log":"192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET /x HTTP/1.1\" 200 1"}`), visits.Visit{URI: "/"}},

		{"user", in(`},"user_id":"7"}`), visits.Visit{URI: "/", User: true}},
		{"a number of a user", in(`},"user_id":7}`), visits.Visit{URI: "/", User: true}},
		{"no user", in(`},"user_id":"-"}`), visits.Visit{URI: "/"}},
		{"false user", in(`},"user_id":false}`), visits.Visit{URI: "/"}},
		{"authorization", in(`,"headers":{"Authorization":["REDACTED"]}},"user_id":""}`), visits.Visit{URI: "/", User: true}},
		{"header without an array", in(`},"resp_headers":{"X-Robots-Tag":"\"x\""}}`), visits.Visit{URI: "/", RobotsTag: `"x"`}},
		{"header's odd values", in(`},"resp_headers":{"X-Robots-Tag":["a",null,["b"],{"c":"d"},"e",1]}}`), visits.Visit{URI: "/", RobotsTag: "a, e"}},
		{"header's values escaped", in(`},"resp_headers":{"X-Robots-Tag":["\"a\"","\u00e4","","b"]}}`), visits.Visit{URI: "/", RobotsTag: `"a", ä, , b`}},
		{"other case", in(`},"resp_headers":{"X-ROBOTS-Tag":["x"]},"STATUS":200}`), visits.Visit{URI: "/"}},
		{"keys elsewhere", `{"uri":"/x","msg":"\"uri\":\"/y\"","extra":{"request":{"uri":"/z"}},"request":{"headers":{"uri":["/w"],"Referer":["{\"uri\":\"/v\"}"]},"tls":{"uri":"/u"},"uri":"/"}}`, visits.Visit{URI: "/"}},

		{"escapes", uri(`"\"\\\/\b\f\n\r\t\u0041\u00e4"`), visits.Visit{URI: "\"\\/\b\f\n\r\tAä"}},
		{"surrogates", uri(`"\ud83d\ude00"`), visits.Visit{URI: "😀"}},
		{"lone surrogates", uri(`"\ud83d\u0041\ude00\ud83dx\ud83d\ud83d\ude00\ud83d"`), visits.Visit{URI: "\ufffdA\ufffd\ufffdx\ufffd😀\ufffd"}},
		{"UTF-8", uri(`"/ä😀"`), visits.Visit{URI: "/ä😀"}},
		{"no UTF-8", uri("\"/\xff\xc3\""), visits.Visit{URI: "/\xff\xc3"}},
		{"no UTF-8 and escapes", uri("\"\\n\xff\""), visits.Visit{URI: "\n\ufffd"}},
		{"no UTF-8 in an array", in("},\"resp_headers\":{\"X-Robots-Tag\":[\"a\",\"\xff\"]}}"), visits.Visit{URI: "/", RobotsTag: "a, \ufffd"}},
		{"no UTF-8 elsewhere", in(",\"\xff\":\"\xff\"}}"), visits.Visit{URI: "/"}},
		{"key twice", `{"request":{"uri":"/x"},"request":{"uri":"/"}}`, visits.Visit{URI: "/"}},
		{"other keys twice", in(`,"x":1,"x":2},"y":1,"y":2}`), visits.Visit{URI: "/"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parse(t, p, test.line)
			if err != nil || got != test.want {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

func TestParseJSONErrors(t *testing.T) {
	p := newParser(t, "")
	in := func(more string) string { return `{"request":{"uri":"/"` + more }
	for _, test := range []struct {
		name, line string
		want       error
	}{
		{"empty", `{}`, ErrNoRequest},
		{"not of a request", `{"level":"info","ts":1.5,"msg":"serving initial configuration"}`, ErrNoRequest},
		{"no URI", `{"request":{"method":"GET"},"status":200}`, ErrNoRequest},
		{"empty URI", `{"request":{"uri":""}}`, ErrNoRequest},
		{"request is no object", `{"request":["uri"]}`, ErrNoRequest},
		{"error log", `{"logger":"http.log.error.log0","request":{"uri":"/"},"status":500}`, ErrNoRequest},
		{"reverse proxy", in(`},"logger":"http.handlers.reverse_proxy"}`), ErrNoRequest},
		{"two objects", `{"request":{"uri":"/"}}{}`, ErrSyntax},
		{"no comma", in(`}"a":1}`), ErrSyntax},
		{"no colon", in(`},"a" 1}`), ErrSyntax},
		{"no key", in(`},1:1}`), ErrSyntax},
		{"array not closed", in(`,"a":[1}}`), ErrSyntax},
		{"signed \\u", in(`,"host":"\u+0ff"}}`), ErrSyntax},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := parse(t, p, test.line); err != test.want {
				t.Errorf("got %+v, %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestParseAllocates(t *testing.T) {
	p := newParser(t, "")
	var v visits.Visit
	for _, s := range []string{caddyLine, combinedLine, `{"level":"info","msg":"x"}`, "junk"} {
		line := []byte(s)
		if n := testing.AllocsPerRun(100, func() { _ = p.Parse(line, &v) }); n != 0 {
			t.Errorf("%.20q: got %v allocations", s, n)
		}
	}
}

// sampleLines are lines that Caddy wrote.
func sampleLines(t testing.TB) [][]byte {
	t.Helper()
	b, err := os.ReadFile("testdata/caddy.log")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(b), []byte("\n"))
}

func TestParseSample(t *testing.T) {
	p := newParser(t, "")
	for _, line := range sampleLines(t) {
		v, err := parse(t, p, string(line))
		if err != nil || v.Host != "127.0.0.1:8098" || v.URI[0] != '/' || v.User || v.Time != 1795226077 || v.Status == 0 {
			t.Errorf("%s: got %+v, %v", line, v, err)
		}
	}
}

// BenchmarkParseJSON reads what a browser's requests leave in a log.
func BenchmarkParseJSON(b *testing.B) {
	p, line := newParser(b, ""), []byte(caddyLine)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	var v visits.Visit
	for b.Loop() {
		if err := p.Parse(line, &v); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodingJSON is what the other one is measured by.
func BenchmarkEncodingJSON(b *testing.B) {
	line := []byte(caddyLine)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct {
			TS      float64 `json:"ts"`
			Request struct {
				ClientIP string              `json:"client_ip"`
				Method   string              `json:"method"`
				Host     string              `json:"host"`
				URI      string              `json:"uri"`
				Headers  map[string][]string `json:"headers"`
			} `json:"request"`
			UserID      string              `json:"user_id"`
			Status      int                 `json:"status"`
			RespHeaders map[string][]string `json:"resp_headers"`
		}
		if err := json.Unmarshal(line, &v); err != nil {
			b.Fatal(err)
		}
	}
}
