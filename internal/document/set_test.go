package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

func TestNames(t *testing.T) {
	whole := "-" + strings.Repeat("a", 32)
	all := Beside{People: new(People), Feed: true, Stylesheet: true, LLMs: true}
	for name, test := range map[string]struct {
		sections     string
		beside       Beside
		want, others string
	}{
		"all": {"pt-br 0123456789a a", all,
			".xml .xml.gz .txt -000000000000.xml -0123456789ab.xml.gz -fedcba987654.txt -a.txt -pt-br.xml -pt-br-0123456789ab.xml -0123456789a.xml " +
				"-0123456789a-0123456789ab.xml.gz .html .atom .css -html.css -html.js " + whole + ".html",
			"/ .gz .txt.gz .xml.xml .xml/ -.xml _0123456789ab.xml -0123456789ab -0123456789ab.html -news.xml -b.xml -A.xml -a-.xml --a.xml -a_b.xml " +
				"-0123456789AB.xml -00000\x00000000.xml -0123456789ab-0123456789ab.xml -a-0123456789ab-0123456789ab.xml -0123456789abc.xml " +
				"-0123456789ab.atom .css.gz .html/ -a.html -html.xml /llms.txt llms.txt -llms.html " +
				whole + ".xml " + whole + "0.html " + whole[1:] + ".html " + whole[:32] + "F.html"},
		"nothing":             {"", Beside{}, ".xml .txt -0123456789ab.xml", ".html -html.css -html.js .atom .css -news.xml -.xml -a.xml " + whole + ".html"},
		"news":                {"", Beside{News: new(NewsOf)}, "-news.xml -news.xml.gz", "-news.txt -news -news.html -News.xml news.xml -news-.xml -news-0123456789ab.xml"},
		"a section like news": {"news", Beside{}, "-news.txt -news-0123456789ab.xml", ""},
		"no name":             {"a(b|c", Beside{}, "-a(b|c.xml", "-c.xml"},
	} {
		names := Names(strings.Fields(test.sections), test.beside)
		for _, one := range strings.Fields(test.want) {
			if !names.MatchString(one) {
				t.Errorf("%s: %q is none", name, one)
			}
		}
		for _, one := range append(strings.Fields(test.others), "", ".xml\n") {
			if names.MatchString(one) {
				t.Errorf("%s: %q is one", name, one)
			}
		}
	}
}

