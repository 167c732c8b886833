package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// findings are those of one file.
type findings struct {
	c      *Checker
	file   string
	counts map[string]*tally
}

type tally struct {
	n        int
	severity Severity
}

func (c *Checker) findings(file string) *findings {
	return &findings{c: c, file: file, counts: map[string]*tally{}}
}

// add counts a finding, and reports whether it is one of those to be told.
func (f *findings) add(s Severity, code string) bool {
	f.c.count(s, code)
	t := f.counts[code]
	if t == nil {
		t = &tally{severity: s}
		f.counts[code] = t
	}
	t.n++
	return t.n <= f.c.options.MaxPerCode
}

// about reports a finding about an entry.
func (f *findings) about(url []byte, s Severity, line int, code, format string, args ...any) {
	if !f.add(s, code) {
		return
	}
	f.c.tell(Finding{s, f.file, line, code, fmt.Sprintf(format, args...), shown(url)})
}

// say reports a finding.
func (f *findings) say(s Severity, line int, code, format string, args ...any) {
	f.about(nil, s, line, code, format, args...)
}

// once is say for the first of a code in a file.
func (f *findings) once(s Severity, line int, code, format string, args ...any) {
	if f.counts[code] == nil {
		f.say(s, line, code, format, args...)
	}
}

// rest says how many findings were not reported one by one.
func (f *findings) rest() {
	for _, code := range slices.Sorted(maps.Keys(f.counts)) {
		t := f.counts[code]
		if more := t.n - f.c.options.MaxPerCode; more > 0 {
			f.c.tell(Finding{t.severity, f.file, 0, code, fmt.Sprintf("… and %s more", thousands(more)), ""})
		}
	}
}

// maxShown is how many bytes of a value are shown.
const maxShown = 2048

// shown is a value for a finding, without what would break a line.
func shown(value []byte) string {
	cut := ""
	if len(value) > maxShown {
		value, cut = value[:maxShown], "…"
	}
	quoted := strconv.Quote(string(value))
	return quoted[1:len(quoted)-1] + cut
}

// thousands is n as in "1,204".
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
