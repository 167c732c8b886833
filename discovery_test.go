package sitemap

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

// TestDiscoverySettings is of JSON, whose settings no Caddyfile has checked.
func TestDiscoverySettings(t *testing.T) {
	t.Setenv("SITEMAP_LOGS", "/var/log")
	t.Setenv("SITEMAP_NONE", "")
	for _, test := range []struct {
		sources string
		want    string // how the error ends; "": there is none
	}{
		{`{"source": "links"}, {"source": "traffic"}, {"source": "access_log", "files": ["/a.log"]}`, ""},
		{`{"source": "links", "query": [], "expire": 0, "max_paths": 0, "depth": 0}`, ""},
		{`{"source": "traffic", "query": ["page", "Page", "ids[]", "a b", "{x"], "unlinked": [], "expire": "1h", "max_paths": 1}`, ""},
		{`{"source": "traffic", "max_paths": 10000000, "unlinked": [{"match": ["*"], "min_visitors": 100}, {"match": ["/{a,b}"], "min_visitors": 1}]}`, ""},

		{`{"source": "traffic", "query": [""]}`, "traffic: query has an empty name"},
		{`{"source": "traffic", "query": ["page", "page"]}`, "traffic: query has 'page' twice"},
		{`{"source": "traffic", "query": ["utm_source"]}`, "traffic: query 'utm_source': a tracking parameter tells no pages apart"},
		{`{"source": "traffic", "query": ["page=1"]}`, "traffic: query 'page=1': the names of parameters are wanted, such as page lang"},
		{`{"source": "traffic", "query": ["?page"]}`, "traffic: query '?page': the names of parameters are wanted, such as page lang"},
		{`{"source": "traffic", "query": ["page&lang"]}`, "traffic: query 'page&lang': the names of parameters are wanted, such as page lang"},
		{`{"source": "traffic", "query": ["*"]}`, "traffic: query '*': the names of parameters are wanted, such as page lang"},
		{`{"source": "traffic", "query": ["{env.SITEMAP_LOGS}"]}`, "traffic: query '{env.SITEMAP_LOGS}': placeholders are not replaced"},
		{`{"source": "traffic", "query": ["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","18","19","20","21"]}`, "traffic: query names 21 parameters: at most 20 tell pages apart"},
		{`{"source": "traffic", "unlinked": [{}]}`, "traffic: unlinked has no path pattern"},
		{`{"source": "traffic", "unlinked": [{"match": ["/a"]}, {"match": [], "min_visitors": 2}]}`, "traffic: unlinked has no path pattern"},
		{`{"source": "traffic", "unlinked": [{"match": ["/a", "b"]}]}`, "traffic: unlinked: path pattern 'b' matches nothing: it begins with '/' or '*'"},
		{`{"source": "traffic", "unlinked": [{"match": [""]}]}`, "traffic: unlinked: path pattern '' matches nothing: it begins with '/' or '*'"},
		{`{"source": "traffic", "unlinked": [{"match": ["/[a"]}]}`, "traffic: unlinked: path pattern in '/[a': syntax error in pattern"},
		{`{"source": "traffic", "unlinked": [{"match": ["/{env.SITEMAP_LOGS}"]}]}`, "traffic: unlinked: path pattern '/{env.SITEMAP_LOGS}': {env.SITEMAP_LOGS} has no value here"},
		{`{"source": "traffic", "unlinked": [{"match": ["/a"], "min_visitors": -1}]}`, "traffic: min_visitors is -1: it is 1 to 100"},
		{`{"source": "traffic", "unlinked": [{"match": ["/a"], "min_visitors": 101}]}`, "traffic: min_visitors is 101: it is 1 to 100"},
		{`{"source": "traffic", "expire": "59m"}`, "traffic: expire is 59m0s: the shortest is 1h0m0s"},
		{`{"source": "traffic", "expire": -1}`, "traffic: expire is -1ns: the shortest is 1h0m0s"},
		{`{"source": "traffic", "max_paths": -1}`, "traffic: max_paths is -1: it is 1 to 10000000"},
		{`{"source": "traffic", "max_paths": 10000001}`, "traffic: max_paths is 10000001: it is 1 to 10000000"},
		{`{"source": "traffic", "depth": 3}`, `json: unknown field "depth"`},
		{`{"source": "traffic", "unlinked": [{"matches": ["/a"]}]}`, `json: unknown field "matches"`},

		{`{"source": "links", "depth": 250}`, ""},
		{`{"source": "links", "depth": -1}`, "links: depth is -1: it is 1 to 250"},
		{`{"source": "links", "depth": 251}`, "links: depth is 251: it is 1 to 250"},
		{`{"source": "links", "query": ["gclid"]}`, "links: query 'gclid': a tracking parameter tells no pages apart"},
		{`{"source": "links", "unlinked": [{"match": ["/a"]}]}`, "links: unlinked pages have visitors, and no links: it belongs to access_log or traffic"},
		{`{"source": "links", "files": ["/a.log"]}`, `json: unknown field "files"`},

		{`{"source": "access_log"}`, "access_log: no log is named"},
		{`{"source": "access_log", "files": []}`, "access_log: no log is named"},
		{`{"source": "access_log", "files": ["/a.log", ""]}`, "access_log: a log has an empty name"},
		{`{"source": "access_log", "files": ["/[a"]}`, "access_log: '/[a' is no pattern of names: syntax error in pattern"},
		{`{"source": "access_log", "files": ["{env.SITEMAP_LOGS}/*.log", "a.log"]}`, ""},
		{`{"source": "access_log", "files": ["{env.SITEMAP_NONE}/a.log"]}`, "access_log '{env.SITEMAP_NONE}/a.log': evaluated placeholder {env.SITEMAP_NONE} is empty"},
		{`{"source": "access_log", "files": ["/{http.request.host}.log"]}`, "access_log: '/{http.request.host}.log': {http.request.host} has no value here: of placeholders, only global ones such as {env.*} are replaced"},
		{`{"source": "access_log", "files": ["/{x}.log"]}`, "access_log '/{x}.log': unrecognized placeholder {x}"},
		{`{"source": "access_log", "files": ["/a.log"], "history": "59m"}`, "access_log: history is 59m0s: the shortest is 1h0m0s"},
		{`{"source": "access_log", "files": ["/a.log"], "history": -1}`, "access_log: history is -1ns: the shortest is 1h0m0s"},
		{`{"source": "access_log", "files": ["/a.log"], "format": "xml"}`, "access_log: unknown format 'xml': there are auto, json, common, combined"},
		{`{"source": "access_log", "files": ["/a.log"], "fields": {"uri": "a>b", "host": "c"}, "format": "json"}`, ""},
		{`{"source": "access_log", "files": ["/a.log"], "fields": {"uri": "a"}, "format": "common"}`, "access_log: fields are for lines of JSON, and format is common"},
		{`{"source": "access_log", "files": ["/a.log"], "fields": {"url": "a"}}`, "access_log: unknown field 'url': there are " + strings.Join(fieldNames, ", ")},
		{`{"source": "access_log", "files": ["/a.log"], "fields": {"uri": ""}}`, "access_log: field uri: no path"},
		{`{"source": "access_log", "files": ["/a.log"], "fields": {"uri": "a>"}}`, "access_log: field uri: 'a>' has an empty key"},
		{`{"source": "access_log", "files": ["/a.log"], "fields": {"uri": "{env.SITEMAP_LOGS}"}}`, "access_log: field uri: '{env.SITEMAP_LOGS}': placeholders are not replaced"},
		{`{"source": "access_log", "files": ["/a.log"], "fields": {"uri": "a", "host": "a"}}`, "access_log: fields host and uri are both read from a"},
		{`{"source": "access_log", "files": ["/a.log"], "max_paths": -1}`, "access_log: max_paths is -1: it is 1 to 10000000"},
		{`{"source": "access_log", "file": "/a.log"}`, `json: unknown field "file"`},

		{`{"source": "access_log", "files": ["/a.log"]}, {"source": "access_log", "files": ["/b.log"]}`, ""},
		{`{"source": "traffic"}, {"source": "files"}, {"source": "traffic", "query": ["page"]}`, "traffic is given twice"},
		{`{"source": "links"}, {"source": "links"}`, "links is given twice"},
	} {
		checkSettings(t, `"sources": [`+test.sources+`]`, test.want)
	}
	for source, settings := range map[string]string{"traffic": "", "links": "", "access_log": `, "files": ["/a.log"]`} {
		checkSettings(t, `"ask": {"off": true}, "sources": [{"source": "`+source+`"`+settings+`}]`,
			source+" lists a page only once it was asked for, and ask is off")
	}
}

