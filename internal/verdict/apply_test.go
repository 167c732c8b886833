package verdict

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/evidence"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

var noon = time.Date(2026, 3, 14, 12, 0, 30, 0, time.UTC)

// answer is an answer with a status and pairs of header fields; text/html unless they
// say otherwise.
func answer(status int, header ...string) Answered {
	a := Answered{Status: status, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}
	for i := 0; i < len(header); i += 2 {
		a.Header.Set(header[i], header[i+1])
	}
	return a
}

func with(a Answered, e evidence.Evidence) Answered {
	e.Whole = true
	a.Page = &e
	return a
}

func TestAnswer(t *testing.T) {
	fragment := answer(200)
	fragment.Page = new(evidence.Evidence)
	soft := with(answer(200), evidence.Evidence{})
	soft.SoftNot = true
	for _, test := range []struct {
		name      string
		path      string
		answered  Answered
		want      Reason
		canonical string
	}{
		{"good", "/a", answer(200), Good, ""},
		{"good, read", "/a", with(answer(200), evidence.Evidence{}), Good, ""},
		{"301", "/a", answer(301, "Location", "/b"), Redirects, ""},
		{"302 elsewhere", "/a", answer(302, "Location", "https://example.org/"), Redirects, ""},
		{"300 to nowhere", "/a", answer(300), Redirects, ""},
		{"404", "/a", answer(404), Gone, ""},
		{"410", "/a", answer(410), Gone, ""},
		{"401", "/a", answer(401), Refused, ""},
		{"403", "/a", answer(403), Refused, ""},
		{"418", "/a", answer(418), Refused, ""},
		{"429", "/a", answer(429), Failing, ""},
		{"408", "/a", answer(408), Failing, ""},
		{"500", "/a", answer(500), Failing, ""},
		{"999", "/a", answer(999), Failing, ""},
		{"204", "/a", answer(204), Failing, ""},
		{"206", "/a", answer(206), Failing, ""},
		{"no status", "/a", answer(0), Failing, ""},
		{"no reply", "/a", Answered{NoReply: true}, Unknown, ""},
		{"not HTML", "/a/", answer(200, "Content-Type", "application/json"), NotHTML, ""},
		{"not HTML by name", "/a.html?b=.pdf", answer(200, "Content-Type", "text/plain"), NotHTML, ""},
		{"XHTML", "/a", answer(200, "Content-Type", "application/xhtml+xml"), Good, ""},
		{"a PDF", "/a.pdf", answer(200, "Content-Type", "application/pdf"), Good, ""},
		{"a PDF, read", "/a.pdf", with(answer(200, "Content-Type", "application/pdf"), evidence.Evidence{}), Good, ""},
		{"a PDF of noindex", "/a.pdf", with(answer(200, "Content-Type", "application/pdf", "X-Robots-Tag", "noindex"), evidence.Evidence{}), NoIndex, ""},
		{"a PDF's canonical", "/a.pdf", with(answer(200, "Content-Type", "application/pdf", "Link", `</a>; rel="canonical"`), evidence.Evidence{}), CanonicalHere, "/a"},
		{"noindex header", "/a", answer(200, "X-Robots-Tag", "noindex"), NoIndex, ""},
		{"noindex for another", "/a", answer(200, "X-Robots-Tag", "otherbot: noindex"), Good, ""},
		{"noindex", "/a", with(answer(200), evidence.Evidence{NoIndex: true, Canonical: origin + "/b"}), NoIndex, ""},
		{"fragment", "/a", fragment, Fragment, ""},
		{"refresh", "/a", with(answer(200), evidence.Evidence{Refresh: origin + "/b"}), Refreshes, ""},
		{"refresh elsewhere", "/a", with(answer(200), evidence.Evidence{Refresh: "https://example.org/a"}), Refreshes, ""},
		{"refresh to itself", "/a", with(answer(200), evidence.Evidence{Refresh: origin + "/a#b"}), Good, ""},
		{"refresh header", "/a", answer(200, "Refresh", "0; url=/b"), Refreshes, ""},
		{"canonical itself", "/a", with(answer(200), evidence.Evidence{Canonical: "HTTPS://Example.com/%61"}), Good, ""},
		{"canonical here", "/a", with(answer(200), evidence.Evidence{Canonical: origin + "/b?c"}), CanonicalHere, "/b?c"},
		{"canonical header", "/a", answer(200, "Link", `<https://example.com/b>; rel=canonical`), CanonicalHere, "/b"},
		{"canonical away", "/a", with(answer(200), evidence.Evidence{Canonical: "https://example.org/a"}), CanonicalAway, ""},
		{"canonical on another scheme", "/a", with(answer(200), evidence.Evidence{Canonical: "http://example.com/a"}), CanonicalAway, ""},
		{"two canonicals are none", "/a", with(answer(200, "Link", `</b>; rel="canonical"`), evidence.Evidence{}), Good, ""},
		{"another document", "/a.xyz", answer(200, "Content-Type", "application/x-xyz"), Good, ""},
		{"soft 404", "/a", soft, SoftNotFound, ""},
		{"never of the home page", "/", soft, Good, ""},
		{"no soft 404 unless said so", "/a", with(answer(200), evidence.Evidence{}), Good, ""},
	} {
		r := &state.Record{Page: page.Page{Path: test.path}, Flags: FlagDue}
		Answer(r, test.answered, origin, noon)
		if Reason(r.Answer) != test.want || r.Canonical != test.canonical || r.Suspect != 0 || r.Asked != noon.Unix() || r.Flags&FlagDue != 0 {
			t.Errorf("%s: got %q %q (%+v), want %q %q", test.name, Reason(r.Answer), r.Canonical, r, test.want, test.canonical)
		}
		// Of a listed page the same is a suspicion first, unless it is no verdict.
		r = &state.Record{Page: page.Page{Path: test.path}, Answer: uint8(Good), Flags: FlagListed}
		Answer(r, test.answered, origin, noon)
		want := test.want
		if s := test.answered.Status; want.Listed() || s >= 500 || s == 403 || s == 408 || s == 429 {
			want = 0
		}
		if r.Answer != uint8(Good) || Reason(r.Suspect) != want || r.Flags&FlagTwice != 0 {
			t.Errorf("%s, listed: got %q, suspected of %q, want %q", test.name, Reason(r.Answer), Reason(r.Suspect), want)
		}
	}
}

