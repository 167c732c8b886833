package visits

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzParseJSON: nothing but an object has a request.
func FuzzParseJSON(f *testing.F) {
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
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		v, problem := parse(t, "json", line)
		isObject := strings.HasPrefix(strings.TrimSpace(line), "{")
		if problem == "" && (!isObject || v.URI == "") {
			t.Errorf("%q: got %+v", line, v)
		}
	})
}

// FuzzWriteJSON reads back what encoding/json writes, in any order and among keys of
// the same names elsewhere.
func FuzzWriteJSON(f *testing.F) {
	f.Add(uint64(1), "GET", "example.com", "/a?b=\"c\"&d=<e>\\", "Mozilla/5.0", `"x"`, int64(1795226077), uint16(200))
	f.Add(uint64(2), "\xff", "ä", "/😀\u2028", "\x00\x1f\x7f", "", int64(0), uint16(0))
	f.Add(uint64(3), "", "uri", "\":\"", "request", "\xed\xa0\x80", int64(99999999999), uint16(999))
	f.Fuzz(func(t *testing.T, seed uint64, method, host, uri, agent, tag string, ts int64, status uint16) {
		r := rand.New(rand.NewPCG(seed, 0))
		want := Visit{
			Time: max(ts, 0) % 1e11, Status: int(status % 1000), Method: kept(method), Host: kept(host), URI: kept(uri),
			UserAgent: cmp.Or(kept(agent), "-"), RobotsTag: kept(tag) + ", " + kept(agent), User: r.IntN(2) == 0,
		}
		requestHeaders := map[string]any{"User-Agent": []string{agent}, "Accept": []string{uri}, "X-Robots-Tag": []string{uri}}
		root := map[string]any{
			"ts":     float64(want.Time) + 0.5,
			"status": want.Status,
			"msg":    uri,
			"uri":    uri,
			"extra":  map[string]any{"request": map[string]any{"uri": agent, "status": []any{1, nil, true, map[string]any{}}}},
			"request": written{r, map[string]any{
				"method": method, "host": host, "uri": uri, "client_ip": tag, "ts": tag,
				"headers": written{r, requestHeaders},
			}},
			"resp_headers": written{r, map[string]any{"X-Robots-Tag": []string{tag, agent}, "User-Agent": []string{uri}}},
		}
		if want.User {
			root["user_id"] = "jane"
		}
		line, err := written{r, root}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, problem := parse(t, "", string(line))
		if want.URI == "" {
			if problem != noRequest {
				t.Fatalf("%s: got %q", line, problem)
			}
			return
		}
		if problem != "" || got != want {
			t.Fatalf("%s:\ngot  %+v, %q\nwant %+v", line, got, problem, want)
		}
	})
}

// kept is s as it is read back: each byte that is not UTF-8 is U+FFFD.
func kept(s string) string { return string([]rune(s)) }

// written is an object whose keys come in a random order, with random white space.
type written struct {
	r      *rand.Rand
	values map[string]any
}

func (w written) MarshalJSON() ([]byte, error) {
	var keys []string
	for key := range w.values {
		keys = append(keys, key)
	}
	w.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	space := func() string { return []string{"", "", "", " ", "\t", " \n", "\r\n  "}[w.r.IntN(7)] }
	b := []byte("{" + space())
	for i, key := range keys {
		if i > 0 {
			b = append(b, ","+space()...)
		}
		value := w.values[key]
		var raw []byte
		var err error
		if object, ok := value.(written); ok {
			raw, err = object.MarshalJSON() // json.Marshal would cut the white space
		} else {
			raw, err = json.Marshal(value)
		}
		if err != nil {
			return nil, err
		}
		b = fmt.Appendf(b, "%q%s:%s%s%s", key, space(), space(), raw, space())
	}
	return append(b, '}'), nil
}

// FuzzParseCommon: a line that has a request has the path of one, whatever else is in it.
func FuzzParseCommon(f *testing.F) {
	const at = ` [17/May/2015:10:05:03 +0000] `
	for _, s := range []string{
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
		v, problem := parse(t, "common", line)
		if problem == "" && (v.URI == "" || v.Status < 0) {
			t.Errorf("%q: got %+v", line, v)
		}
	})
}
