package indexing

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
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

func TestExpectsHTML(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/": true, "/a.d/b": true, "/a.html": true, "/a.HTM": true, "/a.php?x=1.pdf": true, "/v1.2/": true,
		"/a.pdf": false, "/a.txt": false, "/v1.2": false, "/a.b/c.svg": false, "/.well-known/x": true, "/a.": false, "/a?b.pdf": true,
	} {
		if got := expectsHTML(path); got != want {
			t.Errorf("%s: got %t, want %t", path, got, want)
		}
	}
}

// noticing are the usual rules of a site that was crawled once, of which somebody is told.
func noticing() Options {
	r := rules()
	r.Notices = Notices{Now: 1000, Told: 1, Behind: 1, IsKnown: true}
	return r
}

// moves returns of which pages something is told, and forgets it.
func moves(t *testing.T, g *store.Generation) (all []string, forgotten []store.Record) {
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
	g := generation(t, 2, recs("/a file =1; /b file =2; /c; /d file =4; /e 404; /f; /g 401; /h; /i file =9"))
	edit := func(g *store.Generation, change func(r *store.Record)) *store.Generation {
		records := load(t, g)
		for i := range records {
			change(&records[i])
		}
		return generation(t, 2, records)
	}
	g = edit(g, func(r *store.Record) {
		if r.Version != 0 {
			r.First, r.ModTime = 7, day0+int64(r.Path[1])*day
		}
	})
	_, res := run(t, g, rules())
	if c := res.Changes; c != (Changes{Added: 7}) || res.Before != 0 {
		t.Fatalf("got %+v", res)
	}
	g = edit(res.Generation, func(r *store.Record) {
		switch r.Path {
		case "/a": // another text
			r.Changed, r.ModTime = day0+200*day, day0+200*day
		case "/b": // written anew
			r.ModTime = day0 + 98*day + 500
		case "/c":
			r.Status = 401
		case "/d":
			r.Declared = day0 + 201*day
		case "/e":
			r.Status = 200
		case "/f":
			r.Status = 410
		case "/h":
			r.Flags |= store.Disallowed
		case "/i":
			r.Absent = day0
		}
	})
	for _, keep := range []bool{false, true} {
		r := noticing()
		r.KeepListed = keep
		_, res := run(t, g, r)
		changes := Changes{Added: 1, Changed: 2, Removed: 4}
		told := []string{"/a", "/c removed", "/d", "/e added", "/f removed", "/i removed"} // and not /h, which is disallowed
		if keep {
			changes.Removed = 2
			told = []string{"/a", "/c removed", "/d", "/e added"}
		}
		if got, _ := moves(t, res.Generation); res.Changes != changes || !slices.Equal(got, told) {
			t.Errorf("keeping %t: got %+v, told %q", keep, res.Changes, got)
		}
		want := [StatusCount]int{NotFound: 1, Absent: 1}
		if res.Regressed != want || res.Before != 7 {
			t.Errorf("keeping %t: got %v of %d", keep, res.Regressed, res.Before)
		}
		selected := make(map[string]bool)
		for _, r := range load(t, res.Generation) {
			selected[r.Path] = r.Selected.Listed
		}
		if want := map[string]bool{"/a": true, "/b": true, "/c": false, "/d": true, "/e": true, "/f": keep, "/g": false, "/h": false, "/i": keep}; !reflect.DeepEqual(selected, want) {
			t.Errorf("keeping %t: got %v", keep, selected)
		}
	}
}

