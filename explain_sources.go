package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/discover"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// finding is what a source says of a page that no refresh took from it.
type finding struct {
	weight    weight
	reason    string
	says      string
	explained string // what to do
	other     string // the path that the page goes by
}

// weight tells which source's finding counts.
type weight uint8

const (
	saysNothing weight = iota
	hasNothing
	lacksLink
	leavesOut
	hasOtherPath
	namesIt
)

// notNamed says why no source names the page, as of now.
func (e *explainer) notNamed() error {
	best := finding{reason: unknownPage, explained: "No source of the site's pages names it: add one that does, such as 'urls'."}
	if other := e.otherPath(); other != "" {
		best = finding{weight: hasOtherPath, other: other}
	}
	for i, source := range e.site.handler.sources {
		f, err := e.finding(source, e.site.handler.sourceNames[i])
		if e.ctx.Err() != nil {
			return e.ctx.Err()
		}
		if err != nil {
			f = finding{says: fmt.Sprintf("it cannot be read: %.500q", err.Error()), weight: leavesOut, reason: unknownPage, explained: "A source cannot be read now; the log says more."}
		}
		e.x.Sources = append(e.x.Sources, ExplainedSource{e.site.handler.sourceNames[i], f.says})
		if f.weight > best.weight {
			best = f
		}
	}
	switch best.weight {
	case namesIt:
		e.pending()
		return nil
	case hasOtherPath:
		return e.byOther(best.other)
	}
	e.because(best.reason, "%s", best.explained)
	return nil
}

// byOther explains the page by the path that it goes by.
func (e *explainer) byOther(other string) error {
	url := e.site.base + other
	e.because(otherPath, "The page goes by another path: %s.", url)
	if e.isOther {
		return nil
	}
	o := &explainer{ctx: e.ctx, site: e.site, path: other, isOther: true}
	if err := o.begin(); err != nil {
		return err
	}
	if o.x.Listed {
		e.because(otherPath, "The same page is listed as %s.", url)
		return nil
	}
	e.because(o.x.Reason, "The page goes by the path %s, and is not listed. %s", other, o.x.Explanation)
	return nil
}

// otherPath is a listed path by which the same page is likely to go; "": none.
func (e *explainer) otherPath() string {
	for _, path := range e.likePaths() {
		if _, document, err := e.site.entry(path); err == nil && document != nil {
			return path
		}
	}
	return ""
}

// likePaths are paths by which the same page may be listed.
func (e *explainer) likePaths() []string {
	path, query, hasQuery := strings.Cut(e.path, "?")
	var like []string
	if hasQuery {
		query = "?" + query
		if d := e.site.handler.discovery; d != nil {
			cleaner := d.cleaner()
			if clean, ok := cleaner.Clean(e.path); ok && clean != e.path {
				like = append(like, clean)
			}
		}
		like = append(like, path)
	}
	if page.Escape(page.Unescape(path)) != path {
		like = append(like, page.Escape(page.Unescape(path))+query)
	}
	bare, isHTML := strings.CutSuffix(path, ".html")
	folder, isFolder := strings.CutSuffix(path, "/")
	switch {
	case isHTML:
		like = append(like, bare+query)
	case isFolder && folder != "":
		like = append(like, folder+query, folder+".html"+query, path+"index.html"+query)
	default:
		like = append(like, path+"/"+query, path+".html"+query)
	}
	for _, name := range e.indexNames() {
		if in, ok := strings.CutSuffix(path, "/"+page.Escape(name)); ok {
			like = append(like, in+"/"+query)
		}
	}
	return like
}

// indexNames are the names of index files, as far as is known.
func (e *explainer) indexNames() []string {
	if e.seen != nil && e.seen.index != nil {
		return e.seen.index
	}
	return []string{"index.html", "index.txt"}
}

// finding asks a source for the page. Those of other modules may not be asked while a
// refresh may be asking them.
func (e *explainer) finding(source Source, name string) (f finding, err error) {
	if d, ok := source.(discoverer); ok {
		one, err := d.discovers()
		if err != nil {
			return finding{}, err
		}
		return e.discovered(one), nil
	}
	seen := sight{}
	if e.seen != nil {
		seen = *e.seen
	}
	r := e.site.refreshOf(seen, e.now)
	var heard []string
	r.hear = func(message string) { heard = append(heard, message) }
	if err := r.openFS(); err != nil {
		return finding{}, err
	}
	find := r.guarded(name, func(context.Context, func(Page) error) (err error) {
		switch source := source.(type) {
		case *SourceFiles:
			f, err = e.file(r, source, &heard)
		case *SourceURLs:
			f, err = e.listedLine(r, source)
		default:
			f = finding{says: "it did not name the page at the last refresh; it is another module's, and is not asked for it now"}
		}
		return err
	})
	err = find(e.ctx, nil)
	return f, err
}

