package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

const origin = "https://example.com"

// rec is a record that was asked for; opts: "=N" a fingerprint, "->/p" a canonical
// here that the answer names, "~>/p" one that the file names, "linked", "unasked",
// "guarded", "found" in files rather than in a list, "target", "discovered", "read", "listed",
// "silent", and any Reason's name for the answer.
func rec(spec string) *state.Record {
	fields := strings.Fields(spec)
	r := &state.Record{Page: page.Page{Path: fields[0]}, Asked: 1000, Answer: uint8(Good)}
	for _, opt := range fields[1:] {
		switch {
		case opt[0] == '=':
			r.Fingerprint, r.Flags = Hash(opt), r.Flags|FlagRead
		case strings.HasPrefix(opt, "->"):
			r.Answer, r.Canonical = uint8(CanonicalHere), opt[2:]
		case strings.HasPrefix(opt, "~>"):
			r.Content, r.Canonical = uint8(CanonicalHere), opt[2:]
		case opt == "linked":
			r.Flags |= FlagLinked
		case opt == "read":
			r.Flags |= FlagRead
		case opt == "listed":
			r.Flags |= FlagListed
		case opt == "guarded":
			r.Flags |= FlagGuarded
		case opt == "found":
			r.Page.Version = 1
		case opt == "discovered":
			r.Flags |= FlagDiscovered
		case opt == "target":
			r.Flags |= FlagTarget
		case opt == "unasked":
			r.Asked, r.Answer = 0, uint8(Unknown)
		case opt == "silent":
			r.Answer = uint8(Unknown)
		case opt == "-":
		default:
			i := slices.Index(names[:], strings.ReplaceAll(opt, "_", " "))
			if i < 0 {
				panic(opt)
			}
			r.Answer = uint8(i)
		}
	}
	return r
}

// judge returns what is left out, as "path reason".
func judge(s *Survey, records []*state.Record) []string {
	slices.SortFunc(records, func(a, b *state.Record) int { return page.Compare(a.Page, b.Page) })
	for _, r := range records {
		s.Add(r)
	}
	if s.Again() {
		for _, r := range records {
			s.AddAgain(r)
		}
	}
	var out []string
	for _, r := range records {
		if reason := s.Verdict(r); !reason.Listed() {
			out = append(out, r.Page.Path+" "+reason.String())
		}
	}
	return out
}

