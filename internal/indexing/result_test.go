package indexing

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

func TestStatusTable(t *testing.T) {
	names := make(map[string]bool)
	for s := range StatusCount {
		if s.String() == "" || s.Explanation() == "" || (s.Remedy() == "") != (s == Indexable) || names[s.String()] {
			t.Errorf("%d: got %q, %q, %q", s, s, s.Explanation(), s.Remedy())
		}
		names[s.String()] = true
	}
}

// noticing are the usual rules of a site that was crawled once, of which somebody is told.
func noticing() Options {
	r := rules()
	r.Notices = Notices{Now: 1000, Told: 1, Behind: 1, IsKnown: true}
	return r
}

// moves returns of which pages something is told, and forgets it.
func moves(t *testing.T, g *record.Generation) (all []string, forgotten []record.Record) {
	t.Helper()
	records := load(t, g)
	for i := range records {
		r := &records[i]
		if r.Moved != 0 {
			all = append(all, r.Path+map[bool]string{true: " added"}[r.Turned && r.Selected.Listed]+map[bool]string{false: " removed"}[r.Selected.Listed])
		}
		r.Moved = 0
		r.Turned = false
	}
	return all, records
}

func TestChanges(t *testing.T) {
	records := recs("/a file =1 mod:day0; /b file =2 mod:day0+24h; /c; /d file =4 mod:day0+72h; /e 404; /f; /g 401; /h; /i file =9 mod:day0+200h")
	for i := range records {
		set(&records[i], "first:day0")
	}
	_, res := run(t, generation(t, 2, records), rules())
	if c := res.Changes; c != (Changes{Added: 7}) || res.Before != 0 {
		t.Fatalf("got %+v", res)
	}
	records = load(t, res.Generation)
	for i, change := range []string{"changed:day0+4800h mod:day0+4800h", "mod:day0+25h", "401", "declared:day0+4824h", "200", "410", "", "disallowed", "absent:day0"} {
		set(&records[i], change)
	}
	for _, keep := range []bool{false, true} {
		r := noticing()
		r.KeepListed = keep
		pages, res := run(t, generation(t, 2, slices.Clone(records)), r)
		want := Changes{Added: 1, Changed: 2, Removed: 4}
		told := []string{"/a", "/c removed", "/d", "/e added", "/f removed", "/i removed"} // and not /h, which is disallowed
		listed := "/a/b/d/e"
		if keep {
			want.Removed = 2
			told = []string{"/a", "/c removed", "/d", "/e added"}
			listed = "/a/b/d/e/f/i"
		}
		if got, _ := moves(t, res.Generation); res.Changes != want || !slices.Equal(got, told) {
			t.Errorf("keeping %t: got %+v, told %q", keep, res.Changes, got)
		}
		if res.Regressed != [StatusCount]int{NotFound: 1, Absent: 1} || res.Before != 7 {
			t.Errorf("keeping %t: got %v of %d", keep, res.Regressed, res.Before)
		}
		got := ""
		for _, p := range pages {
			got += p.Path
		}
		if got != listed {
			t.Errorf("keeping %t: got %s", keep, got)
		}
	}
}

// TestGone: for which reasons a page is gone that was listed.
func TestGone(t *testing.T) {
	specs := "/a 404; /b 410; /c 401; /d 301; /e refresh; /f tagged; /g noindex; /h absent; /i blocked; /j ->https://example.org/; /k soft; /l part; /m 503; /n"
	records := recs(specs)
	for i := range records {
		records[i].Selected.Listed = true
	}
	r := noticing()
	r.Filter = func(p *page.Page) string { return map[bool]string{true: "excluded"}[p.Path == "/n"] }
	_, res := run(t, generation(t, 9, records), r)
	told, _ := moves(t, res.Generation)
	got := strings.ReplaceAll(strings.Join(told, ""), " removed", "")
	if got != "/a/b/c/d/e/f/g/h" || res.Changes.Removed != 14 {
		t.Errorf("gone: %s of %+v", got, res.Changes)
	}
}

