package sitemap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// printer writes responses of the admin API for people, in columns. What strangers may
// have written is escaped.
type printer struct {
	*tabwriter.Writer
	now time.Time
}

func newPrinter(w io.Writer) *printer {
	return &printer{tabwriter.NewWriter(w, 16, 0, 2, ' ', 0), time.Now()}
}

// line writes cells, each escaped.
func (p *printer) line(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	_, _ = fmt.Fprintln(p, strings.Join(cells, "\t"))
}

// value writes a value under its name; an empty one is left out.
func (p *printer) value(name, value string) {
	if value != "" {
		p.line("  "+name, value)
	}
}

// values writes values below one another, under one name.
func (p *printer) values(name string, values []string) {
	for _, value := range values {
		p.value(name, value)
		name = ""
	}
}

// when is a time, and how long ago that is, or until then.
func (p *printer) when(at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	ago := "in " + roughly(at.Sub(p.now))
	if d := p.now.Sub(*at); d >= 0 {
		ago = roughly(d) + " ago"
	}
	return at.UTC().Format(time.DateTime) + " UTC (" + ago + ")"
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

// writeStatuses writes the status of sites.
func writeStatuses(p *printer, body []byte) error {
	var all sitesStatus
	if err := decodeResponse(body, &all); err != nil {
		return err
	}
	for i := range all.Sites {
		if i > 0 {
			p.line("")
		}
		p.site(&all.Sites[i])
	}
	if len(all.Sites) == 0 {
		p.line("no site yet: one that the configuration does not name is created by its first request")
	}
	return p.Flush()
}

func decodeResponse(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("decoding the response: %w", err)
	}
	return nil
}

func (p *printer) site(st *siteStatus) {
	p.line(st.Site)
	if st.ServedBy != "" {
		p.value("served by", st.ServedBy)
		p.readers(st.Readers)
		return
	}
	p.value("sitemap", st.Sitemap)
	if st.NamedBy == namedByVisitors {
		p.value("named by", "visitors only")
	}
	p.value("serves", st.serves())
	p.value("since", p.when(st.Since))
	p.value("confirmed", p.when(st.Confirmed))
	p.values("last refresh", p.lastRefresh(st))
	p.value("next refresh", p.when(st.NextRefresh))
	p.values("sources", st.sourceLines())
	p.values("left out", countLines(st.LeftOut, st.Examples))
	p.values("warnings", st.Warnings)
	if d := st.Discovered; d != nil {
		line := fmt.Sprintf("%s known, %s visited", amount(d.Known, "path", "paths"), amount(d.Visited, "path", "paths"))
		if d.Dropped > 0 {
			line += fmt.Sprintf(", %d dropped", d.Dropped)
		}
		p.value("discovered", line)
		p.values("not counted", countLines(d.Ignored, nil))
	}
	p.readers(st.Readers)
}

// serves is what a site serves.
func (st *siteStatus) serves() string {
	serves := "nothing: no page is listed"
	if st.Pages > 0 {
		serves = fmt.Sprintf("%s in %s (%s)", amount(st.Pages, "page", "pages"), amount(st.Shards, "document", "documents"), bytesOf(st.Bytes))
	}
	if st.Pending > 0 {
		serves += fmt.Sprintf("; %d pending", st.Pending)
	}
	return serves
}

// outcome is the result of a refresh in words.
func (r *refreshStatus) outcome() string { return strings.ReplaceAll(r.Result, "_", " ") }

func (p *printer) lastRefresh(st *siteStatus) []string {
	last := st.LastRefresh
	if last == nil {
		return []string{"none so far"}
	}
	lines := []string{fmt.Sprintf("%s in %s, %s", last.outcome(), took(last.Duration), p.when(&last.At))}
	if last.Reason != "" {
		lines = append(lines, last.Reason)
	}
	if st.Refreshing {
		lines = append(lines, "and one is running")
	}
	return lines
}

