package visits

import "testing"

// parse reads a line in a format.
func parse(t testing.TB, format, line string) (v Visit, problem string) {
	t.Helper()
	b := []byte(line)
	v, problem = (&Reader{Format: format}).parse(b)
	if string(b) != line {
		t.Fatalf("the line became %q", b)
	}
	if problem != "" && v.URI != "" {
		t.Fatalf("%q: got %+v with %v", line, v, problem)
	}
	return v, problem
}

func TestParseFormats(t *testing.T) {
	const (
		object = `{"request":{"uri":"/a"}}`
		common = `192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 1`
		agent  = common + ` "-" "x"`
	)
	for _, test := range []struct{ format, line, want string }{
		{"", object, ""},
		{"auto", object, ""},
		{"auto", agent, ""},
		{"auto", " \t" + agent + "\r", ""},
		{"auto", "", noRequest},
		{"auto", `"` + agent + `"`, unread},
		{"auto", `"{\"request\":{\"uri\":\"/a\"}}"`, unread},
		{"auto", "<134>1 2026-11-21T09:18:01Z host nginx 123 - - " + agent, unread},
		{"auto", "\x00\x00" + common, unread},
		{"auto", object + "\x00", unread},
		{"json", object, ""},
		{"json", common, unread},
		{"json", "null", unread},
		{"common", agent, ""},
		{"common", object, unread},
		{"combined", agent, ""},
		{"combined", object, unread},
	} {
		if v, problem := parse(t, test.format, test.line); problem != test.want || problem == "" && v.URI != "/a" {
			t.Errorf("%v: %q: got %+v, %q, want %q", test.format, test.line, v, problem, test.want)
		}
	}
}

// TestParseTime: all that Caddy's time_format names, and no more.
func TestParseTime(t *testing.T) {
	const at = 1795226077
	for s, want := range map[string]int64{
		"1795226077":                          at,
		"1795226077.5":                        at,
		"1.7952260775e9":                      at,
		"1795226077999":                       at,
		"1795226077999999":                    at,
		"1795226077000000000":                 at,
		"2026-11-21T01:54:37.000Z":            at,
		"2026-11-21T11:24:37+09:30":           at,
		"2026-11-20T18:54:37.123456789-07:00": at,
		"2026-11-20T18:54:37.000-0700":        at,
		"2026/11/21 01:54:37":                 at,
		"2026/11/21 01:54:37.000000000":       at,
		"21/Nov/2026:01:54:37 +0000":          at,
		"":                                    0,
		"-":                                   0,
		"-1":                                  0,
		"1.5.5":                               0,
		"NaN":                                 0,
		"Infinity":                            0,
		"1e300":                               0,
		"1969-12-31T23:59:59Z":                0,
		"2026-02-29T00:00:00Z":                0,
		"17/anF/2015:10:05:03 +0000":          0,
		"17/May/2015:10:05":                   0,
	} {
		if got := parseTime(s); got != want {
			t.Errorf("%s: got %d, want %d", s, got, want)
		}
	}
}
