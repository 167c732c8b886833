package files

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Response is a server's response for a path; the zero value: there is none.
type Response struct {
	Status int
	To     string // the normal path that a redirect leads to; "": to none of this server
	Body   []byte
}

// LearnCleanURLs returns o with CleanURLs and KeepBesideFolders as the server has it: it requests
// the paths of a few files with ".html" and without.
func LearnCleanURLs(ctx context.Context, o Options, get func(path string) Response) (Options, error) {
	apart, beside, spare, err := pickPages(ctx, o)
	if err != nil {
		return o, err
	}
	areClean, areKnown := allClean(apart, get)
	if !areKnown {
		areClean, areKnown = allClean(spare, get)
	}
	// With try_files {path} {path}/ {path}.html, the shorter form leads to the folder of that name: unless the files beside
	// folders say otherwise, the longer one is kept there.
	areCleanBeside := false
	if areClean && len(beside) > 0 {
		areCleanBeside, _ = allClean(beside, get)
	}
	o.KeepBesideFolders = !areCleanBeside
	// Without any of them, nothing is known.
	o.CleanURLs = areClean && (areKnown || areCleanBeside)
	return o, ctx.Err()
}

// allClean reports whether no path says that the server does not serve pages without ".html"; known: one of them says anything.
func allClean(paths []string, get func(path string) Response) (clean, known bool) {
	for _, path := range paths {
		ok, says := isClean(path, get)
		if !ok {
			return false, true
		}
		known = known || says
	}
	return true, known
}

// isClean reports whether the server serves the page of a path with ".html" without that; says is false if the path says nothing of
// it.
func isClean(path string, get func(path string) Response) (clean, says bool) {
	isSame := func(a, b Response) bool { return a.Status == b.Status && bytes.Equal(a.Body, b.Body) }
	short := get(path)
	if short.Status != http.StatusOK {
		return false, true
	}
	long := get(path + ".html")
	missing := get(path + "-no-such-page-for-the-sitemap")
	// What is shown for all that is missing says nothing of its own path.
	if long.Status == http.StatusOK && isSame(long, missing) {
		return true, false
	}
	// An application may return the same for everything.
	if isSame(short, missing) {
		return false, true
	}
	leadsToShort := long.Status/100 == 3 && long.To == path
	return isSame(long, short) || leadsToShort, true
}

// Bounds of pickPages.
const (
	maxPicked = 3    // files of a kind
	maxLooked = 1000 // pages that are looked at
)

// pickPages returns the paths, without ".html", of a few files with that ending: apart are in different folders, beside
// each is a folder with the same name, and spare is one more, in case that the others say nothing. It takes them from the
// first pages of a scan, and may find none.
func pickPages(ctx context.Context, o Options) (apart, beside, spare []string, err error) {
	errEnough := errors.New("enough")
	o.Workers = 1
	o.CleanURLs = false
	o.Watcher = nil
	last := ""
	n := 0
	_, err = Scan(ctx, o, func(p page.Page) error {
		// Pages come sorted, so those of the folder about follow about.html at once.
		isBelow := last != "" && strings.HasPrefix(p.Path, last+"/")
		if isBelow {
			beside = append(beside, last)
			apart = slices.DeleteFunc(apart, func(short string) bool { return short == last })
			last = ""
		}
		short, isHTML := strings.CutSuffix(p.Path, ".html")
		if isHTML {
			last = short
			isApart := len(apart) == 0 || page.Folder(apart[len(apart)-1]) != page.Folder(short)
			if isApart {
				apart = append(apart, short)
			} else if spare == nil {
				spare = append(spare, short)
			}
		}
		n++
		if n == maxLooked {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return apart[:min(len(apart), maxPicked)], beside[:min(len(beside), maxPicked)], spare, err
}
