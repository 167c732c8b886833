package crawl

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// response returns a response with a status and pairs of header fields.
func response(status int, header ...string) *Response {
	r := &Response{Status: status, Header: http.Header{"Content-Type": {"text/html"}}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

const now = 1_800_000_000

// known is the record of a document that was fetched ten days before.
func known() record.Record {
	return record.Record{
		Path: "/a", Status: 200, Flags: record.Named | record.HTML | record.Document, Text: 1, Blocks: 1, First: 9, ETag: `"1"`,
		Fetched: now - 10*day, Due: now - day, Wait: week, Canonical: "/c", Title: "t", Declared: 5,
		Description: "d", Markdown: "/m",
		Article: &record.Article{Published: 7, PublishedDay: true, Headline: "h", Lang: "de"},
	}
}

// texts is what a record has for documents beside the sitemap, with blanks between.
func texts(rec *record.Record) string {
	texts := fmt.Sprint(rec.Title, " ", rec.Description, " ", rec.Markdown)
	if a := rec.Article; a != nil {
		texts += fmt.Sprint(" ", a.Headline, " ", a.Lang, " ", a.Published, a.PublishedDay)
	}
	return texts
}

func TestApply(t *testing.T) {
	doc := func(text uint64) html.Meta {
		return html.Meta{Document: true, Text: text, Blocks: text, Modified: 5}
	}
	for _, test := range []struct {
		name   string
		before record.Record
		fetched
		want string // status, flags, failing, changed, wait, canonical, target, new title
	}{
		{"first", record.Record{Path: "/a"}, fetched{resp: response(200), meta: doc(1)}, "200 HD 0 false 1d"},
		{"unchanged", known(), fetched{resp: response(200), meta: doc(1)}, "200 HD 0 false 1d"},
		{"changed", known(), fetched{resp: response(200), meta: doc(2)}, "200 HD 0 false 1m"},
		{"not modified", known(), fetched{resp: response(304)}, "200 HD 0 false 1d /c"},
		{"soft 404", known(), fetched{resp: response(200), meta: doc(2), soft: true}, "200 HDS 0 false 1m"},
		{"error", known(), fetched{resp: response(500)}, "200 HD 1 false 61m /c"},
		{"no response", known(), fetched{}, "200 HD 1 false 61m /c"},
		{"too many", known(), fetched{resp: response(429)}, "200 HD 1 false 61m /c"},
		{"error at first", record.Record{Path: "/a"}, fetched{resp: response(502)}, "502  1 false 1m"},
		{"no response at first", record.Record{Path: "/a"}, fetched{}, "0  1 false 1m"},
		{"not found", known(), fetched{resp: response(404)}, "404  0 false 1m"},
		{"refused", known(), fetched{resp: response(403)}, "403  0 false 1m"},
		{"redirect", known(), fetched{resp: response(301, "Location", "/b?c#d")}, "301  0 false 1d /b?c"},
		{"redirect elsewhere", known(), fetched{resp: response(302, "Location", "//example.org/")}, "302  0 false 1d https://example.org/"},
		{"redirect to the default port", known(), fetched{resp: response(308, "Location", "https://example.com:443/b")}, "308  0 false 1d /b"},
		{"redirect to nowhere", known(), fetched{resp: response(301)}, "301  0 false 1d"},
		{"not HTML", known(), fetched{resp: response(200, "Content-Type", "text/plain")}, "200  0 false 2320h"},
		{"empty front page", record.Record{Path: "/"}, fetched{resp: response(200, "Content-Type", "")}, "200  0 false 110s"},
		{"front page without a document", record.Record{Path: "/"}, fetched{resp: response(200)}, "200 H 0 false 110s"},
		{"front page", record.Record{Path: "/"}, fetched{resp: response(200), meta: doc(1)}, "200 HD 0 false 110s"},
		{"emptied", known(), fetched{resp: response(200)}, "200 HD 1 false 5s /c"},
		{"unreadable", known(), fetched{resp: response(200), meta: html.Meta{Unreadable: true}}, "200 HU 0 false 1d"},
		{"canonical", known(), fetched{resp: response(200), meta: html.Meta{Document: true, Text: 1, Blocks: 1, Canonical: base + "/%62"}}, "200 HD 0 false 1d /b"},
		{"canonical is itself", known(), fetched{resp: response(200), meta: html.Meta{Document: true, Text: 1, Blocks: 1, Canonical: base + "/a"}}, "200 HD 0 false 1d"},
		{"title", known(), fetched{resp: response(200), meta: html.Meta{Document: true, Text: 1, Blocks: 1, Extensions: page.Extensions{Title: "new"}}}, "200 HD 0 false 1d new"},
		{"noindex, refresh", known(), fetched{resp: response(200), meta: html.Meta{Document: true, Text: 1, Blocks: 1, NoIndex: true, NoIndexTag: true, Refresh: "https://example.org/"}}, "200 HDNT 0 false 1d https://example.org/"},
	} {
		rec := test.before
		test.base, test.batch, test.now = base, 10, now
		came := apply(&rec, &test.fetched)
		r := &Run{c: New(Options{Own: true}), p: Policy{Scope: "/", Expire: 10000 * day * time.Second}}
		r.plan(&test.before, &rec, came, 0, now)
		flags := ""
		for i, flag := range []record.Flags{record.HTML, record.Document, record.NoIndex, record.Unreadable, record.SoftNotFound} {
			if rec.Flags&flag != 0 {
				flags += "HDNUS"[i : i+1]
			}
		}
		if rec.NoIndexTag {
			flags += "T"
		}
		if wantOld := rec.Canonical == "/c"; (texts(&rec) == "t d /m h de 7 true") != wantOld { // they stay as long as the canonical does
			t.Errorf("%s: got %s", test.name, texts(&rec))
		}
		if isOther := test.name != "title" && rec.Canonical != "/c"; isOther && texts(&rec) != "  " {
			t.Errorf("%s: left over: %s", test.name, texts(&rec))
		}
		failing := 0
		if rec.Failing != 0 {
			failing = 1
		}
		isChanged := rec.Changed == 10
		pause := uint32(rec.Due - now)
		wait := fmt.Sprintf("%ds", pause)
		for _, unit := range []struct {
			seconds uint32
			name    string
		}{{minute, "m"}, {hour, "h"}, {day, "d"}} {
			if pause%unit.seconds == 0 {
				wait = fmt.Sprint(pause/unit.seconds, unit.name)
			}
		}
		got := strings.TrimSpace(fmt.Sprintf("%d %s %d %t %s %s%s%s", rec.Status, flags, failing, isChanged, wait, rec.Canonical, rec.Target, strings.TrimPrefix(rec.Title, "t")))
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		if rec.Fetched != now {
			t.Errorf("%s: fetched at %d", test.name, rec.Fetched)
		}
		if wantFirst := max(test.before.First, 10*int64(rec.Flags&record.HTML/record.HTML)); rec.First != min(wantFirst, 10) && test.before.First == 0 {
			t.Errorf("%s: first read in batch %d", test.name, rec.First)
		}
		if isChanged && rec.Before != test.before.Fetched {
			t.Errorf("%s: changed in batch %d, seen before at %d", test.name, rec.Changed, rec.Before)
		}
	}
}

// TestFollowed: links count as followed when they were last seen.
func TestFollowed(t *testing.T) {
	const before, at = now - 10*day, now
	for name, test := range map[string]struct {
		resp *Response
		doc  bool
		want int64
	}{
		"a page":       {response(200), true, at},
		"empty":        {response(200), false, before},
		"not modified": {response(304), false, before},
		"an error":     {response(500), false, before},
		"no response":  {nil, false, before},
		"a redirect":   {response(301, "Location", "/b"), false, at},
		"gone":         {response(410), false, at},
	} {
		for _, followed := range []int64{0, before - day} { // with the last fetch, or before
			rec := known()
			rec.Followed = followed
			want := test.want
			if want == before {
				want = rec.FollowedAt()
			}
			apply(&rec, &fetched{resp: test.resp, meta: html.Meta{Document: test.doc, Text: 1, Blocks: 1}, base: base, batch: 10, now: now})
			if got := rec.FollowedAt(); got != want {
				t.Errorf("%s: got %d, want %d", name, got-now, want-now)
			}
		}
	}
}

// TestModified: Last-Modified is that of the text, unless the text was another one at that time.
func TestModified(t *testing.T) {
	const before, since = now - 11*day, now - 9*day // the last fetch
	for name, test := range map[string]struct {
		change   func(rec *record.Record)
		text     uint64
		modified int64
		made     bool
		want     int64
	}{
		"unchanged":                   {func(*record.Record) {}, 1, before, false, before},
		"changed since":               {func(*record.Record) {}, 2, since, false, since},
		"changed, with an old time":   {func(*record.Record) {}, 2, before, false, 0},
		"changed, unknown when":       {func(rec *record.Record) { rec.Failing = now - day }, 2, before, false, before},
		"before 1970":                 {func(*record.Record) {}, 1, -5, false, 0},
		"a file":                      {func(rec *record.Record) { rec.Version = 1 }, 1, before, false, 0},
		"a file, through an upstream": {func(rec *record.Record) { rec.Version = 1 }, 1, before, true, before},
	} {
		rec := known()
		test.change(&rec)
		resp := response(200, "Last-Modified", time.Unix(test.modified, 0).UTC().Format(http.TimeFormat))
		resp.Made = test.made
		apply(&rec, &fetched{resp: resp, meta: html.Meta{Document: true, Text: test.text, Blocks: test.text}, base: base, batch: 10, now: now})
		if rec.Modified != test.want {
			t.Errorf("%s: got %d, want %d", name, rec.Modified, test.want)
		}
	}
}

// What is a file's time and what is a list's date stays apart in the record.
func TestName(t *testing.T) {
	for _, test := range []struct {
		name    string
		p       page.Page
		modTime int64
		list    int64
		day     bool
	}{
		{"a list", page.Page{LastMod: 5, LastModDay: true}, 5, 0, true},
		{"a file", page.Page{FileTime: 9, Version: 1}, 9, 0, false},
		{"both", page.Page{LastMod: 5, LastModDay: true, FileTime: 9, Version: 1}, 9, 5, true},
		{"a list, and a file of unknown time", page.Page{LastMod: 5, Version: 1}, 0, 5, false},
	} {
		for _, before := range []record.Record{{}, {ModTime: 7, ListDate: 8, Version: 3, Flags: record.ModDay}} {
			rec := before
			name(&rec, &test.p, now)
			if day := rec.Flags&record.ModDay != 0; rec.ModTime != test.modTime || rec.ListDate != test.list || day != test.day {
				t.Errorf("%s: got %d, a list's %d %t, want %d, %d %t", test.name, rec.ModTime, rec.ListDate, day, test.modTime, test.list, test.day)
			}
			toLinked(&rec)
			if rec.ModTime != test.p.LastMod || rec.ListDate != 0 {
				t.Errorf("%s: %d and %d stay of a page that no source names", test.name, rec.ModTime, rec.ListDate)
			}
			dropListDate(&rec)
			if rec.ModTime != 0 || rec.Flags&record.ModDay != 0 {
				t.Errorf("%s: %d stays of a page that no source names, and that was fetched", test.name, rec.ModTime)
			}
		}
	}
}

// TestNamedAgain: what is known of a page that no source named for a while holds no longer than until it was to be fetched.
func TestNamedAgain(t *testing.T) {
	named := record.Record{Flags: record.Named, Fetched: now - day, Due: now - hour, Absent: now - 2*hour, Status: 200, Text: 5}
	with := func(change func(rec *record.Record)) record.Record {
		rec := named
		change(&rec)
		return rec
	}
	for reason, test := range map[string]struct {
		rec  record.Record
		want uint16
	}{
		"it was to be fetched":       {named, 0},
		"it was to be fetched later": {with(func(rec *record.Record) { rec.Due = now + 1 }), 200},
		"it was named all the time":  {with(func(rec *record.Record) { rec.Absent = 0 }), 200},
		"it is still listed":         {with(func(rec *record.Record) { rec.Selected.Listed = true }), 200},
		"its file tells":             {with(func(rec *record.Record) { rec.Version = 1 }), 200},
	} {
		rec := test.rec
		name(&rec, &page.Page{Version: rec.Version}, now)
		if rec.Status != test.want || rec.Text != 5 || rec.Absent != 0 {
			t.Errorf("%s: got %+v", reason, rec)
		}
	}
}

// TestSpares: a conditional request will do where all that a 304 leaves unsaid is known.
func TestSpares(t *testing.T) {
	r := New(Options{}).Start(nil, Policy{Expire: 10000 * day * time.Second})
	for name, test := range map[string]struct {
		change func(rec *record.Record)
		want   bool
	}{
		"with an ETag":              {func(*record.Record) {}, true},
		"with a time":               {func(rec *record.Record) { rec.ETag, rec.Modified = "", 1 }, true},
		"without validators":        {func(rec *record.Record) { rec.ETag = "" }, false},
		"not found":                 {func(rec *record.Record) { rec.Status = 404 }, false},
		"failing":                   {func(rec *record.Record) { rec.Failing = now }, false},
		"due at once":               {func(rec *record.Record) { rec.Due = 0 }, false},
		"noindex in its header":     {func(rec *record.Record) { rec.NoIndexTag = true }, false},
		"a canonical":               {func(rec *record.Record) { rec.Canonical = "/b" }, false},
		"a refresh":                 {func(rec *record.Record) { rec.Target = "/b" }, false},
		"its links did not count":   {func(rec *record.Record) { rec.Withheld = true }, false},
		"its links were not looked": {func(rec *record.Record) { rec.Fetched = now - 9000*day }, false},
	} {
		rec := known()
		rec.Canonical = ""
		test.change(&rec)
		if got := r.spares(&rec, now); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

// history fetches a page again and again.
type history struct {
	*Run
	rec record.Record
	at  int64
}

// fetch fetches the page, and returns after how long it is due again.
func (h *history) fetch(resp *Response, meta html.Meta) int64 {
	before := h.rec
	h.plan(&before, &h.rec, apply(&h.rec, &fetched{resp: resp, meta: meta, base: base, batch: 10, now: h.at}), 0, h.at)
	wait := h.rec.Due - h.at
	h.at = h.rec.Due
	return wait
}

// TestFailing: a listed page that fails is believed to after an hour.
func TestFailing(t *testing.T) {
	none := html.Meta{}
	for status, resp := range map[uint16]*Response{0: nil, 400: response(400), 503: response(503)} {
		h := &history{New(Options{}).Start(nil, Policy{}), known(), now}
		rec := &h.rec
		if wait := h.fetch(resp, none); rec.Status != 200 || rec.Failing != now || wait <= hour {
			t.Errorf("%d once: got %+v", status, rec)
		}
		if h.fetch(resp, none); rec.Status != status || rec.Flags&record.HTML != 0 || rec.Failing != now || rec.Text != 1 {
			t.Errorf("%d after an hour: got %+v", status, rec)
		}
	}
}

// TestFailingForDays: a page that has failed for long is fetched daily, and listed again once it does not fail.
func TestFailingForDays(t *testing.T) {
	h := &history{New(Options{}).Start(nil, Policy{}), known(), now}
	rec, none := &h.rec, html.Meta{}
	for range 12 {
		h.fetch(response(500), none)
	}
	if rec.Wait != day || rec.Status != 500 {
		t.Errorf("after days: got %+v", rec)
	}
	if h.fetch(response(200), html.Meta{Document: true, Text: 2, Blocks: 2}); rec.Failing != 0 || rec.Changed != 0 || rec.Before != 0 || rec.Due != rec.Fetched+minute {
		t.Errorf("in the end: got %+v", rec)
	}
	if h.fetch(response(200), html.Meta{Document: true, Text: 2, Blocks: 2}); rec.Changed != 10 || rec.Before != 0 || rec.Wait != 12*hour {
		t.Errorf("confirmed: got %+v", rec)
	}
	// One grace for an empty page.
	if h.fetch(response(200), none); rec.Flags&record.Document == 0 {
		t.Errorf("empty once: got %+v", rec)
	}
	if h.fetch(response(200), none); rec.Flags&record.Document != 0 || rec.Failing != 0 {
		t.Errorf("empty twice: got %+v", rec)
	}
	for range 12 {
		h.fetch(response(404), none)
	}
	if want := uint32(day); rec.Wait != want {
		t.Errorf("not found for long: due after %d, want %d", rec.Wait, want)
	}
}

// TestNotHTML: what was not HTML is fetched again after 90 days, and has no links that would have to be seen
// more often; what failed since, or is HTML now, like any page.
func TestNotHTML(t *testing.T) {
	for _, expire := range []time.Duration{time.Hour, 0, 365 * 24 * time.Hour} {
		h := &history{New(Options{Own: true}).Start(nil, Policy{Expire: expire}), record.Record{Path: "/a.css"}, now}
		for i, test := range []struct {
			resp        *Response
			meta        html.Meta
			least, most int64
		}{
			{response(200, "Content-Type", "text/css"), html.Meta{}, 90 * day, 97 * day},
			{response(200, "Content-Type", "text/css"), html.Meta{}, 90 * day, 97 * day},
			{nil, html.Meta{}, 0, 2 * hour},
			{response(200), html.Meta{Document: true, Text: 2, Blocks: 2}, 0, 2 * week},
		} {
			if wait := h.fetch(test.resp, test.meta); wait < test.least || wait > test.most {
				t.Errorf("expire %s: after fetch %d it is due after %d hours", expire, i, wait/hour)
			}
		}
	}
}

// TestStarting: an application may start with the server. Its front page is fetched again soon.
func TestStarting(t *testing.T) {
	for _, test := range []struct {
		rec  record.Record
		want string
	}{
		{record.Record{Path: "/"}, "5 10 20 40 80 160 "},
		{record.Record{Path: "/en/", Flags: record.Seed}, "5 10 20 40 80 160 "},
		{record.Record{Path: "/a"}, "60 120 240 480 960 1920 "},
	} {
		h, waits := &history{New(Options{}).Start(nil, Policy{Scope: "/"}), test.rec, now}, ""
		for range 6 {
			waits += fmt.Sprint(h.fetch(response(502), html.Meta{}), " ")
		}
		if waits != test.want {
			t.Errorf("%s: got %s, want %s", test.rec.Path, waits, test.want)
		}
	}
}

func TestLimiter(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	ok, busy := response(200), response(429)
	after := func(value string) *Response { return response(503, "Retry-After", value) }
	for _, test := range []struct {
		name string
		rate float64
		took time.Duration
		resp *Response
		want []time.Duration // when requests began
	}{
		{"quick", 2, 0, ok, []time.Duration{0, 500 * ms, s, 1500 * ms}},
		{"slow", 2, s, ok, []time.Duration{0, 3 * s, 6 * s}},
		{"high rate", 1000, 0, ok, []time.Duration{0, ms, 2 * ms}},
		{"no responses", 2, 0, nil, []time.Duration{0, 500 * ms, 1500 * ms, 3500 * ms}},
		{"too many", 2, 0, busy, []time.Duration{0, 60 * s, 180 * s, 420 * s}},
		{"Retry-After", 2, 0, after("7"), []time.Duration{0, 7 * s, 14 * s}},
		{"Retry-After at once", 2, 2 * s, after("0"), []time.Duration{0, 6 * s, 12 * s}},
		{"Retry-After for ages", 2, 0, after("99999999999999999999"), []time.Duration{0, 24 * time.Hour}},
		{"Retry-After nonsense", 2, 0, after("soon"), []time.Duration{0, 60 * s}},
		{"very slow", 2, 5 * time.Hour, ok, []time.Duration{0, 6 * time.Hour}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, first := NewLimiter(test.rate, 1), time.Now()
				for i, want := range test.want {
					if !l.Take(t.Context(), schedule.Named, nil) {
						t.Fatal("no turn")
					}
					if got := time.Since(first).Round(ms); got != want {
						t.Errorf("request %d: got %s, want %s", i, got, want)
					}
					time.Sleep(test.took)
					l.record(schedule.Named, new(cooldown), test.took, test.resp)
					l.Release(schedule.Named)
					next := NewLimiter(test.rate, 1) // a reload changes nothing
					next.Resume(l)
					next.Resume(next) // as of a site that comes back while both configurations run
					l = next
				}
			})
		})
	}
}

// TestBackoffEnds: a response that is no refusal ends the back-off: the next refusal begins anew with a minute.
func TestBackoffEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2, 1)
		busy := response(http.StatusTooManyRequests)
		for i, test := range []struct {
			resp *Response
			want time.Duration // until the next request
		}{
			{busy, time.Minute},
			{busy, 2 * time.Minute},
			{response(http.StatusOK), time.Second / 2},
			{busy, time.Minute},
			{response(http.StatusNotFound), time.Second / 2},
			{nil, time.Second / 2},
			{nil, time.Second},
			{response(http.StatusInternalServerError), time.Second / 2},
			{nil, time.Second / 2},
		} {
			if !l.AwaitTurn(t.Context(), schedule.Named) {
				t.Fatal("no turn")
			}
			l.record(schedule.Named, new(cooldown), 0, test.resp)
			if got := time.Until(l.Next()); got != test.want {
				t.Errorf("after response %d: the next request may begin after %s, want %s", i, got, test.want)
			}
		}
	})
}

