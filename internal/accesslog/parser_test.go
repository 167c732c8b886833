package accesslog

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// newParser is NewParser for a format that there is.
func newParser(t testing.TB, format string) *Parser {
	t.Helper()
	p, err := NewParser(format)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parse reads a line, and tries that a parser forgets the line before.
func parse(t testing.TB, p *Parser, line string) (v visits.Visit, err error) {
	t.Helper()
	v = visits.Visit{Time: 1, Method: "M", Host: "h", URI: "/u", User: true, Status: 1, UserAgent: "a", ContentType: "t", RobotsTag: "r"}
	b := []byte(line)
	err = p.Parse(b, &v)
	if string(b) != line {
		t.Fatalf("the line became %q", b)
	}
	if err != nil && v != (visits.Visit{}) {
		t.Fatalf("%q: got %+v with %v", line, v, err)
	}
	return v, err
}

func TestFormats(t *testing.T) {
	for _, format := range append(formats, "") {
		newParser(t, format)
	}
	for _, name := range []string{"JSON", "clf"} {
		if _, err := NewParser(name); err == nil {
			t.Errorf("%q: got a parser", name)
		}
	}
}

func TestParseFormats(t *testing.T) {
	const (
		object = `{"request":{"uri":"/a"}}`
		common = `192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 1`
		agent  = common + ` "-" "x"`
	)
	for _, test := range []struct {
		format string
		line   string
		want   error
	}{
		{"auto", object, nil},
		{"auto", common, nil},
		{"auto", agent, nil},
		{"auto", "\xEF\xBB\xBF" + object, nil},
		{"auto", "\xEF\xBB\xBF" + common, nil},
		{"auto", " \t" + object + " \r", nil},
		{"auto", "\xEF\xBB\xBF \t" + agent + "\r", nil},
		{"auto", "", ErrNoRequest},
		{"auto", "\xEF\xBB\xBF", ErrNoRequest},
		{"auto", "\xEF\xBB", ErrSyntax},
		{"auto", `"` + agent + `"`, ErrSyntax},
		{"auto", `"{\"request\":{\"uri\":\"/a\"}}"`, ErrSyntax},
		{"auto", "<134>1 2026-11-21T09:18:01Z host nginx 123 - - " + agent, ErrSyntax},
		{"auto", "web_1  | " + agent, ErrSyntax},
		{"auto", "\x00\x00" + object, ErrSyntax},
		{"auto", object + "\x00", ErrSyntax},
		{"auto", "\x1f\x8b\x08\x00\x00", ErrSyntax},
		{"auto", "2026/11/21 09:18:01 [error] 12#12: *1 open() \"/a\" failed", ErrSyntax},
		{"auto", "2026/11/21 01:54:37.095\tINFO\thttp.log.access\thandled request\t" + `{"request": {"uri": "/a", "headers": {"Accept": ["x"]}}}`, ErrSyntax},
		{"json", object, nil},
		{"json", common, ErrSyntax},
		{"json", "null", ErrSyntax},
		{"json", "", ErrNoRequest},
		{"common", common, nil},
		{"common", agent, nil},
		{"common", common + ` "-" "cut short`, nil},
		{"common", object, ErrSyntax},
		{"combined", agent, nil},
		{"combined", common, ErrSyntax},
		{"combined", common + ` "-"`, ErrSyntax},
		{"combined", object, ErrSyntax},
	} {
		if v, err := parse(t, newParser(t, test.format), test.line); err != test.want || err == nil && v.URI != "/a" {
			t.Errorf("%v: %q: got %+v, %v, want %v", test.format, test.line, v, err, test.want)
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
