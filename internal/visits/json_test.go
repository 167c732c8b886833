package visits

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

const caddyLine = `{"level":"info","ts":1795226077.1071894,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"192.0.2.7","remote_port":"49478","client_ip":"198.51.100.3","proto":"HTTP/2.0","method":"GET","host":"example.com:8098","uri":"/a.html?x=1&y=2","headers":{"Cookie":["REDACTED"],"Accept-Encoding":["gzip, deflate, br, zstd"],"User-Agent":["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/132.0.0.0 Safari/537.36"],"Accept":["*/*"],"Sec-Ch-Ua":["\"Chromium\";v=\"132\", \"Not A(Brand\";v=\"99\""]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com","ech":false}},"bytes_read":0,"user_id":"","duration":0.00102336,"size":115,"status":200,"resp_headers":{"Server":["Caddy"],"Vary":["Accept-Encoding"],"Cache-Control":["public","max-age=60"],"X-Robots-Tag":["noindex"],"Etag":["\"dn0i4th4znyp-37\""],"Content-Type":["text/html; charset=utf-8"],"Last-Modified":["Sat, 21 Nov 2026 01:35:51 GMT"],"Accept-Ranges":["bytes"],"Content-Length":["115"]}}`

var caddyVisit = Visit{
	Time: 1795226077, Method: "GET", Host: "example.com:8098", URI: "/a.html?x=1&y=2", Cookie: true, Status: 200,
	UserAgent:   "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/132.0.0.0 Safari/537.36",
	ContentType: "text/html; charset=utf-8", RobotsTag: "noindex",
}

func TestParseCaddy(t *testing.T) {
	got, problem := parse(t, "", caddyLine)
	if problem != "" || got != caddyVisit {
		t.Errorf("got  %+v, %q\nwant %+v", got, problem, caddyVisit)
	}
	for i := 1; i < len(caddyLine); i++ {
		if _, problem := parse(t, "", caddyLine[:i]); problem != unread {
			t.Errorf("cut at %d: got %q", i, problem)
		}
	}
}

func TestParseJSON(t *testing.T) {
	in := func(more string) string { return `{"request":{"uri":"/"` + more }
	for name, test := range map[string]struct {
		line string
		want Visit
	}{
		"milliseconds":  {in(`},"ts":1795226077095.7985}`), Visit{URI: "/", Time: 1795226077}},
		"nanoseconds":   {in(`},"ts":1795226077095798500}`), Visit{URI: "/", Time: 1795226077}},
		"no time":       {in(`},"ts":"yesterday","status":"good"}`), Visit{URI: "/"}},
		"null":          {`{"ts":null,"status":null,"user_id":null,"resp_headers":null,"request":{"uri":"/","method":null,"headers":null}}`, Visit{URI: "/"}},
		"other kinds":   {`{"ts":{"a":[1]},"status":[200],"user_id":[],"resp_headers":[{"Etag":"a"}],"request":{"uri":"/","method":1,"host":true,"headers":"REDACTED"}}`, Visit{URI: "/", Method: "1"}},
		"replaced":      {`{"ts":"","user_id":"REDACTED","resp_headers":"REDACTED","request":{"uri":"REDACTED","method":"REDACTED"}}`, Visit{URI: "REDACTED", Method: "REDACTED", User: true}},
		"authorization": {in(`,"headers":{"Authorization":["REDACTED"]}},"user_id":""}`), Visit{URI: "/", User: true, UserAgent: "-"}},
		"no User-Agent": {in(`,"headers":{"Accept":["*/*"]}}}`), Visit{URI: "/", UserAgent: "-"}},
		"no array":      {in(`},"resp_headers":{"X-Robots-Tag":"\"x\""}}`), Visit{URI: "/", RobotsTag: `"x"`}},
		"no UTF-8":      {"{\"request\":{\"uri\":\"/\xff\xc3\"}}", Visit{URI: "/\xff\xc3"}},
		"key twice":     {`{"request":{"uri":"/"},"request":{"uri":"/x"}}`, Visit{URI: "/"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, problem := parse(t, "", test.line); problem != "" || got != test.want {
				t.Errorf("got  %+v, %q\nwant %+v", got, problem, test.want)
			}
		})
	}
	for line, want := range map[string]string{
		`{}`: unread,
		in(`},"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}"): unread,
		`{"level":"info","ts":1.5,"msg":"serving initial configuration"}`:          noRequest,
		`{"ts":1.5,"logger":"tls","msg":"renewed","request":{"method":"GET"}}`:     noRequest,
	} {
		if got, problem := parse(t, "", line); problem != want {
			t.Errorf("%s: got %+v, %q, want %q", line, got, problem, want)
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
	for _, line := range sampleLines(t) {
		v, problem := parse(t, "", string(line))
		if problem != "" || v.Host != "127.0.0.1:8098" || v.URI[0] != '/' || v.User || v.Time != 1795226077 || v.Status == 0 {
			t.Errorf("%s: got %+v, %q", line, v, problem)
		}
	}
}

// BenchmarkParseJSON reads what a browser's requests leave in a log.
func BenchmarkParseJSON(b *testing.B) {
	r := new(Reader)
	line := []byte(caddyLine)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, problem := r.parse(line); problem != "" {
			b.Fatal(problem)
		}
	}
}
