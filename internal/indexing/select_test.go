package indexing

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	origin = "https://example.com"
)

var noon = time.Date(2026, 3, 14, 12, 0, 30, 0, time.UTC)

// options change a record that is named by a source, was fetched at noon and is a good
// HTML page.
var options = map[string]func(r *record.Record){
	"pending":    func(r *record.Record) { r.Fetched, r.Status, r.Flags = 0, 0, r.Flags&record.Named },
	"discovered": func(r *record.Record) { r.Flags &^= record.Named },
	"file":       func(r *record.Record) { r.Version = 1 },
	"linked":     func(r *record.Record) { r.Linked = noon.Unix() - hour },
	"expired":    func(r *record.Record) { r.Linked = noon.Unix() - 91*day },
	"listed":     func(r *record.Record) { r.Selected.Listed = true },
	"failing":    func(r *record.Record) { r.Failing = noon.Unix() - 60 },
	"absent":     func(r *record.Record) { r.Absent = noon.Unix() },
	"far":        func(r *record.Record) { r.Depth = 5 },
	"deep":       func(r *record.Record) { r.Depth = 6 },

	"image":      func(r *record.Record) { r.Flags = record.Image },
	"binary":     func(r *record.Record) { r.Flags &^= record.HTML | record.Document; r.Text = 0 },
	"part":       func(r *record.Record) { r.Flags &^= record.Document },
	"tagged":     func(r *record.Record) { r.NoIndexTag, r.Flags = true, r.Flags|record.NoIndex },
	"unreadable": func(r *record.Record) { r.Flags |= record.Unreadable; r.Flags &^= record.Document },
	"refresh":    func(r *record.Record) { r.Target = "/elsewhere" },

	"alike":      func(r *record.Record) { r.Difference = 77 }, // else each page changes in another way
	"back":       func(r *record.Record) { r.Difference = 0 },
	"asked":      func(r *record.Record) { r.FoundBy = record.ByVisitor },
	"told":       func(r *record.Record) { r.FoundBy = record.ByList },
	"saved":      func(r *record.Record) { r.FoundBy = record.ByWrite },
	"to-look-at": func(r *record.Record) { r.Cause = record.ByWrite },

	"day":        func(r *record.Record) { r.Selected.Day = true },
	"doubt":      func(r *record.Record) { r.Steadiness = record.TextInDoubt },
	"date-doubt": func(r *record.Record) { r.Steadiness = record.DateInDoubt },
	"steady":     func(r *record.Record) { r.Steadiness = record.Steady },
	"noisy":      func(r *record.Record) { r.Steadiness = record.Noisy },
	"streak":     func(r *record.Record) { r.Streak = maxStreak },
}

// flags are those of a record.
var flags = map[string]record.Flags{
	"visited":      record.Visited,
	"seed":         record.Seed,
	"target":       record.Target,
	"blocked":      record.Blocked,
	"noindex":      record.NoIndex,
	"soft":         record.SoftNotFound,
	"made":         record.Made,
	"list's-day":   record.ModDay,
	"declared-day": record.DeclaredDay,
	"moves":        record.DeclaredMoves,
}

// timeFields are the fields of a record with times.
var timeFields = map[string]string{
	"mod":      "ModTime", // of the file, or by a list
	"list":     "ListDate",
	"declared": "Declared",
	"header":   "Modified",
	"first":    "First",
	"found":    "Found",
	"changed":  "Changed",
	"before":   "Before",
	"fetched":  "Fetched",
	"absent":   "Absent",
	"was":      "Was",
	"text":     "Selected.Text",
	"dated":    "Selected.Dated",
	"lastmod":  "Selected.LastMod",
}

// instant is a time, such as day0+5s or now-30h, in Unix seconds; "": 0.
func instant(s string) int64 {
	base := map[string]int64{"day": day0, "now": noon.Unix()}
	if s == "" {
		return 0
	}
	name, after := s[:3], strings.TrimPrefix(s[3:], "0")
	if after == "" {
		return base[name]
	}
	d, err := time.ParseDuration(after)
	if err != nil {
		panic(err)
	}
	return base[name] + int64(d/time.Second)
}

