package check

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// dateForm is how much a date says.
type dateForm uint8

// The forms of W3C Datetime (https://www.w3.org/TR/NOTE-datetime), and two of XML
// Schema alone.
const (
	dateNone dateForm = iota
	dateYear
	dateMonth
	dateDay
	dateMinute // a time without seconds
	dateSecond
	dateDayZone // a day with a time zone: XML Schema
	dateLocal   // a time without a time zone: XML Schema
)

const daySeconds = 24 * 60 * 60

// parseDate reads a date, as Unix seconds of its beginning.
func parseDate(b []byte) (seconds int64, form dateForm) {
	year, ok := number(b, 0, 4)
	if !ok || year == 0 {
		return 0, dateNone
	}
	if len(b) == 4 {
		return unixDay(year, 1, 1) * daySeconds, dateYear
	}
	month, ok := number(b, 5, 2)
	if !ok || b[4] != '-' || month < 1 || month > 12 {
		return 0, dateNone
	}
	if len(b) == 7 {
		return unixDay(year, month, 1) * daySeconds, dateMonth
	}
	day, ok := number(b, 8, 2)
	if !ok || b[7] != '-' || day < 1 || day > daysIn(year, month) {
		return 0, dateNone
	}
	seconds = unixDay(year, month, day) * daySeconds
	b = b[10:]
	if len(b) == 0 {
		return seconds, dateDay
	}
	if b[0] != 'T' {
		if _, ok := zone(b); ok {
			return seconds, dateDayZone
		}
		return 0, dateNone
	}
	return parseTime(seconds, b[1:])
}

// parseTime reads what follows the "T" of a date that begins at seconds.
func parseTime(seconds int64, b []byte) (int64, dateForm) {
	hour, ok := number(b, 0, 2)
	minute, ok2 := number(b, 3, 2)
	if !ok || !ok2 || b[2] != ':' || hour > 23 || minute > 59 {
		return 0, dateNone
	}
	seconds += int64(hour*3600 + minute*60)
	b = b[5:]
	form := dateMinute
	if len(b) > 0 && b[0] == ':' {
		second, ok := number(b, 1, 2)
		if !ok || second > 59 {
			return 0, dateNone
		}
		seconds += int64(second)
		form = dateSecond
		if b, ok = cutFraction(b[3:]); !ok {
			return 0, dateNone
		}
	}
	if len(b) == 0 && form == dateSecond {
		return seconds, dateLocal
	}
	offset, ok := zone(b)
	if !ok {
		return 0, dateNone
	}
	return seconds - int64(offset), form
}

func cutFraction(b []byte) ([]byte, bool) {
	if len(b) == 0 || b[0] != '.' {
		return b, true
	}
	n := 1
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return b[n:], n > 1
}

// zone reads "Z" or "+hh:mm", as seconds. XML Schema knows none beyond 14 hours.
func zone(b []byte) (int, bool) {
	if len(b) == 1 && b[0] == 'Z' {
		return 0, true
	}
	hour, ok := number(b, 1, 2)
	minute, ok2 := number(b, 4, 2)
	if !ok || !ok2 || len(b) != 6 || b[3] != ':' || minute > 59 || hour*60+minute > 14*60 {
		return 0, false
	}
	offset := hour*3600 + minute*60
	switch b[0] {
	case '+':
		return offset, true
	case '-':
		return -offset, true
	}
	return 0, false
}

