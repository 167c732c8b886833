package indexing

import "testing"

// TestRule: each page has its date, or none, by one rule.
func TestRule(t *testing.T) {
	const (
		dated    = "lastmod:now-217h "
		template = "changed:now-24h found:now-24h before:now-25h dated:now-24h "
		late     = "changed:now-24h found:now-24h before:now-96h dated:now-24h "
	)
	for name, test := range map[string]struct {
		record string
		mode   Mode
		want   string
	}{
		"declared":                {dated + "declared:now-217h", Auto, ByPage},
		"by a list":               {dated + "mod:now-217h", Auto, ByList},
		"by its file":             {dated + "file mod:now-217h", Auto, ByFile},
		"by the file's time":      {dated + "file made mod:now-217h", Auto, ByFile},
		"by the header":           {dated + "header:now-217h", Auto, ByHeader},
		"by the day":              {dated + "day changed:now-216h found:now-217h", Auto, ByDay},
		"a day before a template": {dated + "day changed:now-24h found:now-24h", Auto, ByEarlier},
		"before a template":       {dated + "file mod:now", Auto, ByEarlier},
		"lastmod off":             {"", Off, DatesOff},
		"lastmod mtime":           {"", ModTime, NotBySource},
		"lastmod mtime, future":   {"mod:now+24h", ModTime, NotBySource},
		"nothing":                 {"", Auto, NothingTells},
		"to be confirmed":         {"doubt", Auto, Unconfirmed},
		"the first date":          {"declared:now date-doubt", Auto, Unconfirmed},
		"noise":                   {"noisy", Auto, TextMoves},
		"noise with a date":       {"noisy declared:now+48h", Auto, TextMoves},
		"a change at each fetch":  {"streak", Auto, TextMoves},
		"a date that moves":       {"declared:now moves", Auto, NothingTells},
		"declared by a build":     {"declared:now-720h", Auto, OfBuild},
		"declared too early":      {late + "declared:now-217h", Auto, FoundLate},
		"declared, of a template": {template + "declared:now-217h", Auto, OfTemplate},
		"declared for later":      {"declared:now+24h", Auto, NothingTells},
		"a list of the future":    {"mod:now+24h", Auto, NothingTells},
		"a list of a build":       {"mod:now-720h", Auto, OfBuild},
		"not decided yet":         {"dated: header:now-216h", Auto, Undecided},
		"a change not decided":    {"changed:now before:now-1h", Auto, Undecided},
		"an upload, by files":     {"file mod:now-217h", Auto, OfUpload},
		"an upload, by header":    {"header:now-217h", Auto, OfUpload},
		"made just now":           {"header:now-1h", Auto, NothingTells},
		"a template":              {template, Auto, OfTemplate},
		"found late":              {late, Auto, FoundLate},
		"after a failure":         {template + "before:", Auto, FoundLate},
	} {
		// A page that says nothing of when it changed, fetched an hour ago.
		record := rec("/a first:now-216h fetched:now-1h listed dated:now-216h " + test.record)
		o := rules()
		o.Dates = test.mode
		d := newDates(&o)
		for range fewestAlike {
			build := date{unix: instant("now-720h")}
			d.stated[declared].add(build)
			d.stated[listed].add(build)
		}
		if got := d.ruleOf(&record); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