// TestOwn: whether a page itself has changed, or only which of its dates counts.
func TestOwn(t *testing.T) {
	const declared, modified, later = day0 + 1000, day0 + 2000, day0 + 3000
	for name, test := range map[string]struct {
		was, is Mode
		change  func(r *store.Record)
		want    string // the change of the page
	}{
		"nothing":                                     {Auto, Auto, func(*store.Record) {}, ""},
		"another text, the same date":                 {Auto, Auto, func(r *store.Record) { r.Changed = 8 }, "own"},
		"another text and date":                       {Auto, Auto, func(r *store.Record) { r.Changed, r.Declared = 8, later }, "own"},
		"another text before its first date":          {Auto, Auto, func(r *store.Record) { r.Changed, r.Declared, r.Selected.Dated = 8, later, 0 }, "own"},
		"its first date":                              {Auto, Auto, func(r *store.Record) { r.Declared, r.Selected.Dated = later, 0 }, ""},
		"another date":                                {Auto, Auto, func(r *store.Record) { r.Declared = later }, "own"},
		"an earlier date":                             {Auto, Auto, func(r *store.Record) { r.Declared = declared - 500 }, ""},
		"its date is gone":                            {Auto, Auto, func(r *store.Record) { r.Declared = 0 }, ""},
		"a file written anew":                         {ModTime, ModTime, func(r *store.Record) { r.ModTime = later }, "other"},
		"a file with another text":                    {ModTime, ModTime, func(r *store.Record) { r.Changed, r.ModTime = 8, later }, "own"},
		"another file without a text":                 {ModTime, ModTime, func(r *store.Record) { r.ModTime, r.First, r.Selected.Text, r.Selected.Dated = later, 0, 0, 0 }, "own"},
		"no dates any more":                           {Auto, Off, func(*store.Record) {}, "other"},
		"dates count again":                           {Off, Auto, func(*store.Record) {}, "other"},
		"files' times count":                          {Auto, ModTime, func(*store.Record) {}, "other"},
		"declared dates count again":                  {ModTime, Auto, func(*store.Record) {}, "other"},
		"files' times count, and the file is another": {Auto, ModTime, func(r *store.Record) { r.ModTime = later }, "other"},
		"files' times count, and the text is another": {Auto, ModTime, func(r *store.Record) { r.Changed, r.ModTime = 8, later }, "own"},
	} {
		records := recs("/a file =1; /b file =2; /c file =3; /d file =4; /e file =5")
		for i := range records {
			r := &records[i]
			r.First, r.ModTime = 7, modified+int64(i)*day
			r.Declared = declared + int64(i)*day
		}
		r := noticing()
		r.Dates = test.was
		_, res := run(t, generation(t, 9, records), r)
		records = load(t, res.Generation)
		test.change(&records[0])
		r.Dates = test.is
		_, res = run(t, generation(t, 9, records), r)
		told, _ := moves(t, res.Generation)
		got := ""
		switch {
		case slices.Equal(told, []string{"/a"}):
			got = "own"
		case res.Changes.Changed > 0:
			got = "other"
		}
		if got != test.want || len(told) > 1 {
			t.Errorf("%s: got %q, want %q, told %q", name, got, test.want, told)
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
	r := rec("/a 404 listed")
	r.Selected = store.Selected{Listed: true, LastMod: 5, Day: true, Text: 6, Dated: 7}
	r.Changed, r.ModTime, r.Version, r.Declared = 8, day0, 1, day0+5
	rules := rules()
	_, res := run(t, generation(t, 9, []store.Record{r}), rules)
	if got := load(t, res.Generation)[0].Selected; got != (store.Selected{Text: 6, Dated: 7}) {
		t.Errorf("not kept: got %+v", got)
	}
	rules.KeepListed = true
	pages, res := run(t, generation(t, 9, []store.Record{r}), rules)
	if len(pages) != 1 || pages[0].LastMod != 5 || !pages[0].LastModDay || load(t, res.Generation)[0].Selected != r.Selected {
		t.Errorf("got %+v", pages)
	}
}

// Chunks in which nothing changed are kept with their digests; others keep digest and due
// time where that is possible.
func TestChunksAreKept(t *testing.T) {
	var records []store.Record
	for i := range 12_000 {
		records = append(records, rec(fmt.Sprintf("/%06d", i)))
	}
	digest := func(first, _ string) uint64 { return hash(first) | 1 }
	w := generation(t, 9, nil).Writer()
	w.Put("", records, digest, func(r []store.Record) int64 { return int64(len(r)) })
	g, err := w.Generation()
	if err != nil || len(g.Chunks()) < 6 {
		t.Fatalf("%d chunks, %v", len(g.Chunks()), err)
	}
	chunks := func(g *store.Generation) (all []string) {
		for _, c := range g.Chunks() {
			all = append(all, fmt.Sprint(c.First, c.Count, c.Digest))
		}
		return all
	}
	_, res := run(t, g, rules())
	first := res.Generation
	if got, want := chunks(first), chunks(g); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, c := range first.Chunks() {
		if least := g.Chunks()[i].Due; c.Due > least {
			t.Errorf("chunk %d is due at %d, was at %d", i, c.Due, least)
		}
	}
	_, res = run(t, first, rules())
	if !reflect.DeepEqual(res.Generation.Chunks(), first.Chunks()) {
		t.Error("nothing changed, and chunks differ")
	}
	one := first.Chunks()[2].First
	r := rules()
	r.Filter = func(p *page.Page) string {
		return strings.Repeat("excluded", len(p.Path)-len(strings.TrimPrefix(p.Path, one)))
	}
	_, res = run(t, first, r)
	for i, c := range res.Generation.Chunks() {
		if was := first.Chunks()[i]; (c == was) == (i == 2) || c.Digest != was.Digest || c.Due != was.Due {
			t.Errorf("chunk %d of %s: got %+v, was %+v", i, one, c, was)
		}
	}

	// A small chunk is joined with the next, and is due no later for that.
	w = g.Writer()
	w.Put("", records[:10], digest, func([]store.Record) int64 { return 1 })
	for i := range g.Chunks()[1:] {
		w.Keep(i + 1)
	}
	if g, err = w.Generation(); err != nil {
		t.Fatal(err)
	}
	_, res = run(t, g, rules())
	if got := res.Generation.Chunks(); got[0].Count <= 10 || got[0].Due != 1 || got[0].Digest != g.Chunks()[0].Digest+g.Chunks()[1].Digest && got[0].Count > g.Chunks()[1].Count {
		t.Errorf("joined: got %+v of %+v", got[0], g.Chunks()[:2])
	}
}

func TestExtensionsAndHints(t *testing.T) {
	alternates := func(pairs ...string) (list []page.Alternate) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, page.Alternate{Lang: pairs[i], URL: pairs[i+1]})
		}
		return list
	}
	both := alternates("en", origin+"/en", "de", origin+"/de")
	for _, test := range []struct {
		name   string
		en, de []page.Alternate
		mutual bool
	}{
		{"the same", both, both, true},
		{"one lists nothing", both, nil, false},
	} {
		records := recs("/de; /en; /none")
		records[0].Alternates, records[1].Alternates, records[1].Images = test.de, test.en, []string{"/x.png"}
		records[0].ChangeFreq, records[1].Priority = 3, 4
		r := rules()
		r.Extract.Alternates = true
		r.Hints = func(p *page.Page) { p.Priority += 2 }
		pages, res := run(t, generation(t, 9, records), r)
		en := pages[1].Extensions
		if got := en != nil && reflect.DeepEqual(en.Alternates, test.en); got != test.mutual || en != nil && en.Images != nil || pages[2].Extensions != nil {
			t.Errorf("%s: got %+v", test.name, en)
		}
		if res.AlternatesLeftOut.Count > 0 == test.mutual || pages[0].ChangeFreq != 3 || pages[0].Priority != 2 || pages[1].Priority != 6 {
			t.Errorf("%s: got %+v, %+v", test.name, res.AlternatesLeftOut, pages)
		}
		records[1].Title = "x"
		r.Extract.Alternates, r.Extract.Images = false, true
		if pages, _ = run(t, generation(t, 9, records), r); !reflect.DeepEqual(pages[1].Extensions, &page.Extensions{Images: []string{"/x.png"}}) {
			t.Errorf("%s: images: got %+v", test.name, pages[1].Extensions)
		}
		r.Extract.Images, r.Extract.Titles = false, true
		if pages, _ = run(t, generation(t, 9, records), r); !reflect.DeepEqual(pages[1].Extensions, &page.Extensions{Title: "x"}) || pages[2].Extensions != nil {
			t.Errorf("%s: titles: got %+v, %+v", test.name, pages[1].Extensions, pages[2].Extensions)
		}
	}
}

