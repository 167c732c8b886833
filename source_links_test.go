package sitemap

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// TestDiscoverySettings is of JSON, whose settings no Caddyfile has checked.
func TestDiscoverySettings(t *testing.T) {
	const traffic, links, logs = "traffic", "links", "access_log"
	for _, test := range []struct{ source, settings, want string }{
		{links, `{"query": [], "expire": 0, "max_paths": 0, "depth": 0}`, ""},
		{traffic, `{"query": ["page", "Page", "ids[]", "a b", "{x"], "unlinked": [], "expire": "1h", "max_paths": 1}`, ""},
		{traffic, `{"max_paths": 10000000, "unlinked": ["*"]}`, ""},

		{traffic, `{"query": [""]}`, "traffic: query has an empty name"},
		{traffic, `{"unlinked": [""]}`, "traffic: unlinked: path pattern '' matches nothing: it begins with '/' or '*'"},
		{traffic, `{"max_paths": -1}`, "traffic: max_paths is -1: it is 1 to 10000000"},
		{traffic, `{"depth": 3}`, `json: unknown field "depth"`},
		{traffic, `{"unlinked": [{"match": ["/a"]}]}`, "cannot unmarshal object into Go struct field SourceTraffic.Discovery.unlinked of type string"},

		{links, `{"depth": 250}`, ""},
		{links, `{"unlinked": ["/a"]}`, "links: unlinked pages have visitors, and no links: it belongs to access_log or traffic"},

		{logs, `{}`, "access_log: no log is named"},
		{logs, `{"files": ["/a.log", ""]}`, "access_log: a log has an empty name"},
		{logs, `{"files": ["/{http.request.host}.log"]}`, "access_log '/{http.request.host}.log': unrecognized placeholder {http.request.host}"},
		{logs, `{"files": ["/{x}.log"]}`, "access_log '/{x}.log': unrecognized placeholder {x}"},
		{logs, `{"files": ["/a.log"], "format": "xml"}`, "access_log: unknown format 'xml': there are auto, json, common, combined"},
		{logs, `{"files": ["/a.log"], "max_paths": -1}`, "access_log: max_paths is -1: it is 1 to 10000000"},
		{logs, `{"files": ["/a.log"], "fields": {}}`, `json: unknown field "fields"`},
	} {
		source := map[string]discoverer{traffic: new(SourceTraffic), links: new(SourceLinks), logs: new(SourceAccessLog)}[test.source]
		d := json.NewDecoder(bytes.NewReader([]byte(test.settings)))
		d.DisallowUnknownFields()
		err := d.Decode(source)
		if err == nil {
			h := &Handler{sources: []Source{source}, sourceNames: []string{test.source}, logger: zap.NewNop()}
			if h.discovery, err = h.discovers(); err == nil {
				_, err = h.logReaders()
			}
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("%s %s: got %v, want %s", test.source, test.settings, err, test.want)
		}
	}
}

// TestDiscovers: what the sources of a handler say together.
func TestDiscovers(t *testing.T) {
	const day = 24 * time.Hour
	links := &SourceLinks{Depth: 3, Discovery: Discovery{Query: []string{"page", "lang"}, MaxPaths: 10}}
	traffic := &SourceTraffic{Discovery{Query: []string{"lang", "id"}, Expire: caddy.Duration(time.Hour), MaxPaths: 5, Unlinked: []string{"/t"}}}
	logs := &SourceAccessLog{Files: []string{"a"}, Discovery: Discovery{Expire: caddy.Duration(2 * time.Hour), MaxPaths: 20, Unlinked: []string{"/l"}}}
	for name, test := range map[string]struct {
		sources  []Source
		off      bool
		want     *discovery // nil: none
		unlinked string     // a path that needs no link; "": there is none
		err      string
	}{
		"links":         {sources: []Source{&SourceLinks{}}, want: &discovery{links: true, depth: 20, expire: 90 * day, maxPaths: 1_000_000}},
		"traffic":       {sources: []Source{&SourceTraffic{}}, want: &discovery{visitors: true, expire: 90 * day, maxPaths: 1_000_000}},
		"all":           {sources: []Source{links, &SourceFiles{}, traffic, logs}, want: &discovery{links: true, visitors: true, depth: 3, query: []string{"page", "lang", "id"}, expire: 90 * day, maxPaths: 20}, unlinked: "/l"},
		"logs":          {sources: []Source{logs, logs}, want: &discovery{visitors: true, expire: 2 * time.Hour, maxPaths: 20}, unlinked: "/L"},
		"files":         {sources: []Source{&SourceFiles{}}},
		"links twice":   {sources: []Source{links, links}, err: "links is given twice"},
		"traffic twice": {sources: []Source{traffic, &SourceFiles{}, traffic}, err: "traffic is given twice"},
		"crawl off":     {sources: []Source{&SourceFiles{}, traffic}, off: true, err: "traffic lists only pages that were fetched, and crawl is off"},
	} {
		h := &Handler{sources: test.sources, settings: settings{crawl: Crawl{Off: test.off}}}
		for _, source := range test.sources {
			h.sourceNames = append(h.sourceNames, caddy.GetModuleName(source))
		}
		got, err := h.discovers()
		if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err || (got == nil) != (test.want == nil) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if got == nil || test.want == nil {
			continue
		}
		if (got.isUnlinked == nil) != (test.unlinked == "") || test.unlinked != "" && (!got.isUnlinked(test.unlinked) || got.isUnlinked("/other")) {
			t.Errorf("%s: %s needs a link, or /other none", name, test.unlinked)
		}
		same := *got
		same.unlinked, same.isUnlinked, same.filter = nil, nil, nil
		if !reflect.DeepEqual(&same, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, same, test.want)
		}
	}
	if want := []string{"page", "lang"}; !slices.Equal(links.Query, want) {
		t.Errorf("the query of links became %q", links.Query)
	}
}

// TestMaxPaths: a site on demand remembers few paths, and what has no room is counted and
// logged.
func TestMaxPaths(t *testing.T) {
	v := newVisiting(t, &SourceTraffic{Discovery{MaxPaths: 2, Expire: caddy.Duration(time.Hour)}})
	s := v.site("a.example", "")
	for _, path := range []string{"/c", "/a", "/b", "/a"} {
		s.Visit(path, v.clock.Unix())
	}
	v.want(s, "/a", "/c")
	v.want(s, "/a", "/c")
	if got := v.messages()["more pages are visited than are remembered: raise max_paths"]; got != 1 {
		t.Errorf("got %d warnings, want 1", got)
	}
	v.clock = v.clock.Add(30 * time.Minute)
	s.Visit("/a", v.clock.Unix())
	v.clock = v.clock.Add(time.Hour)
	v.want(s, "/a")
	for onDemand, most := range map[bool]int{false: 1_000_000, true: 500} {
		h := &Handler{discovery: &discovery{maxPaths: 1_000_000}}
		if got := h.discovery.most(onDemand); got != most {
			t.Errorf("on demand %t: got %d, want %d", onDemand, got, most)
		}
	}
}

// TestVisitOfAlias: a visit to an alias is one to the site that it stands for.
func TestVisitOfAlias(t *testing.T) {
	v := newVisiting(t, &SourceTraffic{})
	main, alias := v.site("a.example", ""), v.site("www.a.example", "")
	alias.main.Store(main)
	alias.Visit("/a", v.clock.Unix())
	v.want(main, "/a")
	v.want(alias)
}