// listedLine looks for the page in lists.
func (e *explainer) listedLine(r *Refresh, source *SourceURLs) (finding, error) {
	f := finding{says: "none of its lines names the page"}
	err := source.Pages(e.ctx, r, func(p Page) error {
		if p.Path == e.path {
			f = finding{weight: namesIt, says: "it names the page"}
		}
		return nil
	})
	if f.weight == namesIt {
		err = nil // whatever else cannot be read
	}
	if n := r.leftOut[refusedLine]; n > 0 && f.weight != namesIt {
		f.says += fmt.Sprintf("; %d of them are no URLs of the site, as the log says", n)
	}
	return f, err
}

// discovered says what visitors and links showed of the page.
func (e *explainer) discovered(d discovery) finding {
	if e.path == e.site.front() {
		return finding{weight: namesIt, says: "it is the front page, where discovering begins"}
	}
	cleaner := d.cleaner()
	if all := e.site.handler.discovery; all != nil {
		cleaner = all.cleaner()
	}
	clean, ok := cleaner.Clean(e.path)
	switch {
	case !ok:
		return finding{weight: leavesOut, reason: notCanonical, says: "no page's path is like that",
			explained: "It has what the path of no page that visitors or links show has: dot segments, double slashes, encoded slashes, control characters, or over 2,000 bytes."}
	case clean != e.path:
		return finding{weight: hasOtherPath, other: clean, says: fmt.Sprintf("it goes by the path %s, since 'query' names the parameters that tell pages apart", clean)}
	case discover.IsAsset(e.path):
		return finding{weight: leavesOut, reason: verdict.NotHTML.String(), says: "its name is that of an asset", explained: "Its name is that of an asset, such as a script, a style sheet or an image, and no page's."}
	case d.from == discover.FromLinks:
		return e.byLinks(d)
	}
	return e.byVisitors(d)
}

// byLinks says what links show of the page.
func (e *explainer) byLinks(d discovery) finding {
	switch k := e.known; {
	case !k.Linked:
		return finding{weight: lacksLink, reason: verdict.Orphan.String(), says: "no listed page links to it",
			explained: "No listed page links to it, so it is not known: link to it from one, or name it in a list of 'urls'. Links that scripts make, and those that say nofollow, are not seen."}
	case k.Depth > d.depth:
		return finding{weight: leavesOut, reason: tooManyLinks, says: fmt.Sprintf("it is %d links away from the front page, and 'depth' is %d", k.Depth, d.depth),
			explained: fmt.Sprintf("It is %d links away from the front page or another source's page, and 'links' follows %d: raise 'depth', or link to it from nearer by.", k.Depth, d.depth)}
	case k.From&discover.FromLinks == 0:
		return finding{weight: leavesOut, reason: unknownPage, says: "a page links to it, and there was no room for it",
			explained: "A page links to it, but more paths are linked to than are remembered ('max_paths'), or that differ in their numbers alone."}
	}
	return finding{weight: namesIt, says: fmt.Sprintf("a page links to it, %d links away from the front page", e.known.Depth)}
}

// byVisitors says what visitors show of the page.
func (e *explainer) byVisitors(d discovery) finding {
	switch k := e.known; {
	case k.From&d.from == 0 && !k.Hashed:
		return finding{weight: hasNothing, reason: unknownPage, says: "no visit to it counted",
			explained: "No visit to it counted so far: those with status 200 or 304 do, of browsers that are not signed in, to HTML that is neither private nor noindex."}
	case k.Linked:
		return finding{weight: namesIt, says: "visitors had it, and a listed page links to it"}
	case k.Reached:
		return finding{weight: namesIt, says: "enough visitors had it"}
	case k.Wants > 0:
		return finding{weight: leavesOut, reason: fewVisitors, says: fmt.Sprintf("fewer visitors had it than the %d that 'unlinked' wants", k.Wants),
			explained: fmt.Sprintf("Nothing links to it, and 'unlinked' wants %d different visitors for it, in at least two different hours: wait, or link to it.", k.Wants)}
	}
	return finding{weight: leavesOut, reason: verdict.Orphan.String(), says: "visitors had it, and no listed page links to it",
		explained: "Visitors had it, but no listed page links to it: it may be somebody's own. Link to it from a listed page, or name its pattern with 'unlinked'."}
}

// file looks for the page's file.
func (e *explainer) file(r *Refresh, source *SourceFiles, heard *[]string) (finding, error) {
	o, err := source.scanned(e.ctx, r)
	if err != nil || o.Root == "" {
		says := strings.Join(*heard, "; ")
		return finding{weight: leavesOut, reason: unknownPage, says: says, explained: "The site has no files to list: " + says + "."}, err
	}
	l := &lookout{root: o.Root, index: o.Index}
	l.path, l.query, _ = strings.Cut(e.path, "?")
	l.want = page.Unescape(l.path)
	if l.index == nil {
		l.index = e.indexNames()
	}
	o.Workers, o.LeftOut = 1, l.leftOut
	_, err = files.Scan(e.ctx, o, l.page)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, files.ErrNotFolder):
		return finding{}, fmt.Errorf("the root %s: %w", o.Root, errors.Unwrap(err))
	case err != nil:
		return finding{}, err
	}
	f := l.finding()
	if f.reason == files.Excluded {
		f.explained += fmt.Sprintf(" The pattern is %s.", matching(source.Exclude, l.at))
	}
	return f, nil
}