// TestDeclared: what pages declare is known of those that are listed, if it is wanted.
func TestDeclared(t *testing.T) {
	records := recs("/a; /b; /c; /d; /e; /f; /none; /x.md; /y.md 404; /z.md")
	for i := range records[7:] {
		records[7+i].Flags = store.Image
	}
	// Of those that return 200, are of another site, return 404, are left out, and were not requested.
	for i, markdown := range []string{"/x.md", "https://o.example/b.md", "/y.md", "/z.md", "/w.md", ""} {
		rec := &records[i]
		rec.Depth = 2
		rec.Title, rec.Description, rec.Markdown = "t", "d", markdown
		rec.Article = &store.Article{Published: 86400, PublishedDay: true, Headline: "h", Lang: "de"}
	}
	article := page.Extensions{Published: 86400, PublishedDay: true, Headline: "h", Lang: "de"}
	for _, test := range []struct {
		name string
		want func(o *Options)
		got  []page.Extensions
	}{
		{"nothing", func(*Options) {}, make([]page.Extensions, 6)},
		{"descriptions", func(o *Options) { o.Extract.Descriptions = true }, slices.Repeat([]page.Extensions{{Description: "d"}}, 6)},
		{"Markdown", func(o *Options) { o.Extract.Markdown = true }, append([]page.Extensions{{Markdown: origin + "/x.md"}}, make([]page.Extensions, 5)...)},
		{"articles", func(o *Options) { o.Extract.Articles = true }, slices.Repeat([]page.Extensions{article}, 6)},
		{"depths", func(o *Options) { o.Depths = true }, slices.Repeat([]page.Extensions{{Depth: 2}}, 6)},
	} {
		r := rules()
		r.Filter = func(p *page.Page) string { return strings.Repeat("excluded", strings.Count(p.Path, "/z.md")) }
		test.want(&r)
		pages, _ := run(t, generation(t, 9, slices.Clone(records)), r)
		if len(pages) != len(test.got)+1 {
			t.Errorf("%s: got %d pages", test.name, len(pages))
		}
		for i, want := range append(test.got, page.Extensions{}) {
			got := pages[i].Extensions
			if isKnown := !want.IsZero(); (got != nil) != isKnown || isKnown && !reflect.DeepEqual(*got, want) {
				t.Errorf("%s: %s: got %+v, want %+v", test.name, pages[i].Path, got, want)
			}
		}
	}
}

