package page

import (
	"testing"
	"time"
)

func TestParseDate(t *testing.T) {
	for in, want := range map[string]string{
		"2024-05-01":                        "2024-05-01",
		" 2024-05-01\n":                     "2024-05-01",
		"2024-05-01T10:00:00Z":              "2024-05-01T10:00:00Z",
		"2024-05-01T10:00:00.123456789012Z": "2024-05-01T10:00:00Z",
		"2024-05-01T10:00:00,5Z":            "2024-05-01T10:00:00Z",
		"2024-05-01T10:00:00+02:00":         "2024-05-01T08:00:00Z",
		"2024-05-01T10:00+14:00":            "2024-04-30T20:00:00Z",
		"2024-05-01T10:00Z":                 "2024-05-01T10:00:00Z",
		"2024-05-01T10:00:00-0700":          "2024-05-01T17:00:00Z",
		"2024-05-01T10:00:00+01":            "2024-05-01T09:00:00Z",
		"2024-05-01 10:00":                  "2024-05-01T10:00:00Z",
		"2024-05-01t10:00:00":               "2024-05-01T10:00:00Z",
		"2024-05-01 10:00:00 UTC":           "2024-05-01T10:00:00Z",
		"2024-05-01 10:00:00 +0200":         "2024-05-01T08:00:00Z",
		"Wed, 01 May 2024 10:00:00 GMT":     "2024-05-01T10:00:00Z",
		"Wednesday, 01-May-24 10:00:00 GMT": "2024-05-01T10:00:00Z",
		"Wed May  1 10:00:00 2024":          "2024-05-01T10:00:00Z",
		"Wed, 1 May 2024 10:00:00 +0200":    "2024-05-01T08:00:00Z",
		"Wed, 01 May 2024 10:00:00 PST":     "2024-05-01T18:00:00Z",
		"1 May 24 10:00:00 EDT":             "2024-05-01T14:00:00Z",
		"1 May 2024 10:00 cet":              "2024-05-01T09:00:00Z",
		"25 Jun 2010 15:00:00 PST":          "2010-06-25T23:00:00Z",
		"05/01/2024 10:00:00":               "2024-05-01T10:00:00Z",
		"May 1, 2024":                       "2024-05-01",
		"May 1, 2024 10:00:00":              "2024-05-01T10:00:00Z",
		"1 September 2024":                  "2024-09-01",
		"01-May-2024":                       "2024-05-01",
		"1981-01-01":                        "1981-01-01",
		"9999-12-31T23:59:59Z":              "9999-12-31T23:59:59Z",

		"": "", "2024": "", "2024-05": "", "1714557600": "", "yesterday": "", "20240501": "",
		"1980-12-31T23:59:59Z": "", "1970-01-01": "", "0001-01-01T00:00:00Z": "", "Thu, 01 Jan 1970 00:00:00 GMT": "",
		"2024-02-30": "", "2024-13-01": "", "2024-00-01": "", "2024-05-01T": "", "2024-05-01Tx": "",
		"2024-05-01T24:00:00Z": "", "2024-05-01T10:60:00Z": "", "2024-05-01T10:00:60Z": "", "2024-05-01T1:00:00Z": "",
		"2024-05-01T10": "", "2024-05-01T10:00:00+14:01": "", "2024-05-01T10:00:00 XYZ": "", "2024-05-01T10:00:00Zulu": "",
		"2024-5-1": "", "Noday, 01 May 2024 10:00:00 GMT": "", "Wed, 32 May 2024 10:00:00 GMT": "", "+024-05-01": "",
		"2024-05-01T10:00:00Z                                             x": "",
	} {
		unix, day, ok := ParseDate(in)
		got := ""
		switch at := time.Unix(unix, 0).UTC(); {
		case ok && day:
			got = at.Format(time.DateOnly)
		case ok:
			got = at.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzParseDate(f *testing.F) {
	for _, seed := range []string{
		"2024-05-01", "2024-05-01T10:00:00.5+02:00", "Wed, 01 May 2024 10:00:00 GMT", "Wednesday, 01-May-24 10:00 EST",
		"Wed May  1 10:00:00 2024", "May 1, 2024", "2024-05-01 10:00 -07", "    ,   -  -   ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		unix, day, ok := ParseDate(s)
		if !ok {
			if unix != 0 || day {
				t.Fatalf("%q: got %d, %t", s, unix, day)
			}
			return
		}
		if unix < earliest || day && unix%86400 != 0 {
			t.Fatalf("%q: got %d, %t", s, unix, day)
		}
		at := time.Unix(unix, 0).UTC()
		if at.Year() > 9999 { // the last evening in a zone to the west
			return
		}
		if again, _, ok := ParseDate(at.Format(time.RFC3339)); !ok || again != unix {
			t.Fatalf("%q: got %d, and of that %d, %t", s, unix, again, ok)
		}
	})
}

func BenchmarkParseDate(b *testing.B) {
	for _, s := range []string{"2024-05-01T10:00:00+02:00", "Wed, 01 May 2024 10:00:00 GMT", "2024-05-01", "no date at all"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ParseDate(s)
			}
		})
	}
}