// Errors and silence leave the verdict on what was there, and are one on what was not.
func TestNoVerdict(t *testing.T) {
	for _, status := range []int{0, 403, 408, 429, 500, 502, 503, 504} {
		a := answer(status)
		if status == 0 {
			a = Answered{NoReply: true}
		}
		for _, known := range []Reason{Good, NoIndex, CanonicalHere, CanonicalAway, Refreshes, Fragment, SoftNotFound} {
			r := &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(known), Canonical: "/b", ETag: `"1"`}
			Answer(r, a, origin, noon)
			if Reason(r.Answer) != known || r.Canonical != "/b" || r.ETag != `"1"` || r.Flags&FlagNoVerdict == 0 || r.Suspect != 0 {
				t.Errorf("%d after %q: got %+v", status, known, r)
			}
		}
		for _, known := range []Reason{Unknown, Gone, Failing} {
			r := &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(known)}
			Answer(r, a, origin, noon)
			switch {
			case status == 0 && Reason(r.Answer) != known, status == 403 && Reason(r.Answer) != Refused, status > 403 && Reason(r.Answer) != Failing:
				t.Errorf("%d after %q: got %q", status, known, Reason(r.Answer))
			}
		}
	}
}

func TestSuspicion(t *testing.T) {
	r := &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(Good), Flags: FlagListed, Wait: 7}
	ask := func(a Answered, after time.Duration) {
		Answer(r, a, origin, noon.Add(after))
		r.Asked = r.Asked / 60 * 60 // as kept on disk
	}
	ask(answer(404), 0)
	if at := Due(r, 0); Reason(r.Answer) != Good || Reason(r.Suspect) != Gone || r.Flags&FlagTwice != 0 || at != r.Asked+3600 {
		t.Fatalf("once: got %+v", r)
	}
	ask(answer(404), 20*time.Minute)
	ask(answer(404), 40*time.Minute)
	if Reason(r.Answer) != Good || Reason(r.Suspect) != Gone || r.Flags&FlagTwice != 0 {
		t.Fatalf("again within the same short outage: got %+v", r)
	}
	ask(Answered{NoReply: true}, 100*time.Minute)
	if Reason(r.Suspect) != Gone || r.Flags&FlagTwice != 0 || Due(r, 0) != r.Asked+3600 {
		t.Fatalf("no verdict: got %+v", r)
	}
	ask(answer(301, "Location", "/b"), 160*time.Minute)
	if Reason(r.Answer) != Good || Reason(r.Suspect) != Redirects || r.Flags&FlagTwice == 0 {
		t.Fatalf("twice: got %+v", r)
	}
	ask(answer(404), 161*time.Minute)
	if Reason(r.Suspect) != Gone || r.Flags&FlagTwice == 0 {
		t.Fatalf("said twice, and again: got %+v", r)
	}
	believed := *r
	Believe(&believed)
	if Reason(believed.Answer) != Gone || believed.Suspect != 0 || believed.Flags&FlagTwice != 0 || Due(&believed, 0) != believed.Asked+3600 {
		t.Fatalf("believed: got %+v", believed)
	}
	ask(answer(200), 3*time.Hour)
	if Reason(r.Answer) != Good || r.Suspect != 0 || r.Flags&FlagTwice != 0 {
		t.Fatalf("good again: got %+v", r)
	}
	ask(answer(404), 5*time.Hour)
	if Reason(r.Suspect) != Gone || r.Flags&FlagTwice != 0 {
		t.Fatalf("bad anew: got %+v", r)
	}

	// About an hour apart is: as far as one that was planned can be early.
	for after, want := range map[time.Duration]bool{
		-time.Hour: false, 0: false, 58 * time.Minute: false, 59 * time.Minute: true, time.Hour: true, 99 * time.Hour: true,
	} {
		r := &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(Good), Flags: FlagListed}
		Answer(r, answer(404), origin, noon)
		Answer(r, answer(404), origin, noon.Add(after))
		if got := r.Flags&FlagTwice != 0; got != want {
			t.Errorf("%s apart: said twice: %t", after, got)
		}
	}

	// What is listed although it names another is suspected, too, of all but that.
	for _, known := range []Reason{CanonicalHere, CanonicalAway, Unknown} {
		r := &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(known), Flags: FlagListed}
		Answer(r, answer(404), origin, noon)
		if Reason(r.Answer) != known || Reason(r.Suspect) != Gone {
			t.Errorf("%q: got %+v", known, r)
		}
	}
	r = &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(CanonicalHere), Canonical: "/b", Flags: FlagListed}
	Answer(r, with(answer(200), evidence.Evidence{Canonical: origin + "/c"}), origin, noon)
	if r.Suspect != 0 || r.Canonical != "/c" {
		t.Errorf("named anew: got %+v", r)
	}

	// Believed of naming another, it still knows which.
	r = &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(Good), Flags: FlagListed}
	Answer(r, with(answer(200), evidence.Evidence{Canonical: origin + "/b"}), origin, noon)
	Believe(r)
	if Reason(r.Answer) != CanonicalHere || r.Canonical != "/b" {
		t.Errorf("got %+v", r)
	}
	// What is not listed turns bad at once.
	r = &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(Good)}
	if Answer(r, answer(404), origin, noon); Reason(r.Answer) != Gone || r.Suspect != 0 {
		t.Errorf("not listed: got %+v", r)
	}
}

