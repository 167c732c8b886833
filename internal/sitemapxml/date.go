package sitemapxml

import "time"

// The times that a lastmod can say, in Unix seconds: W3C Datetime has years of four
// digits (https://www.w3.org/TR/NOTE-datetime), and XML Schema has no year 0
// (https://www.w3.org/TR/xmlschema-2/#dateTime).
const (
	minTime = -62135596800 // 0001-01-01T00:00:00Z
	maxTime = 253402300799 // 9999-12-31T23:59:59Z
)

const (
	dateLen     = len(time.DateOnly)
	dateTimeLen = len("2006-01-02T15:04:05Z")
)

// hasDate reports whether a document can say t: it is known, and has a year of
// four digits.
func hasDate(t int64) bool { return t != 0 && t >= minTime && t <= maxTime }

// appendDate appends t as W3C Datetime, in UTC; only the day where dayOnly.
func appendDate(dst []byte, t int64, dayOnly bool) []byte {
	layout := time.RFC3339
	if dayOnly {
		layout = time.DateOnly
	}
	return time.Unix(t, 0).UTC().AppendFormat(dst, layout)
}
