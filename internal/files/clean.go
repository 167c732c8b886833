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
	Body   []byte
}

// LearnClean returns whether the server has clean URLs: it requests the paths of a few files with ".html" and without. One that is
// not served without decides. Known is false if none of them says anything.
func LearnClean(ctx context.Context, o Options, get func(path string) Response) (isClean, known bool, err error) {
	paths, err := findPages(ctx, o)
	for i := range min(len(paths), 3) {
		// Spread over the folders.
		says, isLong := judge(paths[(i+1)*len(paths)/4], get)
		if isLong {
			return false, true, err
		}
		isClean = isClean || says
	}
	return isClean, isClean, cmp.Or(err, ctx.Err())
}

// judge returns whether the responses for one path say that its file is served without ".html", or that it is not.
func judge(path string, get func(path string) Response) (isClean, isLong bool) {
	isSame := func(a, b Response) bool { return a.Status == b.Status && bytes.Equal(a.Body, b.Body) }
	short := get(path)
	if short.Status == http.StatusNotFound {
		return false, true
	}
	full := get(path + ".html")
	missing := get(path + "-no-such-page-for-the-sitemap")
	// What is shown for all that is missing says nothing of its own path, nor does a redirect, which may be that of one page.
	if short.Status != http.StatusOK || isSame(full, missing) {
		return false, false
	}
	isLong = isSame(short, missing)
	isOther := !isSame(full, short) && full.Status/100 != 3 // another file
	return !isLong && !isOther, isLong
}

// findPages returns the paths, without ".html", of files with that ending among the first 1,000 pages: those that are not beside a folder
// of that name, to which the shorter form may lead, if there are any.
func findPages(ctx context.Context, o Options) ([]string, error) {
	o.Clean = false
	paths, err := firstPages(ctx, o, 1000)
	var apart, beside []string
	for _, path := range paths {
		short, isHTML := strings.CutSuffix(path, ".html")
		if !isHTML {
			continue
		}
		i, _ := slices.BinarySearch(paths, short+"/")
		if i < len(paths) && strings.HasPrefix(paths[i], short+"/") {
			beside = append(beside, short)
		} else {
			apart = append(apart, short)
		}
	}
	if len(apart) == 0 {
		return beside, err
	}
	return apart, err
}