// What a file names stays known, whatever answers say in between.
func TestCanonicalOfFile(t *testing.T) {
	r := &state.Record{Page: page.Page{Path: "/a", Version: 1}}
	Content(r, &evidence.Evidence{Whole: true, Canonical: origin + "/b", Fingerprint: 1}, origin, true, noon)
	for _, a := range []Answered{answer(200), answer(301, "Location", "/x"), answer(200, "Link", `</x>; rel="canonical"`), answer(404), answer(200)} {
		Answer(r, a, origin, noon)
		if Reason(r.Content) != CanonicalHere || r.Canonical != "/b" || r.Page.Version != 1 {
			t.Fatalf("%d: got %+v", a.Status, r)
		}
	}
	// A header's stays while the file is read again.
	r = &state.Record{Page: page.Page{Path: "/a", Version: 1}}
	Content(r, &evidence.Evidence{Whole: true, Fingerprint: 1}, origin, true, noon)
	Answer(r, answer(200, "Link", `</x>; rel="canonical"`), origin, noon)
	Content(r, &evidence.Evidence{Whole: true, Fingerprint: 2}, origin, true, noon)
	if Reason(r.Answer) != CanonicalHere || r.Canonical != "/x" {
		t.Errorf("got %+v", r)
	}
}

func TestContent(t *testing.T) {
	for _, test := range []struct {
		e    evidence.Evidence
		want Reason
	}{
		{evidence.Evidence{Whole: true}, Good},
		{evidence.Evidence{}, Fragment},
		{evidence.Evidence{NoIndex: true}, NoIndex},
		{evidence.Evidence{Whole: true, Canonical: origin + "/b"}, CanonicalHere},
		{evidence.Evidence{Whole: true, Canonical: "https://www.example.com/"}, CanonicalAway},
		{evidence.Evidence{Whole: true, Refresh: origin + "/b"}, Refreshes},
	} {
		r := &state.Record{Page: page.Page{Path: "/a"}}
		test.e.Links, test.e.Images = []string{"/b"}, []string{"/c"}
		if Content(r, &test.e, origin, true, noon) || Reason(r.Content) != test.want || r.Flags != FlagRead || r.Details == nil || len(r.Details.Links)+len(r.Details.Images) != 2 {
			t.Errorf("%+v: got %+v, want %q", test.e, r, test.want)
		}
		// An answer's content is judged with the answer.
		if Content(r, &test.e, origin, false, noon); r.Content != 0 || r.Flags != FlagRead|FlagDynamic {
			t.Errorf("%+v of an answer: got %+v", test.e, r)
		}
	}
}