// TestDigestOf: each field of a candidate makes another digest, which only those of the range count for.
func TestDigestOf(t *testing.T) {
	digests := make(map[uint64]page.Page)
	for _, p := range []page.Page{
		{}, {Path: "/b"}, {LastMod: 1}, {FileTime: 1}, {Version: 1}, {Sources: 1}, {Sources: 1 << 15}, {Priority: 1},
		{ChangeFreq: 1}, {LastModDay: true}, {Visited: true}, {LastModDay: true, Visited: true},
	} {
		digest := digestOf([]page.Page{p}, "", "")
		if other, ok := digests[digest]; ok {
			t.Errorf("%+v and %+v have one digest", p, other)
		}
		digests[digest] = p
	}
	all := named("/a", "/b", "/c", "/d")
	for _, test := range []struct {
		first, next string
		want        []page.Page
	}{{"", "", all}, {"/b", "/d", all[1:3]}, {"/c", "", all[2:]}, {"/e", "", nil}} {
		if digestOf(all, test.first, test.next) != digestOf(test.want, "", "") {
			t.Errorf("from %q to %q: other pages than %v count", test.first, test.next, test.want)
		}
	}
}

// TestChunkDue: a chunk is looked at again when a page of it is due, or may have to be dropped.
func TestChunkDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const expire = 90 * day
		r := New(Options{}).Start(nil, Policy{Links: true, Scope: "/", Depth: 100, Expire: expire * time.Second})
		now := time.Now().Unix()
		fetched := func(change func(rec *record.Record)) record.Record {
			rec := record.Record{Path: "/a", Status: 200, Fetched: now - day, Due: now + 300*day, Linked: now - day, Flags: record.Named}
			change(&rec)
			return rec
		}
		named := fetched(func(*record.Record) {})
		for name, test := range map[string]struct {
			records []record.Record
			want    int64 // seconds from now
		}{
			"nothing":            {nil, maxAhead},
			"far":                {[]record.Record{named}, maxAhead},
			"due":                {[]record.Record{named, fetched(func(rec *record.Record) { rec.Due = now + week })}, week},
			"new":                {[]record.Record{fetched(func(rec *record.Record) { rec.Fetched = 0 })}, -now},
			"absent":             {[]record.Record{named, fetched(func(rec *record.Record) { rec.Absent = now })}, keepAbsent},
			"absent for a day":   {[]record.Record{fetched(func(rec *record.Record) { rec.Absent = now - day })}, keepAbsent - day},
			"absent for long":    {[]record.Record{fetched(func(rec *record.Record) { rec.Absent = now - week })}, hour},
			"absent, and linked": {[]record.Record{fetched(func(rec *record.Record) { rec.Absent, rec.Flags = now, 0 })}, keepAbsent},
			"linked":             {[]record.Record{fetched(func(rec *record.Record) { rec.Flags = 0 })}, expire - day + 1},
			"linked long ago":    {[]record.Record{fetched(func(rec *record.Record) { rec.Flags, rec.Linked = 0, now-expire })}, day},
			"the front page":     {[]record.Record{fetched(func(rec *record.Record) { rec.Path, rec.Flags, rec.Linked = "/", 0, 0 })}, maxAhead},
		} {
			if got := r.chunkDue(test.records) - now; got != test.want {
				t.Errorf("%s: due in %d seconds, want %d", name, got, test.want)
			}
		}
	})
}

