package evidence

import (
	"strings"
	"time"
)

// maxDate is the length of a date, in any form.
const maxDate = 64

// parseDate reads a date as pages write them: the W3C's profile of ISO 8601
// (https://www.w3.org/TR/NOTE-datetime) from the day on, also with a space for the
// T and a zone without a colon or none, which is then UTC; or one of the forms of
// RFC 822, 850 and 9110. day says that it has no time.
func parseDate(s string) (t time.Time, day, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 || len(s) > maxDate {
		return t, false, false
	}
	if len(s) >= 10 && s[4] == '-' && s[7] == '-' {
		return parseISO(s)
	}
	return parseRFC(s)
}

func parseISO(s string) (t time.Time, day, ok bool) {
	year, ok1 := number(s[:4])
	month, ok2 := number(s[5:7])
	dom, ok3 := number(s[8:10])
	if !ok1 || !ok2 || !ok3 {
		return t, false, false
	}
	t = time.Date(year, time.Month(month), dom, 0, 0, 0, 0, time.UTC)
	if t.Day() != dom || int(t.Month()) != month {
		return time.Time{}, false, false
	}
	s = s[10:]
	if s == "" {
		return t, true, true
	}
	if s[0] != 'T' && s[0] != 't' && s[0] != ' ' || len(s) < 6 || s[3] != ':' {
		return time.Time{}, false, false
	}
	hour, ok1 := number(s[1:3])
	minute, ok2 := number(s[4:6])
	s = s[6:]
	second := 0
	ok3 = true
	if len(s) >= 3 && s[0] == ':' {
		second, ok3 = number(s[1:3])
		s = s[3:]
		if s != "" && (s[0] == '.' || s[0] == ',') {
			s = strings.TrimLeft(s[1:], "0123456789")
		}
	}
	if !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false, false
	}
	offset, ok := zone(strings.TrimSpace(s))
	if !ok {
		return time.Time{}, false, false
	}
	return t.Add(time.Duration(hour*3600+minute*60+second-offset) * time.Second), false, true
}

// clocks are the forms of RFC 822, 850 and 9110 without the weekday before and the
// zone behind.
var clocks = []string{
	"2 Jan 2006 15:04:05", "2 Jan 06 15:04:05", "2 Jan 2006 15:04", "2-Jan-2006 15:04:05", "2-Jan-06 15:04:05",
	"Jan 2 15:04:05 2006", "Jan 2, 2006 15:04:05", "01/02/2006 15:04:05",
}

var days = []string{"2 Jan 2006", "2-Jan-2006", "Jan 2, 2006", "January 2, 2006", "2 January 2006"}

func parseRFC(s string) (t time.Time, day, ok bool) {
	if name, rest, found := strings.Cut(s, " "); found && isWeekday(strings.TrimSuffix(name, ",")) {
		s = strings.TrimLeft(rest, " ")
	}
	s = strings.Join(strings.Fields(s), " ")
	for _, layout := range days {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true, true
		}
	}
	offset := 0
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		if seconds, ok := zone(s[i+1:]); ok {
			s, offset = s[:i], seconds
		}
	}
	for _, layout := range clocks {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Add(-time.Duration(offset) * time.Second), false, true
		}
	}
	return t, false, false
}

func isWeekday(s string) bool {
	switch strings.ToLower(s) {
	case "mon", "tue", "wed", "thu", "fri", "sat", "sun",
		"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday":
		return true
	}
	return false
}

// zone is the seconds east of UTC that a zone stands for; of none, 0.
func zone(s string) (int, bool) {
	switch strings.ToUpper(s) {
	case "", "Z", "UT", "UTC", "GMT":
		return 0, true
	case "BST", "CET":
		return 1 * 3600, true
	case "CEST":
		return 2 * 3600, true
	case "EDT":
		return -4 * 3600, true
	case "EST", "CDT":
		return -5 * 3600, true
	case "CST", "MDT":
		return -6 * 3600, true
	case "MST", "PDT":
		return -7 * 3600, true
	case "PST":
		return -8 * 3600, true
	}
	if len(s) < 3 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hours, ok := number(s[1:3])
	minutes, ok2 := 0, true
	switch {
	case len(s) == 3:
	case len(s) == 5:
		minutes, ok2 = number(s[3:])
	case len(s) == 6 && s[3] == ':':
		minutes, ok2 = number(s[4:])
	default:
		return 0, false
	}
	if !ok || !ok2 || hours > 15 || minutes > 59 {
		return 0, false
	}
	seconds := hours*3600 + minutes*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

func number(s string) (n int, ok bool) {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, s != ""
}
