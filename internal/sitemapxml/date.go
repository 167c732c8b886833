package sitemapxml

const daySeconds = 24 * 60 * 60

// The times that a lastmod can say, in Unix seconds: W3C Datetime has years of four
// digits (https://www.w3.org/TR/NOTE-datetime), and XML Schema has no year 0
// (https://www.w3.org/TR/xmlschema-2/#dateTime).
const (
	minTime = -62135596800 // 0001-01-01T00:00:00Z
	maxTime = 253402300799 // 9999-12-31T23:59:59Z
)

const (
	dateLen     = len("2006-01-02")
	dateTimeLen = len("2006-01-02T15:04:05Z")
)

// hasDate reports whether a document can say t: it is known, and has a year of
// four digits.
func hasDate(t int64) bool { return t != 0 && t >= minTime && t <= maxTime }

// dates formats times. It keeps the last day, because pages that lie together
// often changed together.
type dates struct {
	day  int64
	text [dateLen]byte // "": none yet
}

// append appends t as W3C Datetime, in UTC; the day alone where dayOnly.
func (d *dates) append(dst []byte, t int64, dayOnly bool) []byte {
	day, second := t/daySeconds, t%daySeconds
	if second < 0 {
		day, second = day-1, second+daySeconds
	}
	if day != d.day || d.text[0] == 0 {
		d.set(day)
	}
	dst = append(dst, d.text[:]...)
	if dayOnly {
		return dst
	}
	s := uint32(second)
	h, m := digits[s/3600], digits[s/60%60]
	s %= 60
	return append(dst, 'T', h[0], h[1], ':', m[0], m[1], ':', digits[s][0], digits[s][1], 'Z')
}

// set finds the date of a day since 1970 in the proleptic Gregorian calendar, by
// counting years from March, so that a leap day comes last
// (https://howardhinnant.github.io/date_algorithms.html#civil_from_days).
func (d *dates) set(day int64) {
	d.day = day
	const daysBefore1970, daysIn400Years = 719468, 146097 // from 0000-03-01
	z := uint32(day + daysBefore1970)
	era, dayOfEra := z/daysIn400Years, z%daysIn400Years
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	month := (5*dayOfYear + 2) / 153
	dayOfMonth := dayOfYear - (153*month+2)/5 + 1
	year := yearOfEra + era*400
	month += 3
	if month > 12 {
		month -= 12
		year++
	}
	y1, y2, m, dd := digits[year/100], digits[year%100], digits[month], digits[dayOfMonth]
	d.text = [dateLen]byte{y1[0], y1[1], y2[0], y2[1], '-', m[0], m[1], '-', dd[0], dd[1]}
}

// digits are the numbers from 0 to 99 in two digits.
var digits = func() (d [100][2]byte) {
	for i := range d {
		d[i] = [2]byte{byte('0' + i/10), byte('0' + i%10)}
	}
	return d
}()
