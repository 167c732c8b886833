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
	apart, beside, err := findPages(ctx, o)
	says := allSay(apart, get)
	// With try_files {path} {path}/ {path}.html, the shorter form leads to the folder of that name: unless the files beside
	// folders say otherwise, the longer one is kept there.
	saysBeside := allSay(beside, get)
	if says == unknown {
		says = saysBeside
	}
	s = Spelling{Clean: says == clean, KeepBesideFolders: saysBeside != clean}
	return s, says != unknown, cmp.Or(err, ctx.Err())
}

// allSay returns what three of several paths without ".html" say: one that is not served decides.
func allSay(paths []string, get func(path string) Response) (all verdict) {
	for i := range min(len(paths), 3) {
		// Spread over the folders.
		says := judge(paths[(i+1)*len(paths)/4], get)
		if says == long {
			return long
		}
		all = max(all, says)
	}
	return all
}

// judge returns what the responses for one path say.
func judge(path string, get func(path string) Response) verdict {
	isSame := func(a, b Response) bool { return a.Status == b.Status && bytes.Equal(a.Body, b.Body) }
	short := get(path)
	if short.Status == http.StatusNotFound || short.To == path+".html" {
		return long
	}
	full := get(path + ".html")
	missing := get(path + "-no-such-page-for-the-sitemap")
	switch {
	case isSame(full, missing), short.Status != http.StatusOK:
		return unknown // what is shown for all that is missing says nothing of its own path
	case isSame(short, missing):
		return long
	case isSame(full, short), full.To == path:
		return clean
	}
	return unknown // another file
}

// findPages returns the paths, without ".html", of files with that ending among the first 1,000 pages. Beside each of the second kind is a
// folder with the same name.
func findPages(ctx context.Context, o Options) (apart, beside []string, err error) {
	o.Spelling = Spelling{}
	paths, err := firstPages(ctx, o, 1000)
	for _, path := range paths {
		short, isHTML := strings.CutSuffix(path, ".html")
		if !isHTML {
			continue
		}
		i, _ := slices.BinarySearch(paths, short+"/")
		isBeside := i < len(paths) && strings.HasPrefix(paths[i], short+"/")
		if isBeside {
			beside = append(beside, short)
		} else {
			apart = append(apart, short)
		}
	}
	return apart, beside, err
}