func TestValidators(t *testing.T) {
	r := &state.Record{Page: page.Page{Path: "/a"}}
	ask := func(a Answered, etag, modified string) {
		t.Helper()
		if Answer(r, a, origin, noon); r.ETag != etag || r.Modified != modified {
			t.Errorf("got %q, %q, want %q, %q", r.ETag, r.Modified, etag, modified)
		}
	}
	const then, later = "Sat, 14 Mar 2026 08:00:00 GMT", "Sat, 14 Mar 2026 09:00:00 GMT"
	ask(answer(200, "Etag", `"1"`, "Last-Modified", then), `"1"`, then)
	ask(answer(304), `"1"`, then)
	ask(answer(304, "Etag", `"2"`), `"2"`, then)
	ask(answer(503, "Etag", `"3"`), `"2"`, then)
	ask(Answered{NoReply: true}, `"2"`, then)
	ask(answer(200, "Last-Modified", later), "", later)
	ask(answer(404, "Etag", `"4"`), "", "")
	ask(answer(200, "Etag", `"`+strings.Repeat("x", maxValidator)+`"`), "", "")
	// An error after what was kept takes the text's name with it, if it is a verdict:
	// else an unchanged text would be that error again.
	r.Answer, r.ETag = uint8(Gone), `"5"`
	ask(answer(503, "Etag", `"6"`), "", "")
	// Suspected, it still belongs to the text that was read.
	r.Answer, r.Flags = uint8(Good), FlagListed
	ask(with(answer(200, "Etag", `"7"`), evidence.Evidence{NoIndex: true}), `"7"`, "")
	if Reason(r.Suspect) != NoIndex {
		t.Errorf("got %q", Reason(r.Suspect))
	}
}

// A body that cannot be read does not take back what the last one said.
func TestUnreadable(t *testing.T) {
	r := &state.Record{Page: page.Page{Path: "/a"}}
	a := with(answer(200), evidence.Evidence{NoIndex: true})
	Content(r, a.Page, origin, false, noon)
	Answer(r, a, origin, noon)
	if Answer(r, answer(200), origin, noon); Reason(r.Answer) != NoIndex {
		t.Errorf("got %q, want %q", Reason(r.Answer), NoIndex)
	}
	if Answer(r, answer(404), origin, noon); Reason(r.Answer) != Gone {
		t.Errorf("got %q, want %q", Reason(r.Answer), Gone)
	}
}

