package files

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Response is a server's response for a path; the zero value: there is none.
type Response struct {
	Status int
	Body   []byte
}

// errEnough ends a scan of which no more is needed.
var errEnough = errors.New("enough")

// LearnClean returns whether the server has clean URLs: it requests the paths of a few of the first files with ".html" and
// without. One that is not served without decides. Known is false if none of them says anything.
func LearnClean(ctx context.Context, o Options, get func(path string) Response) (isClean, known bool) {
	o.Clean = false
	o.Watch = nil
	var short []string // the paths without ".html"
	seen := 0
	_, _ = Scan(ctx, o, func(p page.Page) error { // the scan that follows says why
		if path, isHTML := strings.CutSuffix(p.Path, ".html"); isHTML {
			short = append(short, path)
		}
		seen++
		if seen == 1000 {
			return errEnough
		}
		return nil
	})
	for i := range min(len(short), 3) {
		// Spread over the folders.
		says, isLong := judge(short[(i+1)*len(short)/4], get)
		if isLong {
			return false, true
		}
		isClean = isClean || says
	}
	return isClean, isClean && ctx.Err() == nil
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
	// Else it is another page.
	isClean = isSame(full, short) || full.Status/100 == 3
	return isClean, isSame(short, missing)
}