func init() { // they refer to each other
	options["disallowed"] = func(r *record.Record) { options["pending"](r); r.Flags |= record.Disallowed }
}

// rec is a record: a path and what [set] sets.
func rec(spec string) record.Record {
	path, spec, _ := strings.Cut(spec, " ")
	r := record.Record{Path: path, Flags: record.Named | record.HTML | record.Document, Fetched: noon.Unix(), Status: 200}
	r.Difference = hash(r.Path) // if it has changed
	set(&r, spec)
	return r
}

// set changes a record by options, "=N" for a text, "->/p" for a canonical, "mod:day0+5s" for a time, a number for a status.
func set(r *record.Record, spec string) {
	for opt := range strings.FieldsSeq(spec) {
		name, at, isTime := strings.Cut(opt, ":")
		switch f := options[opt]; {
		case f != nil:
			f(r)
		case opt[0] == '=':
			r.Text = hash(opt)
		case strings.HasPrefix(opt, "->"):
			r.Canonical = opt[2:]
		case flags[opt] != 0:
			r.Flags |= flags[opt]
		case isTime:
			setTime(r, timeFields[name], instant(at))
		default:
			if _, err := fmt.Sscan(opt, &r.Status); err != nil {
				panic(opt)
			}
		}
	}
}

// setTime sets a field of a record, or of its selection.
func setTime(r *record.Record, path string, at int64) {
	v := reflect.ValueOf(r).Elem()
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(name)
	}
	if v.CanInt() {
		v.SetInt(at)
	} else {
		v.SetUint(uint64(at))
	}
}

func recs(specs string) (records []record.Record) {
	for spec := range strings.SplitSeq(specs, "; ") {
		records = append(records, rec(spec))
	}
	slices.SortFunc(records, func(a, b record.Record) int { return strings.Compare(a.Path, b.Path) })
	return records
}

// generation holds records in chunks of a few.
func generation(t testing.TB, chunk int, records []record.Record) *record.Generation {
	t.Helper()
	s := record.New(record.NewMemory(), "")
	w, first := s.Last().Writer(), ""
	for part := range slices.Chunk(records, chunk) {
		if first != "" {
			first = part[0].Path
		}
		w.Put(first, part, nil, nil)
		first = "-"
	}
	if len(records) == 0 {
		w.Put("", nil, nil, nil)
	}
	g, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func rules() Options {
	return Options{
		Base: origin, Scope: "/", Expire: 90 * day * time.Second, Now: noon,
		Hints:  func(*page.Page) {},
		Filter: func(*page.Page) string { return "" },
	}
}

// run selects and reads all pages.
func run(t testing.TB, g *record.Generation, r Options) ([]page.Page, Result) {
	t.Helper()
	s, err := Select(context.Background(), g, r)
	if err != nil {
		t.Fatal(err)
	}
	var pages []page.Page
	for p, err := range s.Pages(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, p)
	}
	if s.Result().Listed != len(pages) {
		t.Errorf("%d pages are counted, %d were yielded", s.Result().Listed, len(pages))
	}
	return pages, s.Result()
}