// TestUntold: a page that is gone is kept until search engines were told, for a week at most.
func TestUntold(t *testing.T) {
	const now = 100 * day
	for _, test := range []struct {
		told, moved int64
		isOver      bool
	}{
		{now - day, 0, true},
		{now - day, now, false},
		{now - day, now - day, true},
		{now - 8*day, now - week + 1, false},
		{now - 8*day, now - week, true},
		{0, now, true}, // nobody is told
	} {
		r := New(Options{}).Start(nil, Policy{Links: true, Scope: "/", Told: test.told})
		rec := &record.Record{Path: "/a", Status: 404, Moved: record.Unix32(test.moved)}
		if got := r.isOver(rec, now); got != test.isOver {
			t.Errorf("%+v: got %t", test, got)
		}
	}
}

// TestNoTurn: a request that took no turn, as the site itself was thought to respond, counts as one that did.
func TestNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2, 1)
		l.record(schedule.Named, new(cooldown), 100*time.Millisecond, response(200))
		if wait := time.Until(l.Next()); wait != 400*time.Millisecond {
			t.Errorf("the next one may begin after %s, want 400ms", wait)
		}
	})
}

// TestLimiterClockSetBack: no request waits for a time that only a clock gave that was years ahead.
func TestLimiterClockSetBack(t *testing.T) {
	for name, test := range map[string]struct {
		rate    float64
		ahead   time.Duration
		isReset bool
	}{
		"years":                    {1, 135 * 365 * 24 * time.Hour, true},
		"more than any limit":      {1, wait.MaxRetryAfter + time.Second, true},
		"a limit":                  {1, wait.MaxRetryAfter, false},
		"the longest of a rate":    {1e-6, 1e6 * time.Second, false},
		"more than that of a rate": {1e-6, (1e6 + 1) * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			for ask, pause := range map[string]func(l *Limiter) time.Duration{
				"turn": func(l *Limiter) time.Duration {
					begun := time.Now()
					l.AwaitTurn(t.Context(), schedule.Named)
					return time.Since(begun)
				},
				"Next": func(l *Limiter) time.Duration { return time.Until(l.Next()) },
			} {
				l := NewLimiter(test.rate, 1)
				l.next = time.Now().Add(test.ahead)
				want := test.ahead
				if test.isReset {
					want = 0
				}
				if got := pause(l); got != want {
					t.Errorf("%s: %s: got %s, want %s", name, ask, got, want)
				}
			}
		})
	}
}

