package page

import (
	"strings"
	"time"
)

// earliest is the year 1981. What claims to be older comes from a clock that was never
// set: 1970 is Unix's zero and 1980 that of FAT and ZIP.
const earliest = 347155200

// ParseDate reads a date in any form in which pages, headers and lists write one: the
// W3C's profile of ISO 8601 (https://www.w3.org/TR/NOTE-datetime) from the day on, RFC
// 3339, the forms of RFC 9110, 850 and 822, and a month by its name. A time without a
// zone is in UTC. The result is in Unix seconds; dayOnly says that it has no time of day.
// ok is false for anything else, and for dates before 1981.
func ParseDate(s string) (unix int64, dayOnly, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) < len("1 Jan 2006") || len(s) > 64 {
		return 0, false, false
	}
	parse := parseNamed
	if s[4] == '-' && s[7] == '-' {
		parse = parseISO
	}
	t, dayOnly, ok := parse(s)
	if _, offset := t.Zone(); !ok || t.Unix() < earliest || max(offset, -offset) > 14*3600 {
		return 0, false, false
	}
	return t.Unix(), dayOnly, true
}

func parseISO(s string) (t time.Time, dayOnly, ok bool) {
	if len(s) == len(time.DateOnly) {
		t, ok = parseAny(s, []string{time.DateOnly})
		return t, true, ok
	}
	if len(s) < len("2006-01-02T15:04") || s[13] != ':' { // time.Parse takes hours of one digit
		return t, false, false
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, false, true
	}
	if s[10] == ' ' || s[10] == 't' {
		s = s[:10] + "T" + s[11:]
	}
	t, ok = parseAny(numericZone(s), isoLayouts)
	return t, false, ok
}

func parseNamed(s string) (t time.Time, dayOnly, ok bool) {
	if t, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", s); err == nil { // HTTP's own form
		return t, false, true
	}
	name, rest, _ := strings.Cut(s, " ")
	if _, ok := parseAny(strings.TrimSuffix(name, ","), []string{"Mon", "Monday"}); ok {
		s = rest
	}
	s = strings.Join(strings.Fields(s), " ")
	if t, ok = parseAny(s, dayLayouts); ok {
		return t, true, true
	}
	t, ok = parseAny(numericZone(s), namedLayouts)
	return t, false, ok
}

var (
	isoLayouts   = withZones("2006-01-02T15:04:05", "2006-01-02T15:04")
	dayLayouts   = []string{"2 Jan 2006", "2-Jan-2006", "Jan 2, 2006", "January 2, 2006", "2 January 2006"}
	namedLayouts = withZones("2 Jan 2006 15:04:05", "2 Jan 06 15:04:05", "2 Jan 2006 15:04", "2-Jan-2006 15:04:05",
		"2-Jan-06 15:04:05", "Jan 2 15:04:05 2006", "Jan 2, 2006 15:04:05", "01/02/2006 15:04:05")
)

func withZones(layouts ...string) (all []string) {
	for _, layout := range layouts {
		all = append(all, layout, layout+"Z07:00", layout+"Z0700", layout+"Z07")
	}
	return all
}

func parseAny(s string, layouts []string) (t time.Time, ok bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return t, false
}

// zoneNames are the zones that RFC 822 names, and some of Europe's.
var zoneNames = map[string]string{
	"Z": "Z", "UT": "Z", "UTC": "Z", "GMT": "Z", "BST": "+01:00", "CET": "+01:00", "CEST": "+02:00", "EDT": "-04:00",
	"EST": "-05:00", "CDT": "-05:00", "CST": "-06:00", "MDT": "-06:00", "MST": "-07:00", "PDT": "-07:00", "PST": "-08:00",
}

// numericZone writes a zone at the end of a time as an offset right behind it.
func numericZone(s string) string {
	clock := strings.TrimRight(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	if offset, ok := zoneNames[strings.ToUpper(s[len(clock):])]; ok {
		return strings.TrimRight(clock, " ") + offset
	}
	return strings.NewReplacer(" +", "+", " -", "-").Replace(s)
}
