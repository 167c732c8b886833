package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Severity says how bad a finding is. The zero value is [Error].
type Severity uint8

// The severities.
const (
	Error   Severity = iota // readers may refuse the document or the entry
	Warning                 // readers cope, but it is hardly what was meant
)

// String is "error" or "warning".
func (s Severity) String() string { return [...]string{Error: "error", Warning: "warning"}[s] }

// MarshalText is String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`           // as the caller named it
	Line     int      `json:"line,omitempty"` // from 1; 0: it is about the whole file
	Code     string   `json:"code"`           // a stable word in kebab-case, such as "loc-outside-scope"
	Message  string   `json:"message"`
	URL      string   `json:"url,omitempty"` // the page or child that it is about
}

// Summary counts what a [Checker] saw.
type Summary struct {
	Documents int            `json:"documents"`
	URLs      int            `json:"urls"`     // pages listed
	Children  int            `json:"children"` // documents that indexes list
	Errors    int            `json:"errors"`
	Warnings  int            `json:"warnings"`
	Codes     map[string]int `json:"codes,omitempty"` // findings by code
}

// findings are those of one file.
type findings struct {
	c        *Checker
	file     string
	counts   map[string]int // by code
	severity map[string]Severity
}

func (c *Checker) findings(file string) *findings {
	return &findings{c: c, file: file, counts: make(map[string]int), severity: make(map[string]Severity)}
}

// report counts a finding, and passes it on unless there were too many of its code.
func (f *findings) report(what Finding) {
	f.c.count(what.Severity, what.Code)
	f.counts[what.Code]++
	f.severity[what.Code] = what.Severity
	if f.c.options.Report != nil && f.counts[what.Code] <= f.c.options.MaxPerCode {
		f.c.options.Report(what)
	}
}

// about reports a finding about an entry.
func (f *findings) about(url string, s Severity, line int, code, format string, args ...any) {
	f.report(Finding{s, f.file, line, code, fmt.Sprintf(format, args...), shown(url)})
}

// add reports a finding about the document.
func (f *findings) add(s Severity, line int, code, format string, args ...any) {
	f.about("", s, line, code, format, args...)
}

// once is add for the first of a code in a file.
func (f *findings) once(s Severity, line int, code, format string, args ...any) {
	if f.counts[code] == 0 {
		f.add(s, line, code, format, args...)
	}
}

// rest reports how many findings were not reported one by one.
func (f *findings) rest() {
	for _, code := range slices.Sorted(maps.Keys(f.counts)) {
		if more := f.counts[code] - f.c.options.MaxPerCode; more > 0 && f.c.options.Report != nil {
			f.c.options.Report(Finding{f.severity[code], f.file, 0, code, fmt.Sprintf("… and %s more", thousands(more)), ""})
		}
	}
}

const maxShown = 2048 // bytes of a value

// shown is a value for a finding, without what would break a line.
func shown(value string) string {
	cut := ""
	if len(value) > maxShown {
		value, cut = value[:maxShown], "…"
	}
	quoted := strconv.Quote(value)
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