// TestDo: a request besides those of a crawl takes a turn and a slot, and its response counts.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2, 1)
		c := New(Options{Limiter: l, Once: true})
		begun := time.Now()
		for i, test := range []struct {
			resp *Response
			want time.Duration
		}{{response(200), 0}, {response(503), time.Second / 2}, {response(200), time.Minute + time.Second/2}} {
			test.resp.Made = true
			resp, ok, err := c.Do(t.Context(), Single{Path: "/page"}, func() (*Response, error) {
				if got := time.Since(begun); got != test.want {
					t.Errorf("request %d began after %s, want %s", i, got, test.want)
				}
				if l.free[bySettings] != 0 {
					t.Errorf("request %d has no slot", i)
				}
				return test.resp, nil
			})
			if resp != test.resp || !ok || err != nil || l.free[bySettings] != 1 {
				t.Errorf("request %d: got %v, %t, %v", i, resp, ok, err)
			}
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, ok, _ := c.Do(soon, Single{Path: "/page"}, func() (*Response, error) { t.Error("it came before its turn"); return nil, nil }); ok || l.free[bySettings] != 1 {
			t.Error("there was a turn")
		}
	})
}

// TestRanksShareThePace: whatever hosts visitors make up, and however many, a named site of the handler keeps half of the
// pace, and a known one most of the rest.
func TestRanksShareThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		var turns [3]atomic.Int32
		var group sync.WaitGroup
		for of, sites := range map[schedule.Rank]int{schedule.Named: 1, schedule.Known: 2, schedule.Fresh: 200} {
			for range sites {
				group.Go(func() {
					for l.AwaitTurn(ctx, of) {
						turns[of].Add(1)
					}
				})
			}
		}
		group.Wait()
		named, known, fresh := turns[schedule.Named].Load(), turns[schedule.Known].Load(), turns[schedule.Fresh].Load()
		if named < 98 || known < 58 || fresh < 18 || named+known+fresh > 181 {
			t.Errorf("got %d, %d and %d turns, want 100, 60 and 20", named, known, fresh)
		}
	})
}