// checkSettings compares how the error for a handler's settings ends; "": there is
// none.
func checkSettings(t *testing.T, settings, want string) {
	t.Helper()
	err := validate(t, `{"handler": "sitemap", `+settings+`}`)
	if want == "" && err != nil {
		t.Errorf("%s: got %v", settings, err)
	}
	if want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
		t.Errorf("%s: got %v, want %s", settings, err, want)
	}
}

// TestDiscoveryDefaults: what a source says that is given nothing, and what several
// say together.
func TestDiscoveryDefaults(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		source discoverer
		want   discovery
	}{
		"links":      {&SourceLinks{}, discovery{from: discover.FromLinks, depth: 20, expire: 90 * day, maxPaths: 1_000_000}},
		"traffic":    {&SourceTraffic{}, discovery{from: discover.FromTraffic, expire: 90 * day, maxPaths: 1_000_000}},
		"access_log": {&SourceAccessLog{Files: []string{"a"}}, discovery{from: discover.FromLog, expire: 90 * day, maxPaths: 1_000_000}},
	} {
		if got, err := test.source.discovers(); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, test.want)
		}
	}
	d, err := (&Discovery{Unlinked: []Unlinked{{Match: []string{"/a"}}}}).compile(0)
	if err != nil || d.unlinked[0].MinVisitors != 3 {
		t.Errorf("unlinked: got %+v, %v, want 3 visitors", d.unlinked, err)
	}
	logs := &SourceAccessLog{}
	if got := logs.history(); got != 30*day {
		t.Errorf("history: got %s", got)
	}
	logs.History = caddy.Duration(time.Hour)
	if got := logs.history(); got != time.Hour {
		t.Errorf("history: got %s, want 1h", got)
	}
}

