package sitemap

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

// explanation is why a URL is listed in a site's sitemap, or why it is not.
type explanation struct {
	URL     string `json:"url"` // in the form in which it is or would be listed
	Sitemap string `json:"sitemap"`

	// QueryDropped are the parameters of the URL that was asked for which do not tell pages apart.
	QueryDropped []string `json:"query_dropped,omitempty"`

	// What the published sitemap says of it.
	Listed    bool   `json:"listed"`
	Section   string `json:"section,omitempty"` // that it is or would be in; "": in none
	Document  string `json:"document,omitempty"`
	LastMod   string `json:"lastmod,omitempty"`
	LastModBy string `json:"lastmod_by,omitempty"` // the rule by which it has a date, or none

	Reason  string `json:"reason,omitempty"` // in most cases the name of its index status
	Meaning string `json:"meaning,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Rule    string `json:"rule,omitempty"` // the setting or line of robots.txt that decides

	// The URL of the robots.txt that has the rule, where /robots.txt redirects to another URL.
	RobotsTxt string `json:"robots_txt,omitempty"`

	Other string `json:"other,omitempty"` // its canonical, or what it duplicates or leads to

	AlternatesLeftOut []alternateLeftOut `json:"alternates_left_out,omitempty"` // that the page names in rel=alternate

	// What is known of it.
	NamedBy []string  `json:"named_by,omitempty"`     // the sources that name it
	Linked  time.Time `json:"linked_at,omitzero"`     // when a page that links to it was last fetched
	Visited time.Time `json:"visited_at,omitzero"`    // when a visitor last had it
	Fetched time.Time `json:"fetched_at,omitzero"`    // when it was last fetched
	Status  int       `json:"status,omitempty"`       // of the response to the last fetch
	Failing time.Time `json:"failing_since,omitzero"` // since when fetches fail
	Due     time.Time `json:"due_at,omitzero"`        // when it is fetched again
	DueBy   string    `json:"due_by,omitempty"`       // by what it is due then
	FoundAt string    `json:"found_at,omitempty"`     // the URL of the page whose link named it first

	// ReadAgain is when that page is read again, or those that would most likely link to a page that nothing names.
	ReadAgain []rereading `json:"read_again,omitempty"`

	Paused *pauseStatus `json:"paused,omitempty"` // until when pages are not requested; nil: they are

	// Now is what an anonymous visitor gets, and then where that leads.
	Now []liveResponse `json:"now,omitempty"`
}

// alternateLeftOut is a version of a page in another language with which the page is not listed.
type alternateLeftOut struct {
	Hreflang string `json:"hreflang"`
	URL      string `json:"url"`
	Reason   string `json:"reason"`
}

// covering returns the site whose sitemap covers a URL, and the URL's path. Of several, the one counts that lists it,
// else the last.
func (a *App) covering(rawURL string) (of *site, path string, err error) {
	sites, path, err := a.sitesAt(rawURL)
	if err != nil {
		return nil, "", err
	}
	// A site below a prefix comes after that around it.
	for _, s := range sites {
		s = cmp.Or(s.main.Load(), s)
		if of == nil {
			of = s
			continue
		}
		isLive := cmp.Or(s.probed.Load(), new(probeResult)).blocked == ""
		covers := isLive && strings.HasPrefix(path, s.scope)
		if !of.isListed(path) && (covers || s.isListed(path)) {
			of = s
		}
	}
	if of == nil {
		return nil, "", a.noSite()
	}
	return of, path, nil
}

// explain tells why a URL is listed or is not, or a path of the site in the query. It fetches the page, and changes nothing.
func explain(r *http.Request, a *App, query url.Values) (any, error) {
	raw := query.Get("url")
	if site := query.Get("site"); site != "" {
		sites, err := a.sitesOf(site)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(raw, "/") {
			err = fmt.Errorf("'%s' is not a path such as /page, which it must be with a site", terminal.Clip(raw))
			return nil, caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
		}
		raw = sites[0].origin + raw
	}
	of, path, err := a.covering(raw)
	if err != nil {
		return nil, err
	}
	return of.explainNow(r.Context(), path)
}

// explainNow explains a path, and what the page returns now.
func (s *site) explainNow(ctx context.Context, path string) (*explanation, error) {
	x, err := s.explain(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading the page's record: %w", err)
	}
	x.QueryDropped = droppedParameters(path, x.URL)
	x.Paused = s.pauseStatus()
	x.Now = s.follow(ctx, x)
	last := x.Now[len(x.Now)-1]
	now := x.Now[0].Status
	if x.Listed && x.Remedy == "" && now != http.StatusOK && page.IsConclusive(now) {
		x.Remedy = "It stays listed until it is fetched again, as at once by 'caddy sitemap refresh --fetch' and its URL."
	}
	if x.Reason == reasonUnnamed {
		s.explainUnnamed(x, path, last)
	}
	// What is an error now would not be listed whatever links to it.
	if last.Status < http.StatusBadRequest {
		s.addLinkers(ctx, x, strings.TrimPrefix(x.URL, s.origin))
		s.addOwn(x)
	}
	return x, ctx.Err()
}

// droppedParameters returns the names of the query parameters that a path has, but not the URL by which it is explained.
func droppedParameters(path, explained string) (names []string) {
	parametersOf := func(of string) url.Values {
		_, query, _ := strings.Cut(of, "?")
		parameters, _ := url.ParseQuery(query) // what is malformed is not named
		return parameters
	}
	kept := parametersOf(explained)
	for _, name := range slices.Sorted(maps.Keys(parametersOf(path))) {
		if !kept.Has(name) {
			names = append(names, terminal.Clip(name))
		}
	}
	return names
}

// explainUnnamed says more of a page that no source names, by where it leads.
func (s *site) explainUnnamed(x *explanation, path string, last liveResponse) {
	hasFiles := slices.ContainsFunc(s.sources(), func(source input) bool {
		_, isFiles := source.(*SourceFiles)
		return isFiles
	})
	noPage := s.noPage(path)
	switch {
	case last.Listed:
		x.because("leads to a listed page", "Its target is listed instead.", "")
		x.Other = last.URL
	case last.Status >= http.StatusBadRequest:
		x.Remedy = "Serve it first."
	case hasFiles && strings.Contains(path, "/."):
		x.because(files.Dotfile, "The source 'files' leaves out files with such names.", "Rename it if it is a page.")
	case hasFiles && noPage != "":
		x.because(noPage, "The source 'files' and the site's own sitemaps leave out files with such names or uses.", "Name its path in 'urls' if it is a page.")
	}
}

func (x *explanation) because(reason, meaning, remedy string) {
	x.Reason, x.Meaning, x.Remedy = reason, meaning, remedy
}

func (x *explanation) is(status indexing.Status) {
	x.because(status.String(), status.Explanation(), status.Remedy())
}

const reasonUnnamed = "no source names it"

// explain explains a path without fetching it, by what is served.
func (s *site) explain(ctx context.Context, path string) (x *explanation, err error) {
	err = s.readPublished(func(served *publication) (err error) {
		x, err = s.explainBy(ctx, served, path)
		return err
	})
	return x, err
}

// explainBy explains a path by one publication.
func (s *site) explainBy(ctx context.Context, served *publication, path string) (*explanation, error) {
	document, err := s.documentOf(served, path)
	if err != nil {
		return nil, err
	}
	found, err := s.explainRecord(ctx, served.generation, path)
	if err != nil {
		return nil, err
	}
	// Nothing is known of the path itself, but it may lead to a page that is listed in another form.
	form := s.listedForm(path)
	isClean := form+".html" == path
	if isClean && s.recordOf(ctx, form) == nil && !s.isListed(form) {
		form = path // a server without clean URLs has no such page
	}
	isUnknown := document == "" && found.Record == nil
	if form != path && isUnknown {
		x, err := s.explainBy(ctx, served, form)
		if err != nil || x.Reason != reasonUnnamed {
			return x, err
		}
	}
	x := &explanation{
		URL:      s.origin + path,
		Sitemap:  s.sitemap,
		Listed:   document != "",
		Section:  served.sections.of(path),
		Document: document,
		Visited:  timeAt(s.state.visited.At(path)),
	}
	if found.Record != nil {
		s.addRecord(x, &found)
		s.addDue(ctx, x, found.Record)
	}
	s.addUnvisited(x, &found)
	s.addOther(x, &found)
	for _, a := range found.Alternates {
		x.AlternatesLeftOut = append(x.AlternatesLeftOut, alternateLeftOut{a.Lang, a.URL, a.Reason})
	}
	if !x.Listed {
		s.addReason(x, served, path)
	} else {
		x.Remedy = s.disallowed()
	}
	return x, nil
}

// explainRecord returns what a generation of records, which may be nil, says of a page.
func (s *site) explainRecord(ctx context.Context, g *record.Generation, path string) (indexing.Explanation, error) {
	if g == nil || s.handler.settings.crawl.Off {
		return indexing.Explanation{}, nil
	}
	options := s.selectOptions(g, s.app.now())
	return indexing.Explain(ctx, g, options, path)
}

// addUnvisited says of a page that links alone name that no visitor has requested it, where that is why it is not fetched.
func (s *site) addUnvisited(x *explanation, found *indexing.Explanation) {
	d := s.discovery()
	if d == nil || d.depth > 0 {
		return
	}
	if found.Status == indexing.Pending && isOnlyLinked(found.Record) {
		x.because("not visited", "A listed page links to it, but no visitor has requested it.",
			"Wait for a visit, or add the source 'links', which requests all that pages link to.")
	}
}

// addOther adds the page that stands for this one.
func (s *site) addOther(x *explanation, found *indexing.Explanation) {
	x.Other = found.Other
	if strings.HasPrefix(x.Other, "/") {
		x.Other = s.origin + x.Other
	}
	if found.Status != indexing.CanonicalForeign {
		return
	}
	// A missing base_url is a usual reason: the remedy has the line to write.
	u, err := origin.ParseURL(found.Other)
	if err == nil {
		x.Remedy = found.Status.RemedyAt(u.Origin())
	}
}

// addRecord adds what the record of the page says.
func (s *site) addRecord(x *explanation, found *indexing.Explanation) {
	rec := found.Record
	if in := rec.Selected; in.LastMod != 0 {
		layout := time.RFC3339
		if in.Day {
			layout = time.DateOnly
		}
		x.LastMod = timeAt(in.LastMod).Format(layout)
	}
	if x.Listed {
		x.LastModBy = found.DatedBy
	}
	x.NamedBy = s.namers(rec)
	x.Linked = timeAt(rec.Linked)
	x.Fetched = timeAt(rec.Fetched)
	x.Due = timeAt(rec.Due)
	x.Failing = timeAt(rec.Failing)
	x.Status = int(rec.Status)
	if x.Listed || found.Status != indexing.Indexable {
		x.is(found.Status)
	}
}

// timeAt returns a time in Unix seconds; 0: the zero time.
func timeAt(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// isOnlyLinked reports whether only links name a page, which may be nil.
func isOnlyLinked(rec *record.Record) bool {
	const others = record.Named | record.Visited | record.Seed | record.Target | record.Image
	return rec != nil && rec.Flags&others == 0
}

// namers are the names of the sources that named a page when they were last read.
func (s *site) namers(rec *record.Record) (names []string) {
	if rec.Absent != 0 {
		return nil
	}
	for i, name := range s.inputNames() {
		bit := record.Flags(1) << (16 + min(i, maxSourceBit))
		if rec.Flags&bit != 0 {
			names = append(names, name)
		}
	}
	return names
}

// cleaner returns what makes paths of links and visits.
func (s *site) cleaner() *origin.Cleaner {
	if d := s.discovery(); d != nil {
		return d.urls
	}
	return origin.NewCleaner(nil)
}

// listedForm is the form in which what a path leads to is listed: without a query that does not count, as the
// folder of its index file, in the spelling of a file's name, or as a clean URL.
func (s *site) listedForm(path string) string {
	cleaner := s.cleaner()
	if clean, ok := cleaner.Clean(path); ok && clean != path {
		return clean
	}
	if bare := page.Bare(path); bare != path {
		return bare
	}
	if folder, isIndex := strings.CutSuffix(path, "/index.html"); isIndex {
		return folder + "/"
	}
	// A file whose name is nothing but the ending has no clean URL: that would be its folder's.
	if strings.HasSuffix(path, "/.html") {
		return path
	}
	return strings.TrimSuffix(path, ".html")
}

// addReason says why a page is not listed, unless its record does.
func (s *site) addReason(x *explanation, served *publication, path string) {
	word := ""
	if x.NamedBy == nil && !s.handler.settings.crawl.Off {
		word = s.handler.settings.crawl.disallows(path)
	}
	probed := cmp.Or(s.probed.Load(), new(probeResult))
	line := terminal.Clip(probed.robots.rules.Line(path))
	x.Rule = cmp.Or(word, line)
	s.decideReason(x, path, word, probed, served.history.Last)
	if line != "" && x.Rule == line {
		x.RobotsTxt = terminal.Clip(probed.robots.from)
	}
}

// decideReason is addReason but for the rule of robots.txt. What holds for the whole site comes first. word is that of
// 'crawl disallow' for which the page is not fetched; "": none.
func (s *site) decideReason(x *explanation, path, word string, probed *probeResult, last outcome.Outcome) {
	if probed.blocked != "" {
		x.because(probed.blocked, "", probed.remedy)
		if probed.status != 0 {
			x.Meaning = fmt.Sprintf("The sitemap's path, or the front page, returns status %d.", probed.status)
		}
		return
	}
	excluded := s.filter(&page.Page{Path: path})
	if s.servesAt(path) {
		x.because(cmp.Or(excluded, reasonDocument), "It is a document of the sitemap.", "")
		return
	}
	if excluded != "" {
		x.is(indexing.Excluded)
		x.Reason = excluded
		x.Rule = s.handler.settings.exclude.which(path)
		return
	}
	if x.Reason != "" {
		return
	}
	// A configuration before may have counted visits, which without a source that does so say nothing.
	d := s.discovery()
	isVisited := d != nil && !x.Visited.IsZero()
	isAllowed := word == "" && isVisited && d.unlinked.Match(path)
	switch {
	case last.Result == "" || last.Result == outcome.Failed:
		x.because("no refresh has succeeded yet, or the last one failed", terminal.Clip(last.Reason), "Wait, or see the log.")
	case !x.Fetched.IsZero(), isAllowed:
		x.because("waits for the next refresh", "It is not published yet.", "Wait.")
	case word != "":
		x.is(indexing.Disallowed)
	case path == robotsPath:
		x.because("no page", "It is for crawlers, not for people.", "")
	case isVisited:
		x.is(indexing.NoLinks)
	default:
		s.addUnnamed(x, path)
	}
}

// addUnnamed says that no source names a page, and why that may be.
func (s *site) addUnnamed(x *explanation, path string) {
	x.because(reasonUnnamed, "At the last refresh, no source named it, and no listed page linked to it.",
		"Name it in 'urls', with 'files' or 'links' written beside it, or name its kind of file in 'include' of 'files'. "+
			"With 'links', a link to it is enough, from a page within 'depth'.")
	if s.discovery() == nil {
		x.Meaning = "At the last refresh, no source named it. Links to it do not count without the source 'links'."
	}
	if s.isByLinks() {
		x.Meaning += " No source is written, and no file is the front page, so pages are found as by 'links'."
		x.Remedy = "Link to it, or write the sources: 'files' and 'links', or 'links' and 'urls'."
	}
	if _, isClean := s.cleaner().Clean(path); !isClean {
		x.because(reasonUnnamed, "Links and visits do not count for a path that is over 2000 bytes long, "+
			"or has an empty segment, a backslash, a control character or no valid UTF-8.",
			"Serve it at another path, or name it in 'urls', with 'files' or 'links' written beside it.")
	}
	for _, source := range s.sources() {
		f, isFiles := source.(*SourceFiles)
		if !isFiles || x.Rule != "" {
			continue
		}
		x.Rule = compilePatterns(new(option.Checker), "", f.Exclude).which(path)
		if x.Rule != "" {
			x.is(indexing.Excluded)
		}
	}
}

// documentOf is the URL of the document that lists a path; "": none does.
func (s *site) documentOf(served *publication, path string) (string, error) {
	snapshot := served.snapshot
	if snapshot == nil {
		return "", nil
	}
	d := snapshot.Holding(served.sections.of(path), path)
	if isListed, err := d.Lists(s.origin + path); !isListed {
		return "", err
	}
	return s.origin + s.docPath(d.Name), nil
}

func (s *site) isListed(path string) bool {
	document, _ := s.documentOf(s.published(), path)
	return document != ""
}