// TestHangingHost: a host that visitors named, and whose upstream hangs, holds up neither named sites nor others for longer
// than its requests take.
func TestHangingHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2, 1)
		var own cooldown
		l.Take(t.Context(), schedule.Fresh, nil)
		begun := time.Now()
		for i, want := range []time.Duration{time.Second / 2, time.Second, 3 * time.Second / 2} {
			if !l.AwaitTurn(t.Context(), schedule.Named) || time.Since(begun) != want {
				t.Errorf("named request %d begins after %s, want %s", i, time.Since(begun), want)
			}
		}
		time.Sleep(10*time.Second - time.Since(begun))
		l.record(schedule.Fresh, &own, 10*time.Second, nil)
		l.Release(schedule.Fresh)
		if !l.AwaitTurn(t.Context(), schedule.Known) || time.Since(begun) != 10*time.Second {
			t.Errorf("another host has its turn after %s, want 10s", time.Since(begun))
		}
		if left := time.Until(l.nextOf(&own)); left != 20*time.Second {
			t.Errorf("the one that hangs is left alone for %s, want 20s", left)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if l.awaitCooldown(soon, &own) || time.Since(begun) != 10*time.Second {
			t.Error("it is waited for in vain")
		}
		// That an upstream asks for a pause is believed of any host: they may all be those of one application.
		l.record(schedule.Fresh, &own, 0, response(http.StatusTooManyRequests))
		if left := time.Until(l.Next()); left != time.Minute {
			t.Errorf("after a 429: all wait for %s, want a minute", left)
		}
	})
}

