package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// tellTale writes for people what the admin API answers. What strangers have a say in
// is escaped.
type tellTale struct {
	w   io.Writer
	now time.Time
}

func newTellTale(w io.Writer) *tellTale { return &tellTale{w, time.Now()} }

// width is that of the names before values.
const width = 14

// line writes a line of the text, escaped as a whole.
func (t *tellTale) line(format string, args ...any) {
	_, _ = fmt.Fprintln(t.w, printable(strings.TrimRight(fmt.Sprintf(format, args...), " ")))
}

// value writes a value under its name; an empty one is left out.
func (t *tellTale) value(name, value string) {
	if value != "" {
		t.line("  %-*s%s", width, name, value)
	}
}

// values writes values below one another, under one name.
func (t *tellTale) values(name string, values []string) {
	for _, value := range values {
		t.value(name, value)
		name = ""
	}
}

// when is a time, and how long ago that is, or until then.
func (t *tellTale) when(at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.DateTime) + " UTC (" + t.ago(*at) + ")"
}

func (t *tellTale) ago(at time.Time) string {
	if d := t.now.Sub(at); d >= 0 {
		return roughly(d) + " ago"
	}
	return "in " + roughly(at.Sub(t.now))
}

// roughly is a duration in its largest unit.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%dd", d/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// took is how long something took.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return "under 1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// amount is a number of things.
func amount[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// bytesOf is a number of bytes.
func bytesOf(n int64) string {
	for _, unit := range []string{"B", "kB", "MB"} {
		if n < 10_000 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%d GB", n)
}

// writeStatuses writes what there is to know of sites.
func writeStatuses(t *tellTale, answer []byte) error {
	sites, err := readStatuses(answer)
	if err != nil {
		return err
	}
	for i := range sites {
		if i > 0 {
			t.line("")
		}
		t.site(&sites[i])
	}
	if len(sites) == 0 {
		t.line("no site so far: one that no matcher names is made by its first request")
	}
	return nil
}

func readStatuses(answer []byte) ([]siteStatus, error) {
	var all sitesStatus
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return all.Sites, nil
}

func (t *tellTale) site(st *siteStatus) {
	t.line("%s", st.Site)
	if st.ServedBy != "" {
		t.value("served by", st.ServedBy)
		t.readers(st.Readers)
		return
	}
	t.value("sitemap", st.Sitemap)
	if st.NamedBy == namedByVisitors {
		t.value("named by", "visitors alone")
	}
	t.value("serves", st.served())
	t.value("since", t.when(st.Since))
	t.value("confirmed", t.when(st.Confirmed))
	t.lastRefresh(st)
	t.value("next refresh", t.when(st.NextRefresh))
	t.values("sources", st.sourceLines())
	t.values("left out", st.leftOutLines())
	t.values("warnings", st.Warnings)
	if d := st.Discovered; d != nil {
		t.values("discovered", []string{
			fmt.Sprintf("%s remembered: %d from access logs, %d from traffic, %d from links", amount(d.Paths, "path", "paths"), d.FromLog, d.FromTraffic, d.FromLinks),
			fmt.Sprintf("%d linked to by a listed page, %d listed", d.Linked, d.Listed),
		})
	}
	t.readers(st.Readers)
}

// served is what a site serves.
func (st *siteStatus) served() string {
	if st.Pages == 0 {
		return "nothing: no page is listed"
	}
	return fmt.Sprintf("%s, %d verified, in %s (%s)", amount(st.Pages, "page", "pages"), st.Verified,
		amount(st.Shards, "document", "documents"), bytesOf(st.Bytes))
}

func (t *tellTale) lastRefresh(st *siteStatus) {
	last := st.LastRefresh
	if last == nil {
		t.value("last refresh", "none so far")
		return
	}
	name := "last refresh"
	t.value(name, fmt.Sprintf("%s in %s, %s", last.Result, took(last.Duration), t.when(&last.At)))
	if last.Reason != "" {
		t.line("  %-*s%s", width, "", last.Reason)
	}
	if st.Refreshing {
		t.line("  %-*s%s", width, "", "and one is running")
	}
}

func (st *siteStatus) sourceLines() []string {
	var lines []string
	for _, source := range st.Sources {
		line := source.Source + ": " + amount(source.Pages, "page", "pages")
		if source.Error != "" {
			line += ", and could not be read: " + source.Error
		}
		lines = append(lines, line)
	}
	return lines
}

// leftOutLines are the reasons, with the most frequent first.
func (st *siteStatus) leftOutLines() []string {
	reasons := slices.Sorted(maps.Keys(st.LeftOut))
	slices.SortStableFunc(reasons, func(a, b string) int { return st.LeftOut[b] - st.LeftOut[a] })
	var lines []string
	for _, reason := range reasons {
		line := fmt.Sprintf("%d %s", st.LeftOut[reason], reason)
		if examples := st.Examples[reason]; len(examples) > 0 {
			line += ": " + strings.Join(examples, " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// readers writes who fetched documents last.
func (t *tellTale) readers(readings []Reading) {
	if len(readings) == 0 {
		return
	}
	t.line("  fetched by, as User-Agents say it")
	for _, r := range readings {
		t.line("    %-*s %-7s  %-12s %6d×  last %s", crawlerWidth(readings), r.Crawler, r.Document, r.Result, r.Times, t.when(&r.Last))
	}
}

func crawlerWidth(readings []Reading) int {
	widest := 0
	for _, r := range readings {
		widest = max(widest, len(r.Crawler))
	}
	return widest
}

// writeRefreshes writes what refreshes came to. The error says that one failed, or is
// not believed.
func writeRefreshes(t *tellTale, answer []byte) error {
	sites, err := readStatuses(answer)
	if err != nil {
		return err
	}
	bad := 0
	for _, st := range sites {
		switch last := st.LastRefresh; {
		case st.ServedBy != "":
			t.line("%s: served by %s", st.Site, st.ServedBy)
		case last == nil:
			bad++
			t.line("%s: not refreshed", st.Site)
		default:
			t.line("%s: %s, %s, in %s%s", st.Site, last.Result, amount(st.Pages, "page", "pages"), took(last.Duration), because(last.Reason))
			if last.Result == refreshFailed || last.Result == refreshDoubted {
				bad++
			}
		}
	}
	if bad > 0 {
		return errors.New(amount(bad, "refresh", "refreshes") + " failed or not believed; what was served before is served on")
	}
	return nil
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// writeExplanation writes why a page is listed, or is not.
func writeExplanation(t *tellTale, answer []byte) error {
	var x Explanation
	if err := json.Unmarshal(answer, &x); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	t.line("%s", x.URL)
	if x.Listed {
		t.value("listed", "yes, in "+x.Document)
	} else {
		t.value("listed", "no: "+x.Reason)
	}
	t.value("", x.Explanation)
	t.value("lastmod", x.LastMod)
	t.value("changefreq", x.ChangeFreq)
	t.value("priority", x.Priority)
	t.value("canonical", x.Canonical)
	if at, err := time.Parse(time.RFC3339, x.AskedAt); err == nil {
		t.value("last asked", t.when(&at))
	}
	t.value("answers now", x.Answer.summary())
	var says []string
	for _, source := range x.Sources {
		says = append(says, source.Source+": "+source.Says)
	}
	t.values("sources", says)
	t.values("notes", x.Notes)
	return nil
}

// summary is what a stranger gets; "": the page was not asked for.
func (a *ExplainedAnswer) summary() string {
	switch {
	case a == nil:
		return ""
	case a.Error != "":
		return "nothing: " + a.Error
	}
	parts := []string{fmt.Sprint(a.Status)}
	if a.Location != "" {
		parts = append(parts, "to "+a.Location)
	}
	if a.ContentType != "" {
		parts = append(parts, a.ContentType)
	}
	if a.NoIndex {
		parts = append(parts, "noindex")
	}
	return strings.Join(parts, ", ")
}
