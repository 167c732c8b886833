package files

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Bounds of Sample.
const (
	maxSamples = 3
	maxSampled = 1000 // pages that are looked at
)

// Sample returns the paths of a few files whose names end in ".html", without that, which
// tell how a server serves them: apart in different folders, and beside a folder of the same
// name. It takes them from the first pages of a scan, and may find none.
func Sample(ctx context.Context, o Options) (apart, beside []string, err error) {
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