// A page that is kept keeps its date, too. While it returns an error, the date of its text is not decided.
func TestKeptDate(t *testing.T) {
	for keep, want := range map[bool]string{false: "404", true: "404 listed lastmod:day0+1h day"} {
		now := rec("/a 404 listed lastmod:day0+1h day text:day0 dated:day0 changed:day0+2h file mod:day0+3h declared:day0+4h")
		want := rec("/a text:day0 dated:day0 " + want)
		r := rules()
		r.KeepListed = keep
		pages, res := run(t, generation(t, 9, []record.Record{now}), r)
		if got := load(t, res.Generation)[0].Selected; got != want.Selected || (len(pages) == 1) != keep {
			t.Errorf("keeping %t: got %+v, want %+v", keep, got, want.Selected)
		}
	}
}

// TestChunksAreKept: chunks in which nothing changed are kept, and others keep digest and due time.
func TestChunksAreKept(t *testing.T) {
	var records []record.Record
	for i := range 12_000 {
		records = append(records, rec(fmt.Sprintf("/%06d", i)))
	}
	digest := func(first, _ string) uint64 { return hash(first) | 1 }
	w := generation(t, 9, nil).Writer()
	w.Put("", records, digest, func(r []record.Record) int64 { return int64(len(r)) })
	g, err := w.Generation()
	if err != nil || len(g.Chunks()) < 6 {
		t.Fatalf("%d chunks, %v", len(g.Chunks()), err)
	}
	_, res := run(t, g, rules())
	first := res.Generation
	for i, c := range first.Chunks() {
		if was := g.Chunks()[i]; c.First != was.First || c.Digest != was.Digest || c.Due > was.Due {
			t.Errorf("chunk %d: got %+v, was %+v", i, c, was)
		}
	}
	changed := first.Chunks()[2].First
	r := rules()
	r.Filter = func(p *page.Page) string {
		if strings.HasPrefix(p.Path, changed) {
			return "excluded"
		}
		return ""
	}
	_, res = run(t, first, r)
	for i, c := range res.Generation.Chunks() {
		if was := first.Chunks()[i]; (c == was) == (i == 2) || c.Digest != was.Digest || c.Due != was.Due {
			t.Errorf("chunk %d: got %+v, was %+v", i, c, was)
		}
	}

	// A small chunk is joined with the next, and is due no later for that.
	w = g.Writer()
	w.Put("", records[:10], digest, func([]record.Record) int64 { return 1 })
	for i := range g.Chunks()[1:] {
		w.Keep(i + 1)
	}
	if g, err = w.Generation(); err != nil {
		t.Fatal(err)
	}
	_, res = run(t, g, rules())
	if got := res.Generation.Chunks()[0]; got.Count <= 10 || got.Due != 1 {
		t.Errorf("joined: got %+v", got)
	}
}

func TestHints(t *testing.T) {
	records := recs("/a; /b")
	records[0].ChangeFreq = 3
	records[1].Priority = 4
	r := rules()
	r.Hints = func(p *page.Page) { p.Priority += 2 }
	pages, _ := run(t, generation(t, 9, records), r)
	if pages[0].ChangeFreq != 3 || pages[0].Priority != 2 || pages[1].Priority != 6 {
		t.Errorf("got %+v", pages)
	}
}

