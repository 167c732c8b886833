package main

import (
	"fmt"
	"slices"
	"strconv"
)

// row is a line of the table: what was measured in each run of ours, and of the other
// side that ran beside it, if there is one.
type row struct {
	what        string
	show        func(float64) string
	reach       reach
	ours, other []float64
}

// reach is what is to be reached: of the quotient of ours and the other side where there
// is one, else of ours. The zero reach is none.
type reach struct {
	bound   float64
	atLeast bool
}

func atMost(bound float64) reach  { return reach{bound, false} }
func atLeast(bound float64) reach { return reach{bound, true} }

// add adds a run.
func (r *row) add(ours float64, other ...float64) {
	r.ours = append(r.ours, ours)
	r.other = append(r.other, other...)
}

// line is the row in Markdown.
func (r *row) line() string {
	judged, show, other, quotient := r.ours, r.show, "–", "–"
	if len(r.other) > 0 {
		judged, show = nil, ratio
		for i := range r.ours {
			judged = append(judged, r.ours[i]/r.other[i])
		}
		other, quotient = spread(r.other, r.show), spread(judged, ratio)
	}
	to, reached := "–", "–"
	if bound := r.reach.bound; bound > 0 {
		to, reached = "≤ "+show(bound), "**no**"
		if r.reach.atLeast {
			to = "≥ " + show(bound)
		}
		if is := median(judged); is == bound || is > bound == r.reach.atLeast {
			reached = "yes"
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %d |\n", r.what, spread(r.ours, r.show), other, quotient, to, reached, len(r.ours))
}

// table is the rows in Markdown.
func table(rows []*row) string {
	out := "| what | ours | other | quotient | to reach | reached | runs |\n|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		out += r.line()
	}
	return out
}

func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// spread is the median, with the least and the most of several.
func spread(values []float64, show func(float64) string) string {
	least, middle, most := show(slices.Min(values)), show(median(values)), show(slices.Max(values))
	if least == most {
		return middle
	}
	return fmt.Sprintf("%s (%s–%s)", middle, least, most)
}

func ratio(v float64) string     { return strconv.FormatFloat(v, 'f', 2, 64) }
func byteCount(v float64) string { return fmt.Sprintf("%.1f bytes", v) }
func mebibytes(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }
func perSecond(v float64) string { return number(int(v)) + "/s" }

// duration shows seconds.
func duration(v float64) string {
	switch {
	case v < 1e-6:
		return fmt.Sprintf("%.0f ns", v*1e9)
	case v < 1e-3:
		return fmt.Sprintf("%.0f µs", v*1e6)
	case v < 0.1:
		return fmt.Sprintf("%.1f ms", v*1e3)
	}
	return fmt.Sprintf("%.2f s", v)
}

// number groups the digits of n by three.
func number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
