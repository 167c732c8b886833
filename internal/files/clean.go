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

// Response is what a server returns for a path; the zero value: nothing of its own.
type Response struct {
	Status int
	To     string // the path that a redirect leads to, canonical; "": to none of this server
	Body   []byte
}

// LearnCleanURLs sets o.CleanURLs and o.KeepBesideFolders as the server has it, which it asks
// for a few files with ".html" and without.
func LearnCleanURLs(ctx context.Context, o *Options, get func(path string) Response) error {
	apart, beside, err := sample(ctx, *o)
	if err != nil {
		return err
	}
	isSame := func(a, b Response) bool { return a.Status == b.Status && bytes.Equal(a.Body, b.Body) }
	isOther := func(path string) bool {
		short := get(path)
		if short.Status != http.StatusOK || isSame(short, get(path+"-no-such-page-for-the-sitemap")) {
			return true // an application may return the same for everything
		}
		long := get(path + ".html")
		return !isSame(long, short) && (long.Status/100 != 3 || long.To != path)
	}
	o.CleanURLs = !slices.ContainsFunc(apart, isOther)
	o.KeepBesideFolders = !o.CleanURLs || len(beside) == 0 || slices.ContainsFunc(beside, isOther)
	o.CleanURLs = o.CleanURLs && (len(apart) > 0 || !o.KeepBesideFolders)
	return ctx.Err()
}

// Bounds of samples.
const (
	maxSamples = 3
	maxSampled = 1000 // pages that are looked at
)

// sample returns the paths of a few files whose names end in ".html", without that, which
// tell how a server serves them: apart in different folders, and beside a folder of the same
// name. It takes them from the first pages of a scan, and may find none.
func sample(ctx context.Context, o Options) (apart, beside []string, err error) {
	errEnough := errors.New("enough")
	o.Workers, o.CleanURLs = 1, false
	last, n := "", 0
	_, err = Scan(ctx, o, func(p page.Page) error {
		if last != "" && strings.HasPrefix(p.Path, last+"/") {
			beside = append(beside, last)
			apart = slices.DeleteFunc(apart, func(short string) bool { return short == last })
			last = ""
		}
		if short, ok := strings.CutSuffix(p.Path, ".html"); ok {
			if last = short; len(apart) == 0 || page.Folder(apart[len(apart)-1]) != page.Folder(short) {
				apart = append(apart, short)
			}
		}
		if n++; n == maxSampled {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return apart[:min(len(apart), maxSamples)], beside[:min(len(beside), maxSamples)], err
}
