package files

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
)

// Response is a server's response for a path; the zero value: there is none.
type Response struct {
	Status int
	To     string // the normal path that a redirect leads to; "": to none of this server
	Body   []byte
}

// verdict is what the server says of files: whether it serves them without ".html".
type verdict uint8

const (
	unknown verdict = iota
	clean
	long // by their names alone
)

// LearnSpelling returns how the server spells the URLs of files: it requests the paths of a few with ".html" and without.
// Known is false if none of them says anything: then there are no clean URLs, until it is asked again.
func LearnSpelling(ctx context.Context, o Options, get func(path string) Response) (s Spelling, known bool, err error) {
	o.Spelling = Spelling{}
	paths, err := firstPages(ctx, o, 1000)
	var apart, beside []string // without ".html"; beside each of the second kind is a folder with the same name
	for _, path := range paths {
		short, isHTML := strings.CutSuffix(path, ".html")
		isBelow := func(other string) bool { return strings.HasPrefix(other, short+"/") }
		switch {
		case isHTML && slices.ContainsFunc(paths, isBelow):
			beside = append(beside, short)
		case isHTML:
			apart = append(apart, short)
		}
	}
	// With try_files {path} {path}/ {path}.html, the shorter form leads to the folder of that name: unless the files beside
	// folders say otherwise, the longer one is kept there.
	saysBeside := allSay(beside, get)
	says := cmp.Or(allSay(apart, get), saysBeside)
	s = Spelling{Clean: says == clean, KeepBesideFolders: saysBeside != clean}
	return s, says != unknown, cmp.Or(err, ctx.Err())
}

// allSay returns what three of several paths without ".html" say: one that is not served decides.
func allSay(paths []string, get func(path string) Response) (all verdict) {
	for i := range min(len(paths), 3) {
		// Spread over the folders.
		all = max(all, judge(paths[(i+1)*len(paths)/4], get))
	}
	return all
}

// judge returns what the responses for one path say.
func judge(path string, get func(path string) Response) verdict {
	isSame := func(a, b Response) bool { return a.Status == b.Status && bytes.Equal(a.Body, b.Body) }
	short, full, missing := get(path), get(path+".html"), get(path+"-no-such-page-for-the-sitemap")
	switch {
	case isSame(full, missing):
		return unknown // what is shown for all that is missing says nothing of its own path
	case isSame(short, missing), short.To == path+".html":
		return long
	case short.Status == http.StatusOK && isSame(full, short), full.To == path:
		return clean
	}
	return unknown // another file
}
