package urllist

import (
	"errors"
	"fmt"
	"time"
)

var errDate = errors.New("a date is 2006-01-02, 2006-01-02T15:04Z or 2006-01-02T15:04:05+07:00")

// earliest is 1981-01-01T00:00:00Z. What claims to be older comes from a clock
// that was never set: 1970 is Unix's zero and 1980 that of FAT and ZIP.
const earliest = 347155200

// parseDate reads a W3C Datetime that says at least the day
// (https://www.w3.org/TR/NOTE-datetime). The result is in Unix seconds.
func parseDate(s string) (t int64, dayOnly bool, err error) {
	t, dayOnly, ok := scanDate(s)
	if !ok {
		return 0, false, fmt.Errorf("'%s': %w", s, errDate)
	}
	if t < earliest {
		return 0, false, fmt.Errorf("'%s' is before 1981", s)
	}
	return t, dayOnly, nil
}

// scanDate does not use time.Parse, which takes forms that are no W3C Datetime:
// hours of one digit, fractions after a comma.
func scanDate(s string) (t int64, dayOnly, ok bool) {
	d := scanner{rest: s, ok: true}
	year := d.digits(2)*100 + d.digits(2)
	d.expect('-')
	month := d.number(1, 12)
	d.expect('-')
	day := d.number(1, 31)
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if !d.ok || date.Day() != day { // the 30th of February
		return 0, false, false
	}
	t = date.Unix()
	if d.rest == "" {
		return t, true, true
	}
	d.expect('T')
	t += int64(d.number(0, 23)) * 3600
	d.expect(':')
	t += int64(d.number(0, 59)) * 60
	if d.take(':') {
		t += int64(d.number(0, 59))
		if d.take('.') {
			d.digits(1)
			for d.rest != "" && isDigit(d.rest[0]) {
				d.rest = d.rest[1:]
			}
		}
	}
	if d.take('Z') {
		return t, false, d.ok && d.rest == ""
	}
	sign := int64(1)
	if !d.take('+') {
		d.expect('-')
		sign = -1
	}
	hours := d.number(0, 14) // XML Schema part 2, section 3.2.7.3
	d.expect(':')
	minutes := d.number(0, 59)
	if hours == 14 && minutes > 0 {
		return 0, false, false
	}
	return t - sign*int64(hours*3600+minutes*60), false, d.ok && d.rest == ""
}

// scanner takes the parts of a date from its text; ok is false once one is not
// what was expected.
type scanner struct {
	rest string
	ok   bool
}

func (d *scanner) digits(n int) (v int) {
	if len(d.rest) < n {
		d.ok = false
		return 0
	}
	for i := range n {
		if !isDigit(d.rest[i]) {
			d.ok = false
			return 0
		}
		v = v*10 + int(d.rest[i]-'0')
	}
	d.rest = d.rest[n:]
	return v
}

func (d *scanner) number(low, high int) int {
	v := d.digits(2)
	if v < low || v > high {
		d.ok = false
	}
	return v
}

func (d *scanner) take(c byte) bool {
	if d.rest == "" || d.rest[0] != c {
		return false
	}
	d.rest = d.rest[1:]
	return true
}

func (d *scanner) expect(c byte) {
	if !d.take(c) {
		d.ok = false
	}
}
