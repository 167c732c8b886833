package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// row is a line of the table. A row that was skipped says why in reached.
type row struct {
	what, ours, other, ratio, reach, reached string
}

func skipped(what, reach, why string) row {
	return row{what: what, reach: reach, reached: "skipped: " + why}
}

// over is a row for the time of ours over that of one other, which is to be at most
// the bound.
func over(what string, m medians[time.Duration], bound float64) row {
	return oneOver(what, m, 0, 1, bound)
}

// oneOver is the same of any two that were measured together.
func oneOver(what string, m medians[time.Duration], of, to int, bound float64) row {
	ratio := m.ratio(of, to)
	return row{what, seconds(m.each[of]), seconds(m.each[to]), fmt.Sprintf("%.2f", ratio), fmt.Sprintf("≤ %.1f", bound), yes(ratio <= bound)}
}

func yes(reached bool) string {
	if reached {
		return "yes"
	}
	return "**no**"
}

// table is the rows in Markdown.
func table(rows []row) string {
	var out strings.Builder
	out.WriteString("| what | ours | other | ratio | to reach | reached? |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		cells := []string{r.what, r.ours, r.other, r.ratio, r.reach, r.reached}
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "–"
			}
		}
		out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return out.String()
}

func seconds(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < 100*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// number groups the digits of n by three.
func number(n int) string {
	digits := strconv.Itoa(n)
	var out strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	return out.String()
}
