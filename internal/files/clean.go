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
	apart, beside, err := pickPages(ctx, o)
	if err != nil {
		return o, err
	}
	isSame := func(a, b Response) bool { return a.Status == b.Status && bytes.Equal(a.Body, b.Body) }
	isOther := func(path string) bool {
		short := get(path)
		if short.Status != http.StatusOK {
			return true
		}
		// An application may return the same for everything.
		if isSame(short, get(path+"-no-such-page-for-the-sitemap")) {
			return true
		}
		long := get(path + ".html")
		leadsToShort := long.Status/100 == 3 && long.To == path
		return !isSame(long, short) && !leadsToShort
	}
	areClean := !slices.ContainsFunc(apart, isOther)
	// With try_files {path} {path}/ {path}.html, the shorter form leads to the folder of that name: unless the files beside
	// folders say otherwise, the longer one is kept there.
	areCleanBeside := areClean && len(beside) > 0 && !slices.ContainsFunc(beside, isOther)
	o.KeepBesideFolders = !areCleanBeside
	// Without any of them, nothing is known.
	isKnown := len(apart) > 0 || areCleanBeside
	o.CleanURLs = areClean && isKnown
	return o, ctx.Err()
}

// Bounds of pickPages.
const (
	maxPicked = 3    // files of a kind
	maxLooked = 1000 // pages that are looked at
)

// pickPages returns the paths, without ".html", of a few files with that ending: apart are in different folders, beside
// each is a folder with the same name. It takes them from the first pages of a scan, and may find none.
func pickPages(ctx context.Context, o Options) (apart, beside []string, err error) {
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
	return apart[:min(len(apart), maxPicked)], beside[:min(len(beside), maxPicked)], err
}