// timed notes when fetches began.
type timed struct {
	Fetcher
	mu    sync.Mutex
	begun []time.Time
}

func (f *timed) Fetch(ctx context.Context, r Request) (*Response, error) {
	f.mu.Lock()
	f.begun = append(f.begun, time.Now())
	f.mu.Unlock()
	return f.Fetcher.Fetch(ctx, r)
}

// TestOnePace: a hundred sites of one application are asked at one pace, and the time that they wait for one
// another, or for a slot to compute, is not taken for the upstream's slowness.
func TestOnePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sites, interval = 100, 100 * time.Millisecond
		timed := &timed{Fetcher: &static{made: true, pages: map[string]string{"/a": "", "/b": ""}}}
		slots, limiter := wait.NewSlots(1), NewLimiter(10, 4)
		slots.Take(t.Context()) // another site computes
		time.AfterFunc(10*time.Second, slots.Release)
		var group sync.WaitGroup
		for range sites {
			gen := empty(t)
			group.Go(func() {
				c := New(Options{Fetcher: timed, Slots: slots, Limiter: limiter})
				crawlAll(t, c, gen, plain, page.Page{Path: "/a"}, page.Page{Path: "/b"})
			})
		}
		group.Wait()
		if len(timed.begun) != 2*sites {
			t.Fatalf("got %d requests", len(timed.begun))
		}
		for i, at := range timed.begun[1:] {
			if pause := at.Sub(timed.begun[i]).Round(time.Millisecond); pause != interval {
				t.Errorf("request %d began %s after the one before, want %s", i+1, pause, interval)
			}
		}
	})
}

// TestWhoResponds: that both the site itself and an upstream have responded is not forgotten, whichever came first.
func TestWhoResponds(t *testing.T) {
	for range 10_000 {
		c := New(Options{})
		var group sync.WaitGroup
		for _, made := range []bool{false, true} {
			group.Go(func() { c.setMade(&record.Record{Path: "/"}, made) })
		}
		if group.Wait(); !c.own.Load() || !c.upstream.Load() {
			t.Fatalf("own %t, upstream %t, want both", c.own.Load(), c.upstream.Load())
		}
	}
}