// leftOut says what is not listed, and why.
func leftOut(t testing.TB, records []record.Record, r Options) string {
	t.Helper()
	pages, res := run(t, generation(t, 1000, records), r)
	var out []string
	for status, list := range res.LeftOut {
		for _, path := range list.First {
			out = append(out, path+" "+Status(status).String())
		}
		if list.Count > maxExamples || len(list.First) != min(list.Count, maxExamples) {
			t.Fatalf("%v: %+v cannot be compared", Status(status), list)
		}
	}
	if len(out)+len(pages) != len(records) {
		t.Errorf("of %d records, %d pages are listed and %d left out", len(records), len(pages), len(out))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// TestLinksCount: the links of a page count if it needs none itself, has one, or was listed.
func TestLinksCount(t *testing.T) {
	for _, test := range []struct {
		record string
		want   bool
	}{
		{"/", true}, {"/home seed discovered", true},
		{"/a file", true}, {"/a", true}, {"/a file expired", true},
		{"/_a file", false}, {"/_a file linked", true}, {"/_a file expired", false}, {"/_a file listed", true},
		{"/_a", true}, // a list names it
		{"/a discovered", false}, {"/a discovered linked", true}, {"/a discovered expired", false}, {"/a discovered listed", true},
		{"/a discovered visited", false}, {"/u/a discovered visited", true},
	} {
		r := rules()
		r.OmitOrphans = true
		r.Unlinked = func(path string) bool { return strings.HasPrefix(path, "/u/") }
		page := rec(test.record)
		if got := r.LinksCount(&page); got != test.want {
			t.Errorf("%s: got %t, want %t", test.record, got, test.want)
		}
	}
}

func TestStatus(t *testing.T) {
	long := strings.Repeat("a", 300)
	type set = func(r *Options)
	ignore, omit := func(r *Options) { r.IgnoreCanonicals = true }, func(r *Options) { r.OmitOrphans = true }
	secret := func(r *Options) {
		r.Filter = func(p *page.Page) string {
			if strings.HasPrefix(p.Path, "/secret") {
				return "excluded"
			}
			return ""
		}
	}
	for _, test := range []struct {
		name, records string // one each between semicolons
		set           set
		want          string
	}{
		{"good", "/; /a =1; /b =2; /c.pdf binary", nil, ""},
		{"each status", "/a 301; /b 404; /c 401; /d 503; /e binary; /f noindex; /f2 tagged; /g refresh; /h soft; /i part; /j unreadable; /k absent; /l disallowed; /m blocked; /n pending; /o discovered; /p ->https://example.org/; /secret", secret,
			"/a redirect; /b not found; /c refused; /d server error; /e not HTML; /f noindex; /f2 noindex in X-Robots-Tag; /g refresh; /h soft 404; /i no document; /j unreadable encoding; /k absent; /l disallowed; /m blocked by robots.txt; /n pending; /o no incoming links; /p canonical on another site; /secret excluded"},
		{"statuses", "/a 410; /b 403", nil, "/a not found; /b refused"},
		{"other statuses", "/a 418; /b 300; /c 0", nil, "/a refused; /b redirect; /c server error"},
		{"statuses of a moment", "/a 429; /b 408; /c 599", nil, "/a rate limited; /b server error; /c server error"},
		{"statuses that are no answer", "/a 204; /b 206; /c 999", nil, "/a server error; /b server error; /c server error"},
		{"setting first", "/secret/a absent; /secret/b disallowed; /secret/c 404", secret, "/secret/a excluded; /secret/b excluded; /secret/c excluded"},
		{"never fetched", "/a blocked disallowed; /b blocked absent; /c absent pending", nil, "/a disallowed; /b blocked by robots.txt; /c absent"},
		{"its own reasons before no document", "/a part refresh noindex; /b part noindex", nil, "/a refresh; /b noindex"},
		{"unreadable is nothing else", "/a unreadable noindex soft", nil, "/a unreadable encoding"},
		{"the front page is no soft 404", "/ soft", nil, ""},
		{"PDF", "/a.pdf binary; /b.pdf binary noindex; /c.pdf binary ->/; /", nil, "/b.pdf noindex; /c.pdf canonical is another page"},
		{"PDF that only links name", "/a.pdf binary discovered linked; /b.pdf binary discovered target; /c ->/b.pdf", nil, "/a.pdf not HTML; /c canonical is another page"},
		{"not HTML, by name", "/a.html?b=.pdf binary; /a/ binary; /.x/y binary", nil, "/.x/y not HTML; /a.html?b=.pdf not HTML; /a/ not HTML"},
		{"not HTML, without an ending", "/a binary; /a.d/b binary; /v1.2/ binary; /v1.2 binary; /a.b/c.svg binary; /a.txt binary", nil,
			"/a not HTML; /a.d/b not HTML; /v1.2/ not HTML"},
		{"not HTML, in other spellings", "/a.HTM binary; /a.php?x=1.pdf binary; /a?b.pdf binary; /a. binary", nil,
			"/a.HTM not HTML; /a.php?x=1.pdf not HTML; /a?b.pdf not HTML"},

		{"failing", "/a failing; /b failing listed; /c failing noindex", nil, "/a server error; /c noindex"},
		{"noindex before canonical", "/a ->/b noindex; /b 404", nil, "/a noindex; /b not found"},
		{"canonical away ignored", "/a ->https://example.org/; /b", ignore, ""},
		{"target excluded", "/a ->/secret/b; /secret/b", secret, "/secret/b excluded"},
		{"target disallowed", "/a ->/b; /b disallowed", nil, "/b disallowed"},
		{"target names another site", "/a ->/b; /b ->https://example.org/", nil, "/b canonical on another site"},
		{"itself", "/a ->/a", nil, ""},
		{"canonical in another spelling", "/a ->/x%2Cb; /x,b; /c ->/p%2Fq?r%2C; /p/q?r%2C", nil, "/a canonical is another page; /c canonical is another page"},
		{"canonical in both spellings", "/a ->/x%2Cb; /x%2Cb; /x,b", nil, "/a canonical is another page"},
		{"each other in another spelling", "/a ->/x%2Cb; /x,b ->/a; /y,b ->/z; /z ->/y%2Cb", nil, "/x,b canonical is another page; /z canonical is another page"},
		{"canonical that sorts otherwise", "/x,z ->/x+a; /x+a ->/x%2Cz", nil, "/x,z canonical is another page"},
		{"other spelling of itself", "/x%2Cb ->/x,b; /x,b ->/x%2Cb; /y,b ->/y%2Cb; /z%2Cb ->/z,b", nil, "/x%2Cb canonical is another page"},
		{"canonical that names itself in another spelling", "/a ->/y,b; /y,b ->/y%2Cb", nil, "/a canonical is another page"},
		{"other spelling does not count", "/a ->/x%2Cb discovered; /x,b", nil, "/a no incoming links"},

		{"index of the root", "/ =1; /INDEX.HTML =1; /default.htm =1; /index.php =1", nil, "/INDEX.HTML duplicate; /default.htm duplicate; /index.php duplicate"},
		{"names of IIS", "/a/ =1; /a/Default.aspx =1; /b =2; /b.asp =2", nil, "/a/Default.aspx duplicate; /b.asp duplicate"},
		{"long and in capitals", "/" + long + " =1; /" + strings.ToUpper(long) + ".HTML =1", nil, "/" + long + " duplicate"},
		{"no text", "/a; /a/", nil, ""},
		{"other name", "/a =1; /b =1; /indexes =1; /c/myindex.html =1; /c =1", nil, ""},
		{"other query", "/a =1; /a?b=1 =1; /a?b=2 =1; /a?B=1 =1; /a?page=2 =1; /a?page=1&b =1", nil, ""},
		{"same query", "/a.html?b=1 =1; /a?b=1 =1", nil, "/a?b=1 duplicate"},
		{"encoded", "/a%2Cb.html =1; /a,b.html =1 linked; /c%3Bd =2 linked; /C;d =2; /p%2Fq =3; /p/q/ =3; /e%2Cf =4; /e,f =5", nil,
			"/C;d duplicate; /a%2Cb.html duplicate; /p/q/ duplicate"},
		{"first page of a list", "/a =1; /a?page=1 =1 linked; /b/ =2; /b?p=1 =2; /c =3; /c?page=1 =4", nil, "/a?page=1 duplicate; /b?p=1 duplicate"},
		{"the folder stays though links have its index name", "/ =1; /index.html =1 discovered linked; /a/ =2 file; /a/index.html =2 linked", nil, "/a/index.html duplicate; /index.html duplicate"},
		{"index name as canonical", "/ =1 ->/index.html; /index.html =1", nil, "/ canonical is another page"},
		{"an encoded canonical stays", "/x,b =1 linked; /x%2Cb =1; /c ->/x%2Cb", nil, "/c canonical is another page; /x,b duplicate"},
		{"ignored, the home page stays", "/ =1 ->/index.html; /index.html =1 linked", ignore, "/index.html duplicate"},
		{"the canonical of a page without links", "/a ->/b discovered; /b; /c ->/d discovered target; /d", nil, "/a no incoming links; /c canonical is another page"},
		{"what lacks links does not stay", "/a =1 discovered; /a/ =1", nil, "/a duplicate"},
		{"what gives way does not stay", "/a =1 ->/b; /a/ =1; /b", nil, "/a canonical is another page"},
		{"a canonical stays that lacks links", "/a =1 discovered; /a/ =1; /c ->/a", nil, "/a/ duplicate; /c canonical is another page"},
		{"links to any of them count", "/a/ =1 file; /a/index.html =1 linked; /a/index.php =1 file", omit, "/a/index.html duplicate; /a/index.php duplicate"},
		{"nor one that is excluded", "/secret =1; /Secret =1", secret, "/secret excluded"},

		{"another text, and fetched since", "/a =1 listed fetched:now-1h; /a/ =2 found:now-1h", nil, ""},
		{"another text, and the other one not fetched since", "/a =1 listed fetched:now-2h; /a/ =2 found:now-1h", nil, "/a/ duplicate"},
		{"not fetched since the other one has another text", "/a =1 fetched:now-2h; /a/ =2 found:now-1h listed", nil, "/a/ duplicate"},
		{"another text of a file", "/a =1 listed fetched:now-2h; /a/ =2 found:now-1h file", nil, ""},

		{"discovered", "/a discovered linked; /b discovered expired; /c discovered visited linked; /d discovered visited", nil, "/b no incoming links; /d no incoming links"},
		{"beyond depth", "/ discovered deep; /a discovered linked deep pending; /b discovered linked deep absent; /c linked deep; /d discovered seed deep; /e discovered linked far; /f discovered linked far pending",
			func(r *Options) { r.Depth = 5 }, "/a beyond depth; /b beyond depth; /f pending"},
		{"no depth", "/a discovered linked deep pending; /b discovered linked deep", nil, "/a pending"},
		{"beyond depth, other reasons", "/a discovered linked deep disallowed; /b discovered linked deep blocked; /secret/a discovered linked deep pending",
			func(r *Options) { secret(r); r.Depth = 5 }, "/a disallowed; /b blocked by robots.txt; /secret/a excluded"},
		{"beyond depth, visited", "/a discovered linked deep visited; /u/a discovered linked deep visited; /u/b discovered linked deep", func(r *Options) {
			r.Depth = 5
			r.Unlinked = func(path string) bool { return strings.HasPrefix(path, "/u/") }
		}, "/a beyond depth; /u/b beyond depth"},
		{"beyond depth, visits count", "/a discovered linked deep visited; /b discovered linked deep", func(r *Options) { r.Depth, r.Visits = 5, true }, "/b beyond depth"},
		{"beyond depth, listed", "/a discovered linked deep absent listed; /b absent listed", func(r *Options) { r.Depth, r.KeepListed = 5, true }, "/a beyond depth"},
		{"seed", "/ discovered; /home discovered seed", nil, ""},
		{"unlinked", "/x/a discovered visited; /x/b discovered; /y discovered visited", func(r *Options) {
			r.Unlinked = func(path string) bool { return strings.HasPrefix(path, "/x/") }
		}, "/x/b no incoming links; /y no incoming links"},
		{"underscore", "/_a file; /b/_c/d file; /_e file linked; /_f; /g_h file; /i?_/_ file; /_j discovered linked", nil, "/_a no incoming links; /b/_c/d no incoming links"},
		{"orphans", "/; /a; /b linked; /c expired; /d.pdf binary; /home seed", omit, "/a no incoming links; /c no incoming links; /d.pdf no incoming links"},
		{"max_urls", "/a; /b 404; /c; /d; /e", func(r *Options) { r.MaxPages = 2 }, "/b not found; /d over max_urls; /e over max_urls"},
		{"a front page elsewhere", "/docs/ discovered soft; /docs/x", func(r *Options) { r.Scope, r.OmitOrphans = "/docs/", true }, "/docs/x no incoming links"},
		{"kept", "/a 404 listed; /b 401 listed; /c absent listed; /d 404; /e noindex listed; /f disallowed listed; /g 418 listed; /h blocked listed; /i =1; /i/ =1 listed; /secret listed", func(r *Options) { secret(r); r.KeepListed = true },
			"/b refused; /d not found; /f disallowed; /secret excluded"},
	} {
		r := rules()
		if test.set != nil {
			test.set(&r)
		}
		if got := leftOut(t, recs(test.records), r); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}
