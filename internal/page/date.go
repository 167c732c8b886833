package page

import (
	"net/http"
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
	s = strings.TrimSpace(s)
	if len(s) < len("1 Jan 2006") || len(s) > maxDate {
		return 0, false, false
	}
	t, layout, ok := parse(s)
	if !ok || t.Unix() < Earliest {
		return 0, false, false
	}
	_, offset := t.Zone()
	if max(offset, -offset) > maxOffset {
		return 0, false, false
	}
	hasTime := strings.Contains(layout, "15")
	return t.Unix(), !hasTime, true
}

const (
	maxDate   = 64        // bytes; no form is as long
	maxOffset = 14 * 3600 // seconds: no zone is further from UTC
)

// parse is [time.Parse] with the layout that a date has, the common ones first.
func parse(s string) (t time.Time, layout string, ok bool) {
	isISO := (s[4] == '-' || s[4] == '/') && s[7] == s[4]
	if isISO && len(s) == len(time.DateOnly) {
		t, err := time.Parse(time.DateOnly, s)
		return t, time.DateOnly, err == nil
	}
	if isISO && (len(s) < len("2006-01-02T15:04") || s[13] != ':') {
		return t, "", false // which time.Parse would take: it allows hours of one digit
	}
	// Nearly all dates of headers and sitemaps are as one of these.
	layout = http.TimeFormat
	others := namedLayouts
	if isISO {
		layout = time.RFC3339
		others = isoLayouts
	}
	t, err := time.Parse(layout, s)
	if err == nil {
		return t, layout, true
	}
	s = withOffset(s)
	s = blanks.Replace(weekday.ReplaceAllString(s, ""))
	if isISO && len(s) > len("2006-01-02T") {
		s = strings.ReplaceAll(s[:10], "/", "-") + "T" + s[11:]
	}
	for _, layout := range others {
		t, err := time.Parse(layout, s)
		if err == nil {
			return t, layout, true
		}
	}
	return t, "", false
}

// withOffset returns a date with an offset in place of a zone's name, which time.Parse knows of the local zone only.
func withOffset(s string) string {
	clock := strings.TrimRight(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	zone := strings.ToUpper(s[len(clock):])
	offset, ok := zones[zone]
	if !ok {
		return s
	}
	return strings.TrimRight(clock, " ") + offset
}

var (
	blanks  = strings.NewReplacer(" +", "+", " -", "-")
	weekday = regexp.MustCompile(`^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? `)

	// zones are those of RFC 822, section 5.1.
	zones = map[string]string{
		"Z": "", "UT": "", "UTC": "", "GMT": "",
		"EDT": "-04", "EST": "-05",
		"CDT": "-05", "CST": "-06",
		"MDT": "-06", "MST": "-07",
		"PDT": "-07", "PST": "-08",
	}

	isoLayouts = withZones("2006-01-02T15:04:05", "2006-01-02T15:04")

	namedLayouts = append(
		withZones(
			"2 Jan 2006 15:04:05", "2 Jan 2006 15:04", "2 Jan 06 15:04:05", // RFC 822, and years by RFC 1123
			"2-Jan-06 15:04:05", "2-Jan-2006 15:04:05", // RFC 850, and as cookies have it
			"Jan 2 15:04:05 2006", // asctime, by RFC 9110, section 5.6.7
			"Jan 2, 2006 15:04:05",
			"2/Jan/2006:15:04:05", // the Common Log Format
		),
		"2 Jan 2006", "2-Jan-2006", "Jan 2, 2006", "2 January 2006", "January 2, 2006",
	)
)

func withZones(layouts ...string) (all []string) {
	for _, layout := range layouts {
		all = append(all, layout, layout+"-07:00", layout+"-0700", layout+"-07")
	}
	return all
}
