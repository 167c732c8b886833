package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/export"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

const robotsName = "robots.txt"

// builtSite is a site with the folder that its files are written into.
type builtSite struct {
	*site
	out    string
	folder *export.Folder

	fetched int // pages
	robots  builtRobots
	begun   bool // its files are being put in their places, or have been
	result  export.Result
}

// buildOutput is how files are written.
type buildOutput struct {
	out    string // "": the site's root
	gzip   bool
	robots bool
	force  bool
}

var (
	errNoPages = errors.New("there is no sitemap")
	errFewer   = errors.New("it has less than half of the pages of the last build")
)

// open takes hold of the folders of all sites: of one alone the output folder itself, of
// several one each in it.
func (w *buildOutput) open(sites []*site) (built []*builtSite, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(built))
		}
	}()
	taken := make(map[string]string)
	for _, s := range sites {
		out, err := w.folderOf(s, len(sites) > 1)
		if err != nil {
			return built, err
		}
		if other := taken[out]; other != "" {
			return built, fmt.Errorf("%s and %s would both be written into %s", other, s.sitemapURL(), out)
		}
		taken[out] = s.sitemapURL()
		folder, err := export.Open(out, s.fileName("", publish.FormXML), w.force)
		if err != nil {
			return built, fmt.Errorf("opening the output folder: %w", err)
		}
		built = append(built, &builtSite{site: s, out: out, folder: folder})
	}
	return built, nil
}

func closeAll(built []*builtSite) error {
	var errs []error
	for _, b := range slices.Backward(built) { // the first may have made what is around the others
		errs = append(errs, b.folder.Close())
	}
	return errors.Join(errs...)
}

// folderOf is where a site's files are written.
func (w *buildOutput) folderOf(s *site, several bool) (string, error) {
	probed := s.probed.Load()
	switch {
	case several && w.out == "":
		return "", errors.New("the configuration has several sites: name a folder for theirs with --out")
	case several:
		return filepath.Join(w.out, filepath.FromSlash(siteFolder(s.url()))), nil
	case w.out != "":
		return filepath.Abs(w.out)
	case probed.root == "" || probed.fs != "" && probed.fs != defaultFileSystem:
		return "", errors.New("the site has no root in which its sitemap could lie: name a folder with --out")
	}
	return probed.root, nil
}

// siteFolder is the name of a site's folder: its host, with an underscore before a port,
// and the folder of its URLs.
func siteFolder(url string) string {
	_, name, _ := strings.Cut(url, "://")
	return strings.NewReplacer(":", "_", "[", "", "]", "").Replace(page.Unescape(name))
}

// run makes the site's documents. The error is ctx's, or says why they are not to be written.
func (b *builtSite) run(ctx context.Context, force bool) error {
	before, err := b.pagesBefore(ctx)
	if err != nil {
		return err
	}
	built, err := b.build(ctx)
	if err != nil {
		return err
	}
	b.fetched = built.crawled.Fetched
	snapshot := b.documents()
	switch {
	case snapshot == nil:
		return fmt.Errorf("%s: %w: %s", b.sitemapURL(), errNoPages, b.emptyReason())
	case 2*snapshot.Pages < before && !force:
		return fmt.Errorf("%s: %w: %d instead of %d; --force writes it", b.sitemapURL(), errFewer, snapshot.Pages, before)
	}
	return nil
}

// documents are what there is to write; nil: nothing.
func (b *builtSite) documents() *publish.Snapshot { return b.state.Index.Load() }

// pagesBefore is how many pages the last build had, by its output or the state.
func (b *builtSite) pagesBefore(ctx context.Context) (int, error) {
	records, err := b.state.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer b.state.release(records)
	b.restore(ctx, records)
	if snapshot := b.documents(); snapshot != nil {
		return max(b.folder.Pages(), snapshot.Pages), nil
	}
	return b.folder.Pages(), nil
}

// stage writes a site's files aside: shards first, then what names them.
func (b *builtSite) stage(ctx context.Context, w *buildOutput) error {
	snapshot := b.documents()
	for _, d := range append(slices.Clip(snapshot.Shards), snapshot.Index) {
		if err := b.stageDocument(ctx, d, w.gzip); err != nil {
			return err
		}
	}
	if !w.robots || !b.handler.settings.robots {
		return nil
	}
	b.robots = b.robotsNaming(ctx)
	if err := ctx.Err(); err != nil || b.robots.content == nil {
		return err
	}
	mayReplace := func(there []byte) bool { // the site's own, or what was made of it
		return b.robots.was != nil && bytes.Equal(there, b.robots.was) || slices.Contains(robotstxt.Sitemaps(there), b.sitemapURL())
	}
	return explained(b.folder.Replace(robotsName, b.robots.content, mayReplace), "--force replaces it, --robots=false leaves it")
}

func (b *builtSite) stageDocument(ctx context.Context, d *publish.Document, compressed bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := b.folder.Stage(b.fileName(d.Suffix, publish.FormXML), func(w io.Writer) error {
		xml, err := d.XML()
		if err != nil {
			return err
		}
		_, err = io.Copy(w, xml)
		return errors.Join(err, xml.Close())
	})
	if err == nil && compressed {
		err = b.folder.Stage(b.fileName(d.Suffix, publish.FormGzip), func(w io.Writer) error {
			_, err := w.Write(d.Gzip)
			return err
		})
	}
	return explained(err, "--force replaces it")
}

// explained says what to do about a file that is in the way.
func explained(err error, hint string) error {
	if errors.Is(err, export.ErrForeign) {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// finish puts the files in their places.
func (b *builtSite) finish() (err error) {
	b.begun = true
	b.result, err = b.folder.Finish()
	return err
}