// TestImages: an image of the site is listed once it has answered 200 with an image, and is no
// page; others are listed as pages name them.
func TestImages(t *testing.T) {
	records := recs("/; /a.png; /b.png; /c.png; /d.png; /x/e.png")
	image := func(i int, status uint16, flags store.Flags) {
		records[i] = store.Record{Path: records[i].Path, Fetched: 1, Status: status, Flags: store.Image | flags}
	}
	image(1, 200, 0)
	image(2, 404, 0)
	image(3, 200, store.HTML|store.Document)
	image(4, 200, store.Blocked)
	image(5, 200, 0)
	for _, path := range []string{"/a.png", "/b.png", "/c.png", "/d.png", "/x/e.png", "/f.png"} {
		records[0].Images = append(records[0].Images, origin+path)
	}
	records[0].Images = append(records[0].Images, "https://cdn.example/g.png")
	for scope, want := range map[string][]string{"/": {"/a.png", "/x/e.png"}, "/x/": {"/a.png", "/b.png", "/c.png", "/d.png", "/x/e.png", "/f.png"}} {
		r := rules()
		r.Extract.Images, r.Scope = true, scope
		pages, res := run(t, generation(t, 9, records), r)
		got := pages[0].Extensions.Images
		for i, path := range append(want, "https://cdn.example/g.png") {
			if i >= len(got) || strings.TrimPrefix(got[i], origin) != path {
				t.Fatalf("scope %s: got %q, want %q", scope, got, want)
			}
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
	records[slices.IndexFunc(records, func(r store.Record) bool { return r.Path == "/d" })].Target = "/moved"
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
	store.Storage
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
	open := func() (*failing, *store.Generation) {
		f := &failing{Storage: store.NewMemory()}
		s, err := store.Open(t.Context(), f, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := s.Last().Writer()
		w.Put("", recs("/a; /b; /c"), nil, nil)
		g, err := w.Generation()
		if err == nil {
			err = s.Commit(t.Context(), g)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f, g
	}
	for name, test := range map[string]struct {
		breaks func(f *failing, g *store.Generation)
		want   error // nil: any
	}{
		"error":   {func(f *failing, _ *store.Generation) { f.err = broken }, broken},
		"damage":  {func(f *failing, _ *store.Generation) { f.damage = true }, store.ErrDamaged},
		"emptied": {func(f *failing, g *store.Generation) { f.damage = true; _, _ = g.Load(t.Context(), 0) }, nil},
	} {
		f, g := open()
		s, err := Select(t.Context(), g, rules())
		if err != nil {
			t.Fatal(err)
		}
		test.breaks(f, g)
		n := 0
		for _, err = range s.Pages(t.Context()) {
			n++
		}
		if n != 1 || err == nil || test.want != nil && !errors.Is(err, test.want) || s.Result().Generation != nil {
			t.Errorf("%s: got %v, %d values", name, err, n)
		}
		if name == "emptied" {
			continue
		}
		f, g = open()
		test.breaks(f, g)
		if _, err := Select(t.Context(), g, rules()); !errors.Is(err, test.want) {
			t.Errorf("%s, before: got %v", name, err)
		}
		f, g = open()
		test.breaks(f, g)
		if _, err := Explain(t.Context(), g, rules(), "/a"); !errors.Is(err, test.want) {
			t.Errorf("%s, explained: got %v", name, err)
		}
	}
}

// TestToldChange: a change of which a list tells counts at once, and not again as the text is confirmed. One of which no date tells
// counts then.
func TestToldChange(t *testing.T) {
	const last, next = day0 + 10*day, day0 + 11*day // fetches
	type step struct {
		change func(r *store.Record)
		want   string // of the change
	}
	doubts := func(r *store.Record) { r.Before, r.Fetched, r.Steadiness = last, next, store.TextInDoubt }
	settles := func(r *store.Record) { r.Before, r.Fetched, r.Changed, r.Steadiness = last, next+60, 8, store.Steady }
	dates := func(at int64) func(r *store.Record) { return func(r *store.Record) { r.ModTime = at } }
	both := func(a, b func(r *store.Record)) func(r *store.Record) { return func(r *store.Record) { a(r); b(r) } }
	for name, test := range map[string]struct {
		date  int64 // at first
		steps []step
	}{
		"told, then fetched":      {day0, []step{{dates(last + 5), "told"}, {doubts, ""}, {settles, ""}}},
		"told and fetched":        {day0, []step{{both(dates(last+5), doubts), "told"}, {settles, ""}}},
		"told, and the text same": {day0, []step{{dates(last + 5), "told"}, {func(r *store.Record) { r.Fetched = next }, ""}}},
		"told twice":              {day0, []step{{both(dates(last+5), doubts), "told"}, {dates(last + 9), "told"}, {settles, ""}}},
		"told an old date":        {day0, []step{{both(dates(last-5), doubts), "told"}, {settles, "told"}}},
		"not told":                {day0, []step{{doubts, ""}, {settles, "told"}}},
		"a first date":            {0, []step{{dates(last + 5), "told"}, {doubts, ""}, {settles, ""}}},
		"a first date, in doubt":  {0, []step{{both(dates(last+5), doubts), "told"}, {settles, ""}}},
		"a first date, of before": {0, []step{{dates(last - 5), "counted"}, {doubts, ""}, {settles, "told"}}},
	} {
		records := recs("/a")
		records[0].ModTime = test.date
		records[0].First = 7
		records[0].Fetched = last
		_, res := run(t, generation(t, 1, records), noticing())
		for i, step := range test.steps {
			_, records = moves(t, res.Generation)
			step.change(&records[0])
			_, res = run(t, generation(t, 1, records), noticing())
			told, _ := moves(t, res.Generation)
			got := ""
			switch {
			case len(told) > 0:
				got = "told"
			case res.Changes.Changed > 0:
				got = "counted"
			}
			if got != step.want {
				t.Errorf("%s, step %d: got %q, want %q", name, i, got, step.want)
			}
		}
	}
}

// TestDescriptionsOfLargeSites: a site has all of its descriptions, or is too large for any.
func TestDescriptionsOfLargeSites(t *testing.T) {
	for n, want := range map[int]int{maxDescribed: maxDescribed, maxDescribed + 1: 0} {
		records := make([]store.Record, n)
		for i := range records {
			records[i] = rec(fmt.Sprintf("/%05d", i))
			records[i].Description = "d"
		}
		o := rules()
		o.Extract.Descriptions = true
		pages, result := run(t, generation(t, 1000, records), o)
		shown := 0
		for _, p := range pages {
			if p.Extensions != nil && p.Extensions.Description == "d" {
				shown++
			}
		}
		kept := 0
		for record, err := range result.Generation.Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			kept += len(record.Description)
		}
		if len(pages) != n || shown != want || kept != want {
			t.Errorf("of %d pages, %d are listed, %d with a description, and %d are kept; want %d", n, len(pages), shown, kept, want)
		}
	}
}