func (st *siteStatus) sourceLines() []string {
	var lines []string
	for _, source := range st.Sources {
		line := source.Source + ": " + amount(source.Pages, "page", "pages")
		if source.Error != "" {
			line += ", could not be read: " + source.Error
		}
		lines = append(lines, line)
	}
	return lines
}

// countLines are counts by reason, with the most frequent first, and examples.
func countLines(counts map[string]int, examples map[string][]string) []string {
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	var lines []string
	for _, reason := range reasons {
		line := fmt.Sprintf("%d %s", counts[reason], reason)
		if examples := examples[reason]; len(examples) > 0 {
			line += ": " + strings.Join(examples, " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// readers writes who last requested documents.
func (p *printer) readers(readings []Reading) {
	if len(readings) == 0 {
		return
	}
	p.line("  requested by (User-Agents are not verified)")
	for _, r := range readings {
		p.line("    "+r.Crawler, r.Document, r.Result, fmt.Sprintf("%d×", r.Times), "last "+p.when(&r.Last))
	}
}

// writeRefreshes writes the outcomes of refreshes. The error says that some failed, or are
// held back.
func writeRefreshes(p *printer, body []byte) error {
	var all sitesStatus
	if err := decodeResponse(body, &all); err != nil {
		return err
	}
	bad := 0
	for _, st := range all.Sites {
		switch last := st.LastRefresh; {
		case st.ServedBy != "":
			p.line(st.Site + ": served by " + st.ServedBy)
		case last == nil:
			bad++
			p.line(st.Site + ": not refreshed")
		default:
			line := fmt.Sprintf("%s: %s, %s, in %s", st.Site, last.outcome(), amount(st.Pages, "page", "pages"), took(last.Duration))
			if last.Reason != "" {
				line += ": " + last.Reason
			}
			p.line(line)
			if last.Result == refreshFailed || last.Result == refreshHeldBack {
				bad++
			}
		}
	}
	if err := p.Flush(); err != nil || bad == 0 {
		return err
	}
	return errors.New(amount(bad, "refresh", "refreshes") + " failed or held back; pages that were listed stay listed")
}

// writeExplanation writes why a page is listed, or is not.
func writeExplanation(p *printer, body []byte) error {
	var x Explanation
	if err := decodeResponse(body, &x); err != nil {
		return err
	}
	p.line(x.URL)
	if x.Listed {
		p.value("listed", "yes, in "+x.Document)
	} else {
		p.value("listed", "no: "+x.Reason)
	}
	p.value("", x.Explanation)
	p.value("", x.Remedy)
	if !x.Listed {
		p.value("sitemap", x.Sitemap)
	}
	p.value("lastmod", x.LastMod)
	p.value("changefreq", x.ChangeFreq)
	p.value("priority", x.Priority)
	p.value("other page", x.Other)
	p.value("disallowed", x.DisallowedBy)
	p.value("robots.txt", x.RobotsRule)
	if x.Named {
		p.value("named by", "a source")
	}
	p.value("linked", p.when(x.LinkedAt))
	p.value("visited", p.when(x.VisitedAt))
	if x.FetchedAt != nil {
		p.value("last fetch", fmt.Sprintf("status %d, %s", x.Status, p.when(x.FetchedAt)))
	}
	p.value("next fetch", p.when(x.DueAt))
	p.value("returns now", x.Response.summary())
	p.values("notes", x.Notes)
	return p.Flush()
}

// summary is what an anonymous visitor gets; "": the page was not fetched.
func (r *ExplainedResponse) summary() string {
	if r == nil {
		return ""
	}
	var parts []string
	add := func(before, value string) {
		if value != "" {
			parts = append(parts, before+value)
		}
	}
	if r.Status != 0 {
		add("", fmt.Sprint(r.Status))
	}
	add("to ", r.Location)
	add("", r.ContentType)
	if r.NoIndex {
		add("", "noindex")
	}
	add("canonical ", r.Canonical)
	add("", r.Error)
	return strings.Join(parts, ", ")
}