func TestPathOn(t *testing.T) {
	for _, test := range []struct{ site, url, want string }{
		{origin, origin, "/"},
		{origin, origin + "/", "/"},
		{origin, origin + "/a?b=c#d", "/a?b=c"},
		{origin, origin + "?b", "/?b"},
		{origin, origin + "#d", "/"},
		{origin, "HTTPS://EXAMPLE.COM/%41", "/A"},
		{origin, origin + "/a/../b%c3%a9", "/b%C3%A9"},
		{origin, origin + ".evil/", ""},
		{origin, origin + ":8443/", ""},
		{origin, origin + "@evil/", ""},
		{origin, "https://user@example.com/", ""},
		{origin, "http://example.com/", ""},
		{origin, "/a", ""},
		{origin, "", ""},
		{origin, origin + "/%zz", ""},
		{"http://localhost:8080", "http://localhost:8080/a", "/a"},
		{"http://localhost:8080", "http://localhost:80801/a", ""},
	} {
		if got, ok := PathOn(test.site, test.url); ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s: got %q, %t, want %q", test.url, got, ok, test.want)
		}
	}
}

func FuzzPathOn(f *testing.F) {
	f.Add(origin, origin+"/a/../%41?b#c")
	f.Add("http://[::1]:80", "HTTP://[::1]:80?x")
	f.Fuzz(func(t *testing.T, site, url string) {
		path, ok := PathOn(site, url)
		if !ok {
			return
		}
		if path == "" || path[0] != '/' || strings.ContainsAny(path, "# \n\x00") {
			t.Errorf("%q on %q: got %q", url, site, path)
		}
		if again, ok := PathOn(site, site+path); !strings.Contains(site, "#") && (!ok || again != path) {
			t.Errorf("%q on %q: got %q, then %q, %t", url, site, path, again, ok)
		}
	})
}

func TestExpectsHTML(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/": true, "/a.d/b": true, "/a.html": true, "/a.HTM": true, "/a.php?x=1.pdf": true, "/v1.2/": true,
		"/a.pdf": false, "/a.txt": false, "/v1.2": false, "/a.b/c.svg": false, "/.well-known/x": true, "/a.": false, "/a?b.pdf": true,
	} {
		if got := ExpectsHTML(path); got != want {
			t.Errorf("%s: got %t, want %t", path, got, want)
		}
	}
}

func TestWait(t *testing.T) {
	const hours = 128
	r := &state.Record{Page: page.Page{Path: "/a"}}
	ask := func(a Answered, changed bool, want uint8) {
		t.Helper()
		Answer(r, a, origin, noon)
		if Wait(r, changed); r.Wait != want {
			t.Errorf("got %d, want %d", r.Wait, want)
		}
	}
	for _, want := range []uint8{7, 14, 28, 56, 90, 90} {
		ask(answer(200), false, want)
	}
	ask(answer(200), true, 7)
	ask(answer(304), false, 14)
	soon := []uint8{hours | 1, hours | 2, hours | 4, hours | 8, hours | 16, 1, 2, 4, 8, 16, 32, 64, 90, 90}
	soft := with(answer(200), evidence.Evidence{})
	soft.SoftNot = true
	for _, a := range []Answered{{NoReply: true}, answer(503), answer(404), answer(410), answer(401), answer(403), soft} {
		for _, want := range soon {
			ask(a, false, want)
		}
		ask(answer(200, "Etag", `"1"`), false, 7)
		ask(answer(304), false, 14)
	}
	for _, a := range []Answered{answer(301), answer(200, "X-Robots-Tag", "noindex"), answer(200, "Content-Type", "text/plain")} {
		r := &state.Record{Page: page.Page{Path: "/a.html"}}
		for _, want := range []uint8{7, 14, 28, 56, 90, 90} {
			Answer(r, a, origin, noon)
			if Wait(r, false); r.Wait != want {
				t.Errorf("%q: got %d, want %d", Reason(r.Answer), r.Wait, want)
			}
		}
	}
	// One failure after another is still one.
	ask(answer(503), false, hours|1)
	ask(answer(404), false, hours|2)
	ask(Answered{NoReply: true}, false, hours|4)
	ask(answer(401), false, hours|8)
	ask(answer(503), true, hours|1)
	ask(answer(200), false, 7)

	// What is believed may be over soon.
	for _, a := range []Answered{answer(404), answer(301), answer(200, "X-Robots-Tag", "noindex")} {
		r := &state.Record{Page: page.Page{Path: "/a"}, Answer: uint8(Good), Flags: FlagListed, Wait: 90}
		Answer(r, a, origin, noon)
		Wait(r, false)
		Believe(r)
		r.Flags &^= FlagListed
		for _, want := range soon {
			if r.Wait != want {
				t.Errorf("believed of %q: got %d, want %d", Reason(r.Answer), r.Wait, want)
			}
			Answer(r, a, origin, noon)
			Wait(r, false)
		}
	}

	for wait := range 256 { // whatever is read from disk
		r := &state.Record{Wait: uint8(wait)}
		for range 20 {
			before := r.Wait
			Wait(r, false)
			if r.Wait == 0 || r.Wait == hours || r.Wait > lastWait && r.Wait < hours || r.Wait&^hours >= 24 && r.Wait > hours {
				t.Fatalf("%d: got %d after %d", wait, r.Wait, before)
			}
		}
		if r.Wait != lastWait {
			t.Errorf("%d: got %d in the end", wait, r.Wait)
		}
	}
}

