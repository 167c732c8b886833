package accesslog

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// layouts are those of Caddy's time_format, and some more.
var layouts = []string{
	"2006-01-02T15:04:05.000Z0700", // iso8601
	time.RFC3339,
	time.RFC3339Nano,
	"2006/01/02 15:04:05",
	"2006/01/02 15:04:05.000",
	"2006/01/02 15:04:05.000000000",
	"02/Jan/2006:15:04:05 -0700",
	"02/Jan/2006:15:04:05.000 -0700",
	"2006-01-02 15:04:05 -07:00",
	"2006-01-02T15:04:05,000",
}

func TestParseTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	zones := []*time.Location{time.UTC, time.FixedZone("", 9*3600+1800), time.FixedZone("", -7*3600)}
	for range 20000 {
		at := time.Unix(86400+r.Int64N(4e9), r.Int64N(1e9)).In(zones[r.IntN(len(zones))])
		for _, layout := range layouts {
			s := at.Format(layout)
			want, err := time.Parse(layout, s)
			if err != nil {
				t.Fatal(err)
			}
			if got := parseTime(s); got != want.Unix() {
				t.Fatalf("%s: got %d, want %d", s, got, want.Unix())
			}
		}
		for _, s := range []string{
			strconv.FormatInt(at.Unix(), 10),
			strconv.FormatFloat(float64(at.Unix())+0.5, 'f', -1, 64),
			strconv.FormatFloat(float64(at.Unix())+0.5, 'e', -1, 64),
		} {
			if got := parseTime(s); got != at.Unix() {
				t.Fatalf("%s: got %d, want %d", s, got, at.Unix())
			}
		}
		if at.Year() < 1974 {
			continue
		}
		for _, n := range []int64{at.UnixMilli(), at.UnixMicro(), at.UnixNano()} {
			if s := strconv.FormatInt(n, 10); parseTime(s) != at.Unix() {
				t.Fatalf("%s: got %d, want %d", s, parseTime(s), at.Unix())
			}
		}
	}
}

func TestParseNoTime(t *testing.T) {
	for _, s := range []string{
		"", "-", ".", "0", "-1", "1e", "1.5.5", "now", "NaN", "Infinity", "0x10", "1_000", "1e300", "99999999999999999999",
		"1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01",
		"2026-00-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
		"2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:0xZ", "20x6-01-01T00:00:00Z",
		"2026-01/01T00:00:00Z", "2026-01-01x00:00:00Z", "2026-01-01T00-00:00Z", "2026-01-01T00:00-00Z",
		"2026-01-01T00:00:00z", "2026-01-01T00:00:00+1", "2026-01-01T00:00:00*0100", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+01:60", "2026-01-01T00:00:00Z ",
		"17/may/2015:10:05:03 +0000", "17/anF/2015:10:05:03 +0000", "17/May/2015 10:05:03 +0000", "17-May-2015:10:05:03 +0000", "17/May/2015:10:05:03 CEST", "17/May/2015:10:05",
	} {
		if got := parseTime(s); got != 0 {
			t.Errorf("%q: got %d", s, got)
		}
		if got := parseCommonTime(s); got != 0 {
			t.Errorf("%q in Common Log Format: got %d", s, got)
		}
	}
}
