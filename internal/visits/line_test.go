package visits

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

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

// layouts are those of Caddy's time_format.
var layouts = []string{
	"2006-01-02T15:04:05.000Z0700", // iso8601
	time.RFC3339,
	time.RFC3339Nano,
	"2006/01/02 15:04:05",
	"2006/01/02 15:04:05.000",
	"2006/01/02 15:04:05.000000000",
	"02/Jan/2006:15:04:05 -0700",
}

func TestParseTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	zones := []*time.Location{time.UTC, time.FixedZone("", 9*3600+1800), time.FixedZone("", -7*3600)}
	for range 200 {
		at := time.Unix(4e8+r.Int64N(4e9), r.Int64N(1e9)).In(zones[r.IntN(len(zones))])
		texts := map[string]int64{
			strconv.FormatFloat(float64(at.Unix())+0.5, 'f', -1, 64): at.Unix(), strconv.FormatFloat(float64(at.Unix())+0.5, 'e', -1, 64): at.Unix(),
		}
		for _, n := range []int64{at.Unix(), at.UnixMilli(), at.UnixMicro(), at.UnixNano()} {
			texts[strconv.FormatInt(n, 10)] = at.Unix()
		}
		for _, layout := range layouts {
			s := at.Format(layout)
			want, err := time.Parse(layout, s)
			if err != nil {
				t.Fatal(err)
			}
			texts[s] = want.Unix()
		}
		for s, want := range texts {
			if got := parseTime(s); got != want && got != want+1 { // a float of nanoseconds is not exact
				t.Fatalf("%s: got %d, want %d", s, got, want)
			}
		}
	}
	for _, s := range []string{
		"", "-", ".", "0", "-1", "1e", "1.5.5", "now", "NaN", "Infinity", "1e300", "1969-12-31T23:59:59Z", "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z",
		"17/anF/2015:10:05:03 +0000", "17/May/2015 10:05:03 +0000", "17-May-2015:10:05:03 +0000", "17/May/2015:10:05",
	} {
		if got := parseTime(s); got != 0 {
			t.Errorf("%q: got %d", s, got)
		}
	}
}