func TestDue(t *testing.T) {
	const hours = 128
	for _, r := range []state.Record{{}, {Asked: 5, Wait: 7, Flags: FlagDue}, {Asked: 5, Wait: hours | 1, Flags: FlagDue}, {Asked: 5, Wait: 7, Suspect: 1, Flags: FlagDue}, {Wait: 7, Suspect: 1}} {
		if got := Due(&r, 9); got != 0 {
			t.Errorf("%+v: got %d, want at once", r, got)
		}
	}
	for _, test := range []struct {
		wait, suspect uint8
		hours         int64
	}{
		{1, 0, 24}, {firstWait, 0, 7 * 24}, {lastWait, 0, 90 * 24}, {127, 0, 127 * 24},
		{hours | 1, 0, 1}, {hours | 16, 0, 16}, {hours, 0, 0}, {255, 0, 127},
		{1, uint8(Gone), 1}, {lastWait, uint8(NoIndex), 1}, {0, uint8(Gone), 1}, {hours | 16, uint8(Gone), 1}, {255, uint8(Gone), 1},
	} {
		r := &state.Record{Asked: noon.Unix(), Wait: test.wait, Suspect: test.suspect}
		wait := test.hours * 3600
		for _, hash := range []uint64{0, 1023, 1024, math.MaxUint64} {
			if got := Due(r, hash) - noon.Unix(); got < wait || got > wait+wait/2 || hash%1024 == 0 && got != wait {
				t.Errorf("%+v, %d: got %d", test, hash, got)
			}
		}
	}
	// Spread evenly: 64 bins of 1,000 expected each; chi-squared with 63 degrees of
	// freedom is over 103.4 once in a thousand, and these hashes are always the same.
	const bins, each = 64, 1000
	var count [bins]int
	r := &state.Record{Asked: noon.Unix(), Wait: firstWait}
	path := make([]byte, 0, 16)
	for i := range bins * each {
		path = append(path[:0], "/page/"...)
		for n := i; n > 0; n /= 10 {
			path = append(path, byte('0'+n%10))
		}
		later := Due(r, Hash(string(path))) - r.Asked - firstWait*86400
		count[later*bins/(firstWait*43200)]++
	}
	var chi float64
	for _, n := range count {
		chi += float64((n-each)*(n-each)) / each
	}
	if chi > 103.4 {
		t.Errorf("got chi-squared %.1f: %v", chi, count)
	}
}

// What only its visitors and links name is listed as HTML alone: a sitemap is no list
// of downloads.
func TestAnswerDiscovered(t *testing.T) {
	r := &state.Record{Page: page.Page{Path: "/a.xyz"}, Flags: FlagDiscovered}
	Answer(r, answer(200, "Content-Type", "application/x-xyz"), origin, noon)
	if Reason(r.Answer) != NotHTML {
		t.Errorf("got %q, want %q", Reason(r.Answer), NotHTML)
	}
	Answer(r, answer(200), origin, noon.Add(time.Hour))
	if Reason(r.Answer) != Good {
		t.Errorf("HTML: got %q, want %q", Reason(r.Answer), Good)
	}
}