// TestExtensions: what is known of a page is listed if it is wanted.
func TestExtensions(t *testing.T) {
	records := recs("/; /x.md; /y.md 404; /z.md")
	for i := range records[1:] {
		records[1+i].Flags = record.Image
	}
	home := &records[0]
	home.Alternates = alternates("en=/")
	home.Images = []string{"https://example.org/x.png"}
	home.Listed = &page.Extensions{Videos: []string{"<video:title>v</video:title>"}}
	home.Title = "t"
	home.Description = "d"
	home.Depth = 2
	home.Article = &record.Article{Published: 86400, PublishedDay: true, Headline: "h", Lang: "de"}
	for name, test := range map[string]struct {
		extract  html.Options
		depths   bool
		markdown string
		want     page.Extensions
	}{
		"nothing":              {markdown: "/x.md"},
		"alternates":           {extract: html.Options{Alternates: true}, want: page.Extensions{Alternates: home.Alternates}},
		"images":               {extract: html.Options{Images: true}, want: page.Extensions{Images: home.Images}},
		"videos":               {extract: html.Options{Videos: true}, want: page.Extensions{Videos: home.Listed.Videos}},
		"titles":               {extract: html.Options{Titles: true}, want: page.Extensions{Title: "t"}},
		"descriptions":         {extract: html.Options{Descriptions: true}, want: page.Extensions{Description: "d"}},
		"Markdown":             {extract: html.Options{Markdown: true}, markdown: "/x.md", want: page.Extensions{Markdown: origin + "/x.md"}},
		"Markdown elsewhere":   {extract: html.Options{Markdown: true}, markdown: "https://o.example/b.md"},
		"Markdown, gone":       {extract: html.Options{Markdown: true}, markdown: "/y.md"},
		"Markdown, excluded":   {extract: html.Options{Markdown: true}, markdown: "/z.md"},
		"Markdown, not looked": {extract: html.Options{Markdown: true}, markdown: "/w.md"},
		"articles":             {extract: html.Options{Articles: true}, want: page.Extensions{Published: 86400, PublishedDay: true, Headline: "h", Lang: "de"}},
		"depths":               {depths: true, want: page.Extensions{Depth: 2}},
	} {
		r := rules()
		r.Filter = func(p *page.Page) string { return strings.Repeat("excluded", strings.Count(p.Path, "/z.md")) }
		r.Extract = test.extract
		r.Depths = test.depths
		home.Markdown = test.markdown
		pages, _ := run(t, generation(t, 9, slices.Clone(records)), r)
		var got page.Extensions
		if e := pages[0].Extensions; e != nil {
			got = *e
		}
		if len(pages) != 1 || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// TestImages: an image of the site is listed once it has answered 200 with an image, and is no
// page; others are listed as pages name them.
func TestImages(t *testing.T) {
	records := recs("/; /a.png image; /b.png image 404; /c.png image; /d.png image blocked; /x/e.png image")
	records[3].Flags |= record.HTML | record.Document
	for _, path := range []string{"/a.png", "/b.png", "/c.png", "/d.png", "/x/e.png", "/f.png"} {
		records[0].Images = append(records[0].Images, origin+path)
	}
	records[0].Images = append(records[0].Images, "https://cdn.example/g.png")
	for scope, want := range map[string]string{"/": "/a.png /x/e.png", "/x/": "/a.png /b.png /c.png /d.png /x/e.png /f.png"} {
		r := rules()
		r.Extract.Images = true
		r.Scope = scope
		pages, res := run(t, generation(t, 9, records), r)
		got := strings.ReplaceAll(strings.Join(pages[0].Extensions.Images, " "), origin, "")
		if got != want+" https://cdn.example/g.png" {
			t.Errorf("scope %s: got %s, want %s", scope, got, want)
		}
		if len(pages) != 1 || res.LeftOut[NotHTML].Count+res.LeftOut[NotFound].Count != 0 {
			t.Errorf("scope %s: got %d pages, and left out %v", scope, len(pages), res.LeftOut)
		}
	}
}

func TestOrphans(t *testing.T) {
	specs := "/; /a; /b linked; /c expired; /d; /e; /home seed; /i/ =1; /i/index.html =1 discovered linked; /j 404; /k.pdf binary"
	_, res := run(t, generation(t, 4, recs(specs)), rules())
	if res.Orphans.Count != 5 || !slices.Equal(res.Orphans.First, []string{"/a", "/c", "/d"}) {
		t.Errorf("got %+v", res.Orphans)
	}
}

func TestExplain(t *testing.T) {
	records := recs("/ =1; /a ->/b; /b =2 linked; /B/ =2; /c ->https://example.org/; /d 301; /e refresh; /f 404; /g 404 listed; /index.html =1; /l =3; /l?page=1 =3; /o discovered expired")
	records[slices.IndexFunc(records, func(r record.Record) bool { return r.Path == "/d" })].Target = "/moved"
	g := generation(t, 3, records)
	for path, want := range map[string]string{
		"/": "indexable true ", "/a": "canonical is another page false /b", "/B/": "duplicate false /b", "/c": "canonical on another site false https://example.org/",
		"/d": "redirect false /moved", "/e": "refresh false /elsewhere", "/f": "not found false ", "/g": "not found true ", "/index.html": "duplicate false /",
		"/l?page=1": "duplicate false /l", "/o": "no incoming links false ", "/nothing": "unknown", "": "unknown",
	} {
		r := rules()
		r.KeepListed = true
		x, err := Explain(t.Context(), g, r, path)
		got := fmt.Sprint(x.Status, x.Listed, " ", x.Other)
		if x.Record == nil {
			got = "unknown"
		} else if x.Record.Path != path {
			t.Errorf("%s: got %+v", path, x)
		}
		if got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", path, got, err, want)
		}
	}
}

// A reader that stops leaves no half selection behind.
func TestStops(t *testing.T) {
	s, err := Select(t.Context(), generation(t, 2, recs("/a; /b; /c; /d; /e")), rules())
	if err != nil {
		t.Fatal(err)
	}
	for range s.Pages(t.Context()) {
		break
	}
	if s.Result().Generation != nil {
		t.Error("there is a generation")
	}
	pages, res := run(t, generation(t, 2, nil), rules())
	if len(pages) != 0 || res.Generation == nil || res.Generation.Len() != 0 {
		t.Errorf("without records: got %v, %+v", pages, res)
	}
}

// failing is a storage that fails to load chunks, or loads damaged ones.
type failing struct {
	record.Storage
	err    error
	damage bool
}

func (f *failing) Load(ctx context.Context, key string) ([]byte, error) {
	value, err := f.Storage.Load(ctx, key)
	if f.damage {
		value = value[:len(value)/2]
	}
	return value, errors.Join(err, f.err)
}

// What cannot be read is an error in both readings, and is not taken for pages that are
// gone.
func TestUnreadableChunk(t *testing.T) {
	broken := errors.New("input/output error")
	for name, test := range map[string]struct {
		breaks func(f *failing, g *record.Generation)
		want   error // of the first reading
	}{
		"error":   {func(f *failing, _ *record.Generation) { f.err = broken }, broken},
		"damage":  {func(f *failing, _ *record.Generation) { f.damage = true }, record.ErrDamaged},
		"emptied": {func(f *failing, g *record.Generation) { f.damage = true; _, _ = g.Load(t.Context(), 0) }, nil},
	} {
		f := &failing{Storage: record.NewMemory()}
		stored := record.New(f, "")
		if err := stored.Open(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		w := stored.Last().Writer()
		w.Put("", recs("/a; /b; /c"), nil, nil)
		g, err := w.Generation()
		if err == nil {
			err = stored.Commit(t.Context(), g)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := Select(t.Context(), g, rules())
		if err != nil {
			t.Fatal(err)
		}
		test.breaks(f, g)
		if test.want != nil {
			if _, err := Select(t.Context(), g, rules()); !errors.Is(err, test.want) {
				t.Errorf("%s, before: got %v", name, err)
			}
		}
		n := 0
		for _, err = range s.Pages(t.Context()) {
			n++
		}
		if n != 1 || err == nil || s.Result().Generation != nil {
			t.Errorf("%s: got %v, %d values", name, err, n)
		}
	}
}

// TestTold: whether a page itself has changed, which is told, or only which of its dates counts. A change of which a list tells
// counts at once, and not again as the text is confirmed. One of which no date tells counts then.
func TestTold(t *testing.T) {
	// The page was fetched after ten days, and is after eleven.
	const (
		file    = "file mod:day0+2000s declared:day0+1000s"
		dated   = "mod:day0+240h5s"
		doubt   = " before:day0+240h fetched:day0+264h found:day0+264h doubt"
		settled = " before:day0+240h fetched:day0+264h1m changed:day0+1s steady"
	)
	for name, test := range map[string]struct {
		was, is Mode
		first   string
		steps   []string // what changes, and what comes of it
	}{
		"nothing":                                     {Auto, Auto, file, []string{" | "}},
		"another text, the same date":                 {Auto, Auto, file, []string{"changed:day0+1s | told"}},
		"another text and date":                       {Auto, Auto, file, []string{"changed:day0+1s declared:day0+3000s | told"}},
		"another text before its first date":          {Auto, Auto, file, []string{"changed:day0+1s declared:day0+3000s dated: | told"}},
		"its first date":                              {Auto, Auto, file, []string{"declared:day0+3000s dated: | "}},
		"another date":                                {Auto, Auto, file, []string{"declared:day0+3000s | told"}},
		"an earlier date":                             {Auto, Auto, file, []string{"declared:day0+500s | "}},
		"its date is gone":                            {Auto, Auto, file, []string{"declared: | "}},
		"a file written anew":                         {ModTime, ModTime, file, []string{"mod:day0+3000s | counted"}},
		"a file with another text":                    {ModTime, ModTime, file, []string{"changed:day0+1s mod:day0+3000s | told"}},
		"another file without a text":                 {ModTime, ModTime, file, []string{"mod:day0+3000s first: text: dated: | told"}},
		"no dates any more":                           {Auto, Off, file, []string{" | counted"}},
		"dates count again":                           {Off, Auto, file, []string{" | counted"}},
		"files' times count":                          {Auto, ModTime, file, []string{" | counted"}},
		"declared dates count again":                  {ModTime, Auto, file, []string{" | counted"}},
		"files' times count, and the file is another": {Auto, ModTime, file, []string{"mod:day0+3000s | counted"}},
		"files' times count, and the text is another": {Auto, ModTime, file, []string{"changed:day0+1s mod:day0+3000s | told"}},

		"told, then fetched":      {Auto, Auto, "mod:day0", []string{dated + " | told", doubt + " | ", settled + " | "}},
		"told and fetched":        {Auto, Auto, "mod:day0", []string{dated + doubt + " | ", settled + " | told"}},
		"told, and the text same": {Auto, Auto, "mod:day0", []string{dated + " | told", "fetched:day0+264h | "}},
		"told an old date":        {Auto, Auto, "mod:day0", []string{"mod:day0+239h" + doubt + " | ", settled + " | told"}},
		"not told":                {Auto, Auto, "mod:day0", []string{doubt + " | ", settled + " | told"}},
		"a first date":            {Auto, Auto, "mod:", []string{dated + " | told", doubt + " | ", settled + " | "}},
		"a first date, in doubt":  {Auto, Auto, "mod:", []string{dated + doubt + " | ", settled + " | told"}},
		"a first date, of before": {Auto, Auto, "mod:", []string{"mod:day0+239h | counted", doubt + " | ", settled + " | told"}},
	} {
		records := recs("/a first:day0 fetched:day0+240h " + test.first)
		r := noticing()
		r.Dates = test.was
		_, res := run(t, generation(t, 1, records), r)
		r.Dates = test.is
		for i, step := range test.steps {
			change, want, _ := strings.Cut(step, " | ")
			_, records = moves(t, res.Generation)
			set(&records[0], change)
			_, res = run(t, generation(t, 1, records), r)
			told, _ := moves(t, res.Generation)
			got := ""
			switch {
			case len(told) > 0:
				got = "told"
			case res.Changes.Changed > 0:
				got = "counted"
			}
			if got != want {
				t.Errorf("%s, step %d: got %q, want %q", name, i, got, want)
			}
		}
	}
}

// TestDescriptionsOfLargeSites: a site has all of its descriptions, or is too large for any.
func TestDescriptionsOfLargeSites(t *testing.T) {
	for n, isKept := range map[int]bool{maxDescribed: true, maxDescribed + 1: false} {
		records := make([]record.Record, n)
		for i := range records {
			records[i] = record.Record{Path: fmt.Sprintf("/%05d", i), Flags: record.Named, Status: 200, Fetched: 1, Description: "d"}
			records[i].Flags |= record.HTML | record.Document
		}
		r := rules()
		r.Extract.Descriptions = true
		pages, res := run(t, generation(t, 1000, records), r)
		for i, record := range load(t, res.Generation) {
			isShown := pages[i].Extensions != nil
			if isShown != isKept || (record.Description != "") != isKept {
				t.Fatalf("of %d pages, one is described: %t, and in its record %q", n, isShown, record.Description)
			}
		}
	}
}