// lookout looks at a scan for what becomes of one path.
type lookout struct {
	root  string
	index []string
	path  string // canonical, without a query
	query string
	want  string // path, decoded

	isNamed bool
	other   string // what is listed in its stead
	reason  string
	at      string // of what is left out, be it the file or a folder above it
	isAbove bool
	similar string // a page whose path differs in case alone
}

// page takes a page that is listed.
func (l *lookout) page(p page.Page) error {
	switch got := page.Unescape(p.Path); {
	case p.Path == l.path && l.query == "":
		l.isNamed = true
	case got == l.want, l.isFile(got):
		l.other = p.Path
	case strings.EqualFold(got, l.want):
		l.similar = p.Path
	}
	return nil
}

// isFile reports whether a decoded path may be that of the page's file: the page is a
// folder, or has a name without ".html".
func (l *lookout) isFile(got string) bool {
	if got+".html" == l.want || l.want+".html" == got || got+"/" == l.want || l.want+"/" == got {
		return true
	}
	for _, name := range l.index {
		if strings.TrimSuffix(l.want, "/")+"/"+name == got || got+name == l.want && strings.HasSuffix(got, "/") {
			return true
		}
	}
	return false
}

// leftOut takes what is left out: the file, before the nearest folder above it.
func (l *lookout) leftOut(path, reason string) {
	got := page.Unescape(path)
	isAbove := strings.HasSuffix(got, "/") && strings.HasPrefix(l.want, got) && got != l.want
	if !isAbove && got != l.want && !l.isFile(got) {
		return
	}
	isNearer := l.reason == "" || l.isAbove && (!isAbove || len(path) > len(l.at)) || !isAbove && got == l.want
	if isNearer {
		l.reason, l.at, l.isAbove = reason, path, isAbove
	}
}

// finding is what becomes of the path.
func (l *lookout) finding() finding {
	switch {
	case l.isNamed:
		return finding{weight: namesIt, says: "it has the page's file"}
	case l.other != "":
		return finding{weight: hasOtherPath, other: l.other, says: fmt.Sprintf("its file goes by %s", l.other)}
	case l.reason != "":
		return finding{weight: leavesOut, reason: l.reason, says: fmt.Sprintf("%s is left out: %s", l.at, l.reason), explained: l.words()}
	}
	says := "there is no such file under " + l.root
	if l.similar != "" {
		says += fmt.Sprintf(", but %s, which differs in case", l.similar)
	}
	return finding{weight: hasNothing, reason: unknownPage, says: says, explained: strings.ToUpper(says[:1]) + says[1:] + "."}
}

// fileWords say of the reasons of files what they mean, and what to do.
var fileWords = map[string]string{
	files.NotIncluded:      "is no HTML by its name: name it in 'include' of 'files'",
	files.Excluded:         "is left out by 'exclude' of 'files'",
	files.Hidden:           "is hidden, by file_server or by 'hide' of 'files'",
	files.Dotfile:          "begins with a dot, as what no visitor is meant to see does",
	files.UnderscoreName:   "begins with an underscore, as parts of pages do: put its exact path into 'include', or /_folder/* for a folder",
	files.DependencyFolder: "holds what the site is built from: put /node_modules/* into 'include' if it is meant",
	files.ErrorPage:        "is an error page by its name: put its exact path into 'include' if it is none",
	files.OwnershipFile:    "proves by its name who owns the site: put its exact path into 'include' if it is a page",
	files.Empty:            "is empty",
	files.NotRegular:       "is not a regular file",
	files.Unreadable:       "cannot be read: look at its permissions",
	files.Vanished:         "vanished while it was looked at: ask again",
	files.Dangling:         "is a link that leads nowhere",
	files.LinkLoop:         "is a link that leads to a folder above it, or in a circle",
	files.LinkedOften:      "is a folder to which too many links lead",
	files.Duplicate:        "is a link to a file that is listed by its real path, or by an earlier link",
	files.NameTooLong:      "has a name or a path that is too long",
	files.NameRefused:      "has a name that file_server does not serve",
	files.TooDeep:          "lies in too many folders",
}

func (l *lookout) words() string {
	what := "Its file, "
	switch {
	case l.isAbove:
		what = "The folder "
	case strings.HasSuffix(l.at, "/"):
		what = "Its folder, "
	}
	end := ", "
	if l.isAbove {
		end = " "
	}
	return what + l.at + end + fileWords[l.reason] + "."
}
