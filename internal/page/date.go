package page

import (
	"regexp"
	"strings"
	"time"
)

// Earliest is the first date that counts, the year 1981, in Unix seconds. What claims to be older comes from a clock
// that was never set: 1970 is Unix's zero and 1980 that of FAT and ZIP.
const Earliest = 347155200

// ParseDate reads a date in any form in which pages, headers, lists and logs write one: the W3C's profile of ISO 8601
// (https://www.w3.org/TR/NOTE-datetime) from the day on, RFC 3339, the forms of RFC 9110, 850 and 822 with the zones
// that this names, that of the Common Log Format, and a month by its name. A time without a zone is in UTC. The result
// is in Unix seconds; dayOnly says that it has no time of day. ok is false for anything else, and for dates before 1981.
func ParseDate(s string) (unix int64, dayOnly, ok bool) {
	if s = strings.TrimSpace(s); len(s) < len("1 Jan 2006") || len(s) > 64 {
		return 0, false, false
	}
	t, layout, ok := parse(s)
	if _, offset := t.Zone(); !ok || t.Unix() < Earliest || max(offset, -offset) > 14*3600 {
		return 0, false, false
	}
	return t.Unix(), !strings.Contains(layout, "15"), true
}

// parse is [time.Parse] with the layout that a date has, the common ones first.
func parse(s string) (t time.Time, layout string, ok bool) {
	layouts, isISO := namedLayouts, (s[4] == '-' || s[4] == '/') && s[7] == s[4]
	layout = "Mon, 02 Jan 2006 15:04:05 GMT"
	switch {
	case isISO && len(s) == len(time.DateOnly):
		layout, layouts = time.DateOnly, nil
	case isISO && (len(s) < len("2006-01-02T15:04") || s[13] != ':'): // time.Parse takes hours of one digit
		return t, "", false
	case isISO:
		layout, layouts = time.RFC3339, isoLayouts
	}
	t, err := time.Parse(layout, s)
	if err == nil {
		return t, layout, true
	}
	clock := strings.TrimRight(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	if offset, ok := zones[strings.ToUpper(s[len(clock):])]; ok {
		s = strings.TrimRight(clock, " ") + offset
	}
	s = blanks.Replace(weekday.ReplaceAllString(s, ""))
	if isISO && len(s) > 11 {
		s = strings.ReplaceAll(s[:10], "/", "-") + "T" + s[11:]
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, layout, true
		}
	}
	return t, "", false
}

var (
	blanks  = strings.NewReplacer(" +", "+", " -", "-")
	weekday = regexp.MustCompile(`^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? `)
	zones   = map[string]string{
		"Z": "", "UT": "", "UTC": "", "GMT": "", "EDT": "-04", "EST": "-05", "CDT": "-05", "CST": "-06", "MDT": "-06", "MST": "-07", "PDT": "-07", "PST": "-08",
	}

	isoLayouts   = withZones("2006-01-02T15:04:05", "2006-01-02T15:04")
	namedLayouts = append(withZones("2 Jan 2006 15:04:05", "2 Jan 2006 15:04", "2 Jan 06 15:04:05", "2-Jan-06 15:04:05", "2-Jan-2006 15:04:05",
		"Jan 2 15:04:05 2006", "Jan 2, 2006 15:04:05", "2/Jan/2006:15:04:05"),
		"2 Jan 2006", "2-Jan-2006", "Jan 2, 2006", "2 January 2006", "January 2, 2006")
)

func withZones(layouts ...string) (all []string) {
	for _, layout := range layouts {
		all = append(all, layout, layout+"-07:00", layout+"-0700", layout+"-07")
	}
	return all
}
