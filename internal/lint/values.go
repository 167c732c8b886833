package lint

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
)

// dateForm is how much a date says (https://www.w3.org/TR/NOTE-datetime). The last two
// are only XML Schema's.
type dateForm uint8

const (
	dateNone dateForm = iota
	dateYear
	dateMonth
	dateDay
	dateMinute // a time without seconds
	dateSecond
	dateDayZone // a day with a time zone
	dateLocal   // a time without a time zone
)

var dateLayouts = [...]string{
	dateYear: "2006", dateMonth: "2006-01", dateDay: time.DateOnly, dateMinute: "2006-01-02T15:04Z07:00",
	dateSecond: time.RFC3339, dateDayZone: "2006-01-02Z07:00", dateLocal: "2006-01-02T15:04:05",
}

func parseDate(s string) (time.Time, dateForm) {
	if strings.Contains(s, ",") || len(s) > len("2006-01-02T1") && s[10] == 'T' && s[12] == ':' || strings.HasPrefix(s, "0000") {
		return time.Time{}, dateNone // which time.Parse takes
	}
	for _, form := range []dateForm{dateSecond, dateDay, dateMinute, dateLocal, dateDayZone, dateMonth, dateYear} {
		if (form == dateDay) != (len(s) == len(time.DateOnly)) {
			continue
		}
		if t, err := time.Parse(dateLayouts[form], s); err == nil {
			return checkZone(t, form)
		}
	}
	return time.Time{}, dateNone
}

// checkZone refuses zones beyond 14 hours, which XML Schema does not know.
func checkZone(t time.Time, form dateForm) (time.Time, dateForm) {
	if _, offset := t.Zone(); max(offset, -offset) > 14*3600 {
		return time.Time{}, dateNone
	}
	return t, form
}

var frequencies = []string{"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}

// changeFreqError says what is wrong with a changefreq, or "".
func changeFreqError(value string) string {
	if slices.Contains(frequencies, value) {
		return ""
	}
	return "is not one of " + strings.Join(frequencies, ", ")
}

var decimal = regexp.MustCompile(`^[-+]?(\d+\.?\d*|\.\d+)$`)

// priorityError says what is wrong with a priority, or "".
func priorityError(value string) string {
	value = trim(value)
	if p, err := strconv.ParseFloat(value, 64); err == nil && decimal.MatchString(value) && p >= 0 && p <= 1 {
		return ""
	}
	return "is not a decimal number from 0.0 to 1.0"
}

// languageError says what is wrong with an hreflang, or "".
func languageError(value string) string {
	if _, err := language.Parse(value); err != nil || strings.Contains(value, "_") {
		return "is not a language such as 'de' or 'de-AT', and not 'x-default'"
	}
	return ""
}

// trim is s without white space around it, as XML defines it.
func trim(s string) string { return strings.Trim(s, " \t\r\n") }