func TestDiscoverersAddUp(t *testing.T) {
	links := &SourceLinks{Depth: 3, Discovery: Discovery{Query: []string{"page", "lang"}, MaxPaths: 10}}
	traffic := &SourceTraffic{Discovery{Query: []string{"lang", "id"}, Expire: caddy.Duration(time.Hour), MaxPaths: 5, Unlinked: []Unlinked{{Match: []string{"/t"}, MinVisitors: 9}}}}
	logs := &SourceAccessLog{Files: []string{"a"}, Discovery: Discovery{Expire: caddy.Duration(2 * time.Hour), MaxPaths: 20, Unlinked: []Unlinked{{Match: []string{"/l"}}}}}
	h := &Handler{sources: []Source{links, &SourceFiles{}, traffic, logs}, sourceNames: []string{"links", "files", "traffic", "access_log"}}
	got, err := h.discovers()
	if err != nil {
		t.Fatal(err)
	}
	if got.from != discover.FromLinks|discover.FromTraffic|discover.FromLog || got.depth != 3 || got.expire != 90*24*time.Hour || got.maxPaths != 20 {
		t.Errorf("got %+v", got)
	}
	if want := []string{"page", "lang", "id"}; !reflect.DeepEqual(got.query, want) {
		t.Errorf("query: got %q, want %q", got.query, want)
	}
	if len(got.unlinked) != 2 || got.unlinked[0].MinVisitors != 9 || !got.unlinked[1].Match.Match("/l") {
		t.Errorf("unlinked: got %+v", got.unlinked)
	}
	if want := []string{"page", "lang"}; !reflect.DeepEqual(links.Query, want) {
		t.Errorf("the query of links became %q", links.Query)
	}
	h = &Handler{sources: []Source{&SourceFiles{}}, sourceNames: []string{"files"}}
	if got, err := h.discovers(); got != nil || err != nil {
		t.Errorf("of files alone: got %+v, %v", got, err)
	}
}

func TestTag(t *testing.T) {
	const date, other = "Sun, 01 Jun 2025 12:00:00 GMT", "Sun, 01 Jun 2025 12:00:01 GMT"
	type validators struct{ etag, modified string }
	for _, same := range [][]validators{
		{{`"a"`, ""}, {`W/"a"`, ""}, {`"a-gzip"`, ""}, {`"a-zstd"`, ""}, {`W/"a-br"`, ""}, {`"a"`, date}, {`"a"`, other}, {`a`, ""}},
		{{`"b"`, ""}},
		{{`"A"`, ""}},
		{{`"gzip"`, ""}},
		{{"", date}},
		{{"", other}},
		{{`""`, ""}, {`W/""`, date}},
		{{"", ""}},
	} {
		for _, v := range same {
			if got, want := tag(v.etag, v.modified), tag(same[0].etag, same[0].modified); got != want {
				t.Errorf("tag(%s, %s): got %d, want that of %s, %d", v.etag, v.modified, got, same[0].etag, want)
			}
		}
		if got := tag(same[0].etag, same[0].modified); (got == 0) != (same[0] == validators{}) {
			t.Errorf("tag(%s, %s): got %d", same[0].etag, same[0].modified, got)
		}
	}
	tags := make(map[uint32]validators)
	for _, v := range []validators{{`"a"`, ""}, {`"b"`, ""}, {`"A"`, ""}, {`"gzip"`, ""}, {"", date}, {"", other}, {`""`, ""}} {
		if first, ok := tags[tag(v.etag, v.modified)]; ok {
			t.Errorf("%v and %v have the same tag", first, v)
		}
		tags[tag(v.etag, v.modified)] = v
	}
	if tagOf(&accesslog.Visit{ETag: `"a"`, Cookie: true}) != 0 {
		t.Error("an answer to somebody in particular has a tag")
	}
	if got, want := tagOf(&accesslog.Visit{ETag: `"a"`, LastModified: date}), tag(`"a"`, ""); got != want {
		t.Errorf("a visit: got %d, want %d", got, want)
	}
}