// number reads n digits at i.
func number(b []byte, i, n int) (v int, ok bool) {
	if len(b) < i+n {
		return 0, false
	}
	for _, c := range b[i : i+n] {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, true
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// unixDay is the number of days from 1970-01-01, counting years from March
// (https://howardhinnant.github.io/date_algorithms.html#days_from_civil).
func unixDay(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	return int64(365*year + year/4 - year/100 + year/400 + dayOfYear - 719468)
}

// decimal is a number of XML Schema, as far as comparing it with whole numbers needs.
type decimal struct {
	negative bool
	whole    int  // of what is before the point, at most 1e9
	fraction bool // something but zeros follows the point
	integral bool // there is no point
}

// maxDigits of a decimal are what common schema processors take.
const maxDigits = 24

// parseDecimal reads an xsd:decimal.
func parseDecimal(b []byte) (d decimal, ok bool) {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		d.negative = b[0] == '-'
		b = b[1:]
	}
	before, after, point := bytes.Cut(b, []byte("."))
	if len(before)+len(after) == 0 || !allDigits(before) || !allDigits(after) {
		return d, false
	}
	before = bytes.TrimLeft(before, "0")
	if len(before)+len(after) > maxDigits {
		return d, false
	}
	for _, c := range before {
		d.whole = min(d.whole*10+int(c-'0'), 1e9)
	}
	d.fraction = len(bytes.Trim(after, "0")) > 0
	d.integral = !point
	return d, true
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// within reports whether d is from low, 0 or 1, to high.
func (d decimal) within(low, high int) bool {
	zero := d.whole == 0 && !d.fraction
	switch {
	case d.negative && !zero, d.whole < low:
		return false
	}
	return d.whole < high || d.whole == high && !d.fraction
}

// A rule says what is wrong with a value, such as "is not 'yes' or 'no'", or "".
type rule func(value []byte) string

func anyText([]byte) string { return "" }

func isPriority(value []byte) string {
	if d, ok := parseDecimal(trimSpace(value)); !ok || !d.within(0, 1) {
		return "is no decimal number from 0.0 to 1.0"
	}
	return ""
}

func isRating(value []byte) string {
	if d, ok := parseDecimal(trimSpace(value)); !ok || !d.within(0, 5) {
		return "is no decimal number from 0.0 to 5.0"
	}
	return ""
}

// isWhole is a rule for a whole number.
func isWhole(low, high int, message string) rule {
	return func(value []byte) string {
		d, ok := parseDecimal(trimSpace(value))
		if !ok || !d.integral || !d.within(low, high) {
			return message
		}
		return ""
	}
}

// isOneOf is a rule for one of several words, which white space does not surround.
func isOneOf(words ...string) rule {
	message := "is not one of " + strings.Join(words, ", ")
	return func(value []byte) string {
		for _, word := range words {
			if string(value) == word {
				return ""
			}
		}
		return message
	}
}

// isShort is a rule for a text of n characters at most.
func isShort(n int) rule {
	message := "has more than " + thousands(n) + " characters"
	return func(value []byte) string {
		if len(value) > n && utf8.RuneCount(value) > n {
			return message
		}
		return ""
	}
}

// isURI is a rule for what xsd:anyURI takes, which may be relative or empty.
func isURI(value []byte) string {
	var a address
	if flaw := a.setPath(trimSpace(value)); flaw == urlPercent {
		return flaw.message
	}
	return ""
}

func isDate(value []byte) string {
	switch _, form := parseDate(trimSpace(value)); form {
	case dateDay, dateSecond, dateDayZone, dateLocal:
		return ""
	}
	return "is no date such as 2024-05-01 or 2024-05-01T10:20:30Z"
}

// isLanguage is a rule for xsd:language, by RFC 3066.
func isLanguage(value []byte) string {
	for i, part := range strings.Split(string(trimSpace(value)), "-") {
		if len(part) < 1 || len(part) > 8 {
			return notLanguage
		}
		for _, c := range []byte(part) {
			letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
			if !letter && (i == 0 || c < '0' || c > '9') {
				return notLanguage
			}
		}
	}
	return ""
}

const notLanguage = "is no language such as 'de' or 'de-AT', and not 'x-default'"

// matches is a rule for a pattern.
func matches(pattern string, message string) rule {
	// Compiled when first needed: most programs that have this package check nothing.
	expression := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) })
	return func(value []byte) string {
		if expression().Match(value) {
			return ""
		}
		return message
	}
}