func TestVerdict(t *testing.T) {
	robots := func(path string) bool { return strings.HasPrefix(path, "/secret") }
	for _, test := range []struct {
		name    string
		records string // one each between semicolons
		survey  Survey
		want    string
	}{
		{"good", "/; /a =1; /b =2", Survey{}, ""},
		{"each reason", "/a redirects; /b not_found; /c refused_to_strangers; /d answers_with_an_error; /e not_HTML; /f noindex; /g refreshes_to_another_page; /h soft_404; /i no_whole_document; /j", Survey{},
			"/a redirects; /b not found; /c refused to strangers; /d answers with an error; /e not HTML; /f noindex; /g refreshes to another page; /h soft 404; /i no whole document"},
		{"forbidden", "/secret/a; /b", Survey{Forbidden: robots}, "/secret/a forbidden by robots.txt"},

		{"canonical away", "/a canonical_on_another_site; /b", Survey{RespectCanonical: true}, "/a canonical on another site"},
		{"canonical away ignored", "/a canonical_on_another_site; /b", Survey{}, ""},
		{"target good", "/a ->/b; /b", Survey{RespectCanonical: true}, "/a canonical is another page"},
		{"target good, named by the file", "/a ~>/b; /b", Survey{RespectCanonical: true}, "/a canonical is another page"},
		{"canonical here ignored", "/a ->/b; /b", Survey{}, ""},
		{"target redirects", "/a ->/b; /b redirects", Survey{RespectCanonical: true}, "/b redirects"},
		{"target 404", "/a ->/b; /b not_found", Survey{RespectCanonical: true}, "/b not found"},
		{"target noindex", "/a ->/b; /b noindex", Survey{RespectCanonical: true}, "/b noindex"},
		{"target not known", "/a ->/b", Survey{RespectCanonical: true}, ""},
		{"target not asked", "/a ->/b; /b unasked", Survey{RespectCanonical: true}, ""},
		{"target silent", "/a ->/b; /b silent", Survey{RespectCanonical: true}, "/b waits for its own answer"},
		{"target silent since it is listed", "/a ->/b; /b silent listed", Survey{RespectCanonical: true}, ""},
		{"a silent one speaks for no other", "/a/b silent; /a/c unasked", Survey{}, "/a/b waits for its own answer; /a/c waits for its own answer"},
		{"target forbidden", "/a ->/secret/b; /secret/b", Survey{RespectCanonical: true, Forbidden: robots}, "/secret/b forbidden by robots.txt"},
		{"target names another site", "/a ->/b; /b canonical_on_another_site", Survey{RespectCanonical: true}, "/b canonical on another site"},
		{"no target kept", "/a ->", Survey{RespectCanonical: true}, ""},
		{"each other", "/a ->/b; /b ->/a", Survey{RespectCanonical: true}, "/b canonical is another page"},
		{"each other, as files", "/a ~>/b; /b ~>/a", Survey{RespectCanonical: true}, "/b canonical is another page"},
		{"a third names one of two that name each other", "/a ->/c; /b ->/c; /c ->/b", Survey{RespectCanonical: true}, "/a canonical is another page; /c canonical is another page"},
		{"chain", "/a ->/b; /b ->/c; /c", Survey{RespectCanonical: true}, "/a canonical is another page; /b canonical is another page"},
		{"chain that ends in nothing", "/a ->/b; /b ->/c; /c not_found", Survey{RespectCanonical: true}, "/a canonical is another page; /c not found"},
		{"chain that ends in the unknown", "/a ->/b; /b ->/c", Survey{RespectCanonical: true}, "/a canonical is another page"},
		{"its own noindex counts first", "/a ~>/b noindex; /b not_found", Survey{RespectCanonical: true}, "/a noindex; /b not found"},

		{"slash", "/a =1; /a/ =1", Survey{}, "/a/ duplicate"},
		{"case", "/A =1; /a =1", Survey{}, "/a duplicate"},
		{"index", "/a/ =1; /a/index.html =1", Survey{}, "/a/index.html duplicate"},
		{"index of the root", "/ =1; /INDEX.HTML =1; /default.htm =1; /index.php =1", Survey{}, "/INDEX.HTML duplicate; /default.htm duplicate; /index.php duplicate"},
		{"html", "/a =1; /a.html =1", Survey{}, "/a.html duplicate"},
		{"long and in capitals", "/" + strings.Repeat("a", 300) + " =1; /" + strings.Repeat("A", 300) + ".HTML =1", Survey{}, "/" + strings.Repeat("a", 300) + " duplicate"},
		{"other text", "/a =1; /a/ =2", Survey{}, ""},
		{"no text", "/a; /a/", Survey{}, ""},
		{"other name", "/a =1; /b =1; /indexes =1; /c/myindex.html =1; /c =1", Survey{}, ""},
		{"other query", "/a =1; /a?b=1 =1; /a?b=2 =1; /a?B=1 =1", Survey{}, ""},
		{"same query", "/a.html?b=1 =1; /a?b=1 =1", Survey{}, "/a?b=1 duplicate"},
		{"the linked stays", "/a =1; /a/ =1 linked; /a.html =1", Survey{}, "/a duplicate; /a.html duplicate"},
		{"the first of two linked stays", "/a =1; /a.html =1 linked; /a/ =1 linked", Survey{}, "/a duplicate; /a/ duplicate"},
		{"the canonical stays before the linked", "/a =1 linked; /a/ =1; /x ->/a/", Survey{RespectCanonical: true}, "/a duplicate; /x canonical is another page"},
		{"the canonical of one stays", "/a =1 ->/a/ linked; /a/ =1", Survey{RespectCanonical: true}, "/a canonical is another page"},
		{"one that is left out makes no duplicate", "/a =1 noindex; /a/ =1", Survey{}, "/a noindex"},
		{"nor one that is forbidden", "/secret =1; /Secret =1", Survey{Forbidden: robots}, "/secret forbidden by robots.txt"},
		{"nor one that waits", "/ not_found; /A =1 unasked; /a =1", Survey{}, "/ not found; /A waits for its own answer"},
		{"two that name nothing", "/a =1 ->/x; /a/ =1 ->/x", Survey{RespectCanonical: true}, "/a/ duplicate"},
		{"one that gives way makes no duplicate", "/A =1 ->/b; /a =1; /b =1", Survey{RespectCanonical: true}, "/A canonical is another page"},

		{"folder refused", "/ ; /f/ not_found; /f/a refused_to_strangers; /f/b unasked; /f/c", Survey{}, "/f/ not found; /f/a refused to strangers; /f/b waits for its own answer"},
		{"a folder's own page lies in the one above", "/; /f/ not_found; /f/a; /f/b unasked", Survey{}, "/f/ not found"},
		{"folder fails", "/f/a answers_with_an_error; /f/b unasked", Survey{}, "/f/a answers with an error; /f/b waits for its own answer"},
		{"folder redirects", "/f/a redirects; /f/b unasked", Survey{}, "/f/a redirects; /f/b waits for its own answer"},
		{"folder of noindex", "/f/a noindex; /f/b unasked", Survey{}, "/f/a noindex"},
		{"discovered", "/f/a; /f/b discovered; /f/c discovered unasked", Survey{}, "/f/c waits for its own answer"},
		{"discovered and guarded", "/f/a; /f/b discovered guarded unasked", Survey{}, "/f/b never asked for"},
		{"a dead link says nothing of others", "/f/a discovered not_found; /f/b discovered silent; /f/c; /f/d unasked", Survey{}, "/f/a not found; /f/b waits for its own answer"},
		{"nothing asked", "/f/a unasked; /g/a; /g/b unasked", Survey{}, "/f/a waits for its own answer"},
		{"guarded", "/f/a unasked guarded; /f/b redirects; /g/a guarded unasked", Survey{}, "/f/b redirects"},
		{"guarded and found", "/f/a unasked guarded found; /f/b found unasked; /f/c found", Survey{}, "/f/a never asked for"},
		{"guarded and found, in a folder that refuses", "/f/a unasked guarded found; /f/b redirects", Survey{}, "/f/a never asked for; /f/b redirects"},
		{"asked before it was guarded", "/a guarded found listed", Survey{}, "/a never asked for"},
		{"what is known of a guarded one counts first", "/a guarded found noindex; /secret/a guarded found", Survey{Forbidden: robots}, "/a noindex; /secret/a forbidden by robots.txt"},
		{"a guarded one that names another", "/a ~>/b guarded found unasked; /b", Survey{RespectCanonical: true}, "/a canonical is another page"},
		{"a guarded one makes no duplicate", "/a =1 guarded found; /a/ =1", Survey{}, "/a never asked for"},
		{"a list's does", "/a =1 guarded unasked; /a/ =1", Survey{}, "/a/ duplicate"},
		{"target guarded", "/a ->/b; /b guarded found unasked", Survey{RespectCanonical: true}, "/b never asked for"},
		{"target asked before it was guarded", "/a ->/b; /b guarded found", Survey{RespectCanonical: true}, "/b never asked for"},
		{"each other, one of them guarded", "/a ~>/b guarded found; /b ->/a", Survey{RespectCanonical: true}, "/a never asked for"},
		{"target guarded that no list names", "/a ->/b; /b guarded unasked target", Survey{RespectCanonical: true}, "/b never asked for"},
		{"queries with slashes", "/f/a; /f/b?c=/d/ unasked", Survey{}, ""},

		{"orphans", "/ read; /a read; /b read linked; /c", Survey{OmitOrphans: true}, "/a nothing links to it"},
		{"orphans listed", "/ read; /a read", Survey{}, ""},
		{"named but not linked", "/a ->/b linked read; /b read", Survey{OmitOrphans: true, RespectCanonical: true}, "/a canonical is another page"},
	} {
		var records []*state.Record
		for _, spec := range strings.Split(test.records, "; ") {
			records = append(records, rec(spec))
		}
		if got := strings.Join(judge(&test.survey, records), "; "); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestUnverified(t *testing.T) {
	for spec, want := range map[string]Reason{
		"/a": Good, "/a silent": Waiting, "/a silent listed": Unknown, "/a ->/x": Good, "/a ~>/x": Good, "/a ~>/x silent listed": Unknown, "/a guarded unasked": Unknown, "/a guarded": Good,
		"/a guarded unasked found": Guarded, "/a guarded found": Guarded, "/a guarded silent listed found": Guarded,
	} {
		r := rec(spec)
		s := Survey{RespectCanonical: true}
		judge(&s, []*state.Record{r})
		if got := s.Verdict(r); got != want {
			t.Errorf("%s: got %d, want %d", spec, got, want)
		}
	}
	for _, answer := range []Reason{CanonicalAway, CanonicalHere} {
		r := rec("/a")
		r.Answer = uint8(answer)
		var s Survey
		judge(&s, []*state.Record{r})
		if got := s.Verdict(r); got != Good {
			t.Errorf("%d where canonicals are ignored: got %d, want %d", answer, got, Good)
		}
	}
}

// Of pages that name each other in a ring exactly one stays, and what names one of
// them gives way.
func TestRings(t *testing.T) {
	for n := 2; n <= maxRing; n++ {
		var records []*state.Record
		for i := range n {
			records = append(records, rec(fmt.Sprintf("/r%d ->/r%d", i, (i+1)%n)))
		}
		records = append(records, rec("/x ->/r1"), rec("/y ->/x"))
		if got := judge(&Survey{RespectCanonical: true}, records); len(got) != n+1 {
			t.Errorf("%d: %d left out: %q", n, len(got), got)
		}
	}
}

// Whatever pages say of each other, a duplicate or one that gives way has a page that
// is listed in its stead.
func TestSomethingStays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	variants := []string{"/%c", "/%c/", "/%c.html", "/%c/index.html", "/%C"}
	options := []string{"", "", "", "linked", "not_found", "redirects", "unasked", "silent", "noindex", "guarded", "guarded found", "guarded found unasked"}
	for round := range 20000 {
		var paths []string
		for _, c := range "pqr" {
			for _, v := range variants {
				if random.IntN(2) == 0 {
					v = strings.ReplaceAll(v, "%C", strings.ToUpper(string(c)))
					paths = append(paths, strings.ReplaceAll(v, "%c", string(c)))
				}
			}
		}
		if len(paths) == 0 {
			continue
		}
		var records []*state.Record
		for _, path := range paths {
			spec := fmt.Sprintf("%s =%d %s", path, random.IntN(2), options[random.IntN(len(options))])
			if random.IntN(3) == 0 {
				if target := paths[random.IntN(len(paths))]; target != path {
					spec += []string{" ->", " ~>"}[random.IntN(2)] + target
				}
			}
			records = append(records, rec(spec))
		}
		s := Survey{RespectCanonical: random.IntN(4) > 0, Forbidden: func(path string) bool { return Hash(path)%16 == uint64(round%16) }}
		judge(&s, records)
		byPath := make(map[string]*state.Record)
		listed := make(map[uint64]bool)
		for _, r := range records {
			byPath[r.Page.Path] = r
			if s.Verdict(r).Listed() {
				if listed[duplicateKey(r)] {
					t.Fatalf("round %d: %s is listed twice", round, r.Page.Path)
				}
				listed[duplicateKey(r)] = true
			}
		}
		for _, r := range records {
			switch s.Verdict(r) {
			case Duplicate:
				gives := slices.ContainsFunc(records, func(o *state.Record) bool {
					return duplicateKey(o) == duplicateKey(r) && s.Verdict(o) == CanonicalHere
				})
				if !listed[duplicateKey(r)] && !gives {
					t.Fatalf("round %d: of the duplicates of %s none is listed", round, r.Page.Path)
				}
			case CanonicalHere:
				at, stays := r, false
				for range 2 * len(records) {
					if at = byPath[at.Canonical]; at == nil {
						break
					}
					if reason := s.Verdict(at); reason.Listed() || reason == Duplicate {
						stays = true
					}
				}
				if !stays {
					t.Fatalf("round %d: %s gives way to nothing", round, r.Page.Path)
				}
			}
		}
	}
}

func TestSurveyCounts(t *testing.T) {
	var s Survey
	s.RespectCanonical = true
	records := []*state.Record{rec("/a listed"), rec("/b listed"), rec("/c unasked"), rec("/d noindex"), rec("/e canonical_on_another_site"), rec("/f ->/x"), rec("/g noindex"), rec("/h noindex")}
	records[1].Suspect = uint8(Gone)
	judge(&s, records)
	if s.Pages != 8 || s.Listed != 2 || s.Suspects != 1 || s.Unasked != 1 || s.Unwilling.Count != 4 || strings.Join(s.Unwilling.First, " ") != "/d /e /g" {
		t.Errorf("got %+v", s)
	}
	if !s.IsTarget("/x") || s.IsTarget("/a") || !s.Misses(records[5]) || s.Misses(records[0]) {
		t.Error("the target of one page is not known as such")
	}
	// Naming another is no harm where canonicals are ignored.
	s = Survey{}
	records = []*state.Record{rec("/a listed")}
	records[0].Suspect = uint8(CanonicalAway)
	if judge(&s, records); s.Suspects != 0 {
		t.Errorf("got %d suspects, want none", s.Suspects)
	}
}

// What a page is suspected of is already known of when it is believed.
func TestBelievedBetweenPasses(t *testing.T) {
	a, b := rec("/a listed"), rec("/b listed")
	a.Suspect, a.Canonical = uint8(CanonicalHere), "/b"
	s := Survey{RespectCanonical: true}
	s.Add(a)
	s.Add(b)
	Believe(a)
	if !s.Again() {
		t.Fatal("no second pass")
	}
	s.AddAgain(a)
	s.AddAgain(b)
	if got := s.Verdict(a); got != CanonicalHere {
		t.Errorf("got %d, want %d", got, CanonicalHere)
	}
}

func TestFolder(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "/?a=/b/": "/", "/a": "/", "/a/": "/", "/a/b": "/a/", "/a/b/": "/a/", "/a/b?c/d": "/a/", "/a/b/c": "/a/b/", "/a//": "/a/",
	} {
		if got := Folder(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestReasons(t *testing.T) {
	for r := range 256 {
		reason := Reason(r)
		if listed := reason == Unknown || reason == Good; reason.Listed() != listed {
			t.Errorf("%d: listed %t", r, reason.Listed())
		}
		if known := reason > Good && reason <= Guarded; (reason.String() != "") != known {
			t.Errorf("%d: got %q", r, reason)
		}
	}
	if got := Guarded.String(); got != "never asked for" {
		t.Errorf("got %q", got)
	}
}
