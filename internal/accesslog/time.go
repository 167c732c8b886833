package accesslog

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// parseTime is the time in Unix seconds of any that Caddy writes: the formats of
// time_format, numbers as strings, too. 0: not readable, or before 1970. Without a
// zone it is UTC.
func parseTime(s string) int64 {
	if len(s) >= len("2006-01-02T15:04:05") {
		switch {
		case s[2] == '/':
			return parseCommonTime(s)
		case s[4] == '-' || s[4] == '/':
			return parseISOTime(s)
		}
	}
	return parseUnix(s)
}

// parseCommonTime reads 02/Jan/2006:15:04:05 -0700.
func parseCommonTime(s string) int64 {
	const length = len("02/Jan/2006:15:04:05")
	if len(s) < length || s[2] != '/' || s[6] != '/' || s[11] != ':' || s[14] != ':' || s[17] != ':' {
		return 0
	}
	year := digits(s[7:9])*100 + digits(s[9:11])
	return unix(year, month(s[3:6]), digits(s[:2]), s[12:length], s[length:])
}

// parseISOTime reads 2006-01-02T15:04:05Z, with fractions, zones, and slashes and a
// space instead.
func parseISOTime(s string) int64 {
	const length = len("2006-01-02T15:04:05")
	if len(s) < length || s[7] != s[4] || s[10] != 'T' && s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return 0
	}
	year := digits(s[:2])*100 + digits(s[2:4])
	return unix(year, digits(s[5:7]), digits(s[8:10]), s[11:length], s[length:])
}

// noDigits is a number of two digits that is none. It is too large for any part of a
// date, and too small to overflow.
const noDigits = 1 << 16

// digits is the number of two digits.
func digits(s string) int {
	if len(s) != 2 || !isDigit(s[0]) || !isDigit(s[1]) {
		return noDigits
	}
	return int(s[0]-'0')*10 + int(s[1]-'0')
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

func month(s string) int {
	i := strings.Index(months, s)
	if i < 0 || i%3 != 0 {
		return noDigits
	}
	return i/3 + 1
}

// unix is the time of a date, a clock such as 15:04:05, and what follows that.
func unix(year, month, day int, clock, rest string) int64 {
	hour, minute, second := digits(clock[:2]), digits(clock[3:5]), digits(clock[6:8])
	if year > 9999 || month < 1 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
		return 0
	}
	date := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if date.Day() != day { // the 30th of February
		return 0
	}
	offset, ok := parseZone(skipFraction(rest))
	if !ok {
		return 0
	}
	return max(date.Unix()-int64(offset), 0)
}

func skipFraction(s string) string {
	if s == "" || s[0] != '.' && s[0] != ',' {
		return s
	}
	s = s[1:]
	for s != "" && isDigit(s[0]) {
		s = s[1:]
	}
	return s
}

// parseZone reads "", Z, +07:00, +0700 and " +0700", in seconds east of UTC.
func parseZone(s string) (offset int, ok bool) {
	s = strings.TrimPrefix(s, " ")
	if s == "" || s == "Z" {
		return 0, true
	}
	if len(s) == len("+07:00") && s[3] == ':' {
		return zone(s[0], s[1:3], s[4:])
	}
	if len(s) == len("+0700") {
		return zone(s[0], s[1:3], s[3:])
	}
	return 0, false
}

func zone(sign byte, hour, minute string) (offset int, ok bool) {
	h, m := digits(hour), digits(minute)
	if h > 23 || m > 59 {
		return 0, false
	}
	offset = h*3600 + m*60
	if sign == '-' {
		return -offset, true
	}
	return offset, sign == '+'
}

// parseUnix reads a number of seconds, milliseconds, microseconds or nanoseconds
// since 1970. Its size tells which: until the year 5138, seconds have less digits
// than milliseconds after 1973.
func parseUnix(s string) (n int64) {
	for i := range len(s) {
		if !isDigit(s[i]) {
			if s[i] == '.' && skipFraction(s[i:]) == "" {
				break
			}
			return parseFloat(s)
		}
		if n > math.MaxInt64/10-1 {
			return 0
		}
		n = n*10 + int64(s[i]-'0')
	}
	return inSeconds(n)
}

// parseFloat reads a number with an exponent.
func parseFloat(s string) int64 {
	if s == "" || numberEnd([]byte(s), 0) != len(s) {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f >= 1<<62 {
		return 0
	}
	return inSeconds(int64(f))
}

func inSeconds(n int64) int64 {
	for n >= 1e11 {
		n /= 1000
	}
	return n
}