// TestFindForm: a document has the forms of its kind.
func TestFindForm(t *testing.T) {
	o := inFolders(newsOptions(), "x:b")
	o.ShardURLs = 100
	o.People = new(People)
	s := build(t, append([]page.Page{articleAt("/", 0)}, foldersOf("a:300", "b:3")...), nil, o)
	shard := strings.TrimSuffix(s.Shards[0].Name, ".xml")
	var got []string
	for _, name := range strings.Fields(".xml .xml.gz .txt # #.xml #.xml.gz #.txt -x.xml -x.txt -news.xml -news.xml.gz -news.txt .html .html.gz -y.xml -y.txt") {
		d, form := s.FindForm(strings.Replace(name, "#", shard, 1))
		if d != nil {
			got = append(got, fmt.Sprint(name, "=", form, strings.Replace(d.Name, shard, "#", 1)))
		}
	}
	const want = ".xml=0.xml .xml.gz=2.xml #.xml=0#.xml #.xml.gz=2#.xml #.txt=3#.xml -x.xml=0-x.xml -x.txt=3-x.xml -news.xml=0-news.xml -news.xml.gz=2-news.xml .html=0.html"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// FuzzSectionOf: each section has the documents of its name, and no other. No name of a section is that of a shard.
func FuzzSectionOf(f *testing.F) {
	const good = "a blog pt-br 0 0123456789a 0123456789abc a--b 0123456789ab-a zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
	const bad = "- a- -a Blog é a.b a/b zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz 0123456789ab a-0123456789ab"
	for _, name := range strings.Fields(good) {
		if err := CheckSectionName(name); err != nil {
			f.Error(err)
		}
		f.Add(name, uint64(1)<<40)
	}
	for _, name := range append(strings.Fields(bad), "", "a\n") {
		if CheckSectionName(name) == nil {
			f.Errorf("%q may be a section", name)
		}
		f.Add(name, uint64(0))
	}
	f.Fuzz(func(t *testing.T, section string, id uint64) {
		id &= 1<<idBits - 1
		for _, name := range []string{".xml", ".html", shardName("", id), "-.xml"} {
			if got := SectionOf(name); got != "" {
				t.Errorf("%s: got section %q", name, got)
			}
		}
		if CheckSectionName(section) != nil {
			return
		}
		names := Names([]string{section}, Beside{})
		for _, name := range []string{NameOfSection(section), shardName(section, id)} {
			if got := SectionOf(name); got != section || !names.MatchString(name) {
				t.Errorf("%q: got section %q", name, got)
			}
		}
	})
}

// nameOf is the name of a shard that begins at a letter.
func nameOf(first string) string { return shardName("", ShardID(first)) }

// fake is a set of shards that begin at these letters, and are named by them.
func fake(previous *Set, now time.Time, firsts ...string) *Set {
	var shards []*Document
	for _, first := range firsts {
		shards = append(shards, &Document{Name: nameOf(first), First: first})
	}
	if len(shards) == 1 {
		shards[0].Name = ".xml"
		return retiring(&Set{Index: shards[0]}, previous, now)
	}
	return retiring(&Set{Index: &Document{Name: ".xml"}, Shards: shards}, previous, now)
}

func retiring(s, previous *Set, now time.Time) *Set {
	s.complete()
	s.retire(previous, now, func(string) string { return "" })
	return s
}

func TestRetiredNames(t *testing.T) {
	var s *Set
	for i, test := range []struct {
		firsts string
		want   string // by letter: the shard that answers for it
	}{
		{"a f m t", "a:a f:f m:m t:t x:"},
		{"a m t", "a:a f:a m:m t:t"},       // the pages of f went into the shard before it,
		{"a e m t", "a:a e:e f:e m:m t:t"}, // whose cut moved,
		{"a f m t", "a:a e:a f:f m:m t:t"}, // and the name came back
		{"b m t", "a:b b:b e:b f:b m:m"},   // the first page of a went away: the shard that would hold it
		{"b", "a:b b:b e:b f:b m:b t:b x:"},
		{"b m", "b:b m:m t:m a:b"},
	} {
		s = fake(s, testTime, strings.Fields(test.firsts)...)
		for _, pair := range strings.Fields(test.want) {
			name, want, _ := strings.Cut(pair, ":")
			got := ""
			if d := s.Find(nameOf(name)); d != nil {
				got = d.First
			}
			if got != want {
				t.Errorf("step %d: %s is the shard from %q, want %q", i, name, got, want)
			}
		}
	}
	if d := s.Find(".xml"); !isIndex(d) {
		t.Errorf("the sitemap is %+v, want the index", d)
	}
}

func TestRetiredNamesEnd(t *testing.T) {
	s := fake(fake(nil, testTime, "a", "f"), testTime, "a", "g")
	soon := fake(s, testTime.Add(retiredFor-time.Second), "a", "g")
	if soon.Find(nameOf("f")) == nil || !s.Equal(soon) {
		t.Error("the name is forgotten before its 90 days")
	}
	later := fake(s, testTime.Add(retiredFor), "a", "g")
	if later.Find(nameOf("f")) != nil || s.Equal(later) {
		t.Error("the name is known after its 90 days")
	}

	s = new(Set)
	for i := range maxRetired + 5 {
		s.retired = append(s.retired, retired{Suffix: fmt.Sprint("-", i), At: testTime})
	}
	s = fake(s, testTime, "a", "b")
	if len(s.retired) != maxRetired || s.Find("-4.xml") != nil || s.Find("-5.xml") == nil {
		t.Errorf("%d names are remembered, want the latest %d", len(s.retired), maxRetired)
	}
}

func TestRestore(t *testing.T) {
	many := build(t, numbered(1000), nil, Options{ShardURLs: 50})
	fewer := build(t, numbered(1100)[200:], many, Options{ShardURLs: 50})
	fewer.LeftOut[NoRoom] = 3
	if len(fewer.retired) == 0 {
		t.Fatal("no names were retired")
	}
	news := newsOptions()
	news.ShardURLs = 100
	all := inFolders(beside, "x:a", "y:b")
	all.ShardURLs = 100
	for name, s := range map[string]*Set{
		"retired": fewer,
		"all":     build(t, foldersOf("a:300", "b:3", "c:300"), nil, all),
		"news":    build(t, append([]page.Page{articleAt("/", 0)}, numbered(300)...), nil, news),
	} {
		again := restored(t, s)
		if !s.Equal(again) || again.Pages != s.Pages || again.Bytes != s.Bytes || !maps.Equal(again.LeftOut, s.LeftOut) || !slices.Equal(again.Sections(), s.Sections()) {
			t.Errorf("%s: got %+v, want %+v", name, again, s)
		}
		for i, d := range again.All() {
			if was := s.All()[i]; !isSame(d, was) || read(t, d.Open) != read(t, was.Open) || d.Type != was.Type || d.First != was.First {
				t.Errorf("%s: got %+v, want %+v", name, d, was)
			}
		}
	}
	// What follows a restart carries over.
	again := restored(t, many)
	if got := changed(again, build(t, numbered(1000), again, Options{ShardURLs: 50, Now: testTime.Add(time.Hour)})); got != nil {
		t.Errorf("%q changed", got)
	}
}

// kept returns a generation with the documents of a set.
func kept(t testing.TB, s *Set) (meta json.RawMessage, g *record.Generation) {
	t.Helper()
	st := record.New(record.NewMemory(), "")
	meta, documents, err := s.Documents()
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(documents) // they come in any order
	return meta, st.Last().WithDocuments(nil, documents)
}

// restored is a set after a restart.
func restored(t testing.TB, s *Set) *Set {
	t.Helper()
	meta, g := kept(t, s)
	again, err := Restore(t.Context(), meta, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestRestoreMalformed: what is not whole is damaged.
func TestRestoreMalformed(t *testing.T) {
	meta, g := kept(t, build(t, numbered(1000), nil, Options{ShardURLs: 50}))
	all := g.Documents()
	spoilt := slices.Clone(all)
	spoilt[1].Meta = nil
	for name, test := range map[string]struct {
		meta      string
		documents []record.StoredDocument
	}{
		"nothing":            {"{}", nil},
		"no index":           {string(meta), all[1:]},
		"no shards":          {string(meta), all[:1]},
		"not all shards":     {string(meta), all[:len(all)-1]},
		"meta":               {"[]", all},
		"no meta":            {"", all},
		"no document's meta": {string(meta), spoilt},
	} {
		if s, err := Restore(t.Context(), json.RawMessage(test.meta), g.WithDocuments(nil, test.documents), nil); !errors.Is(err, record.ErrDamaged) {
			t.Errorf("%s: got %+v, %v", name, s, err)
		}
	}
}
