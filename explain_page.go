package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/discover"
	"github.com/seed3295b519/caddy-sitemap/internal/evidence"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// Why a page is not listed, besides the reasons of the log, which counts candidates
// alone.
const (
	unknownPage   = "no source names it"
	otherPath     = "listed by another path"
	nextRefresh   = "waits for the next refresh"
	notRefreshed  = "no refresh has ended yet"
	notBelieved   = "the last refresh is not believed"
	lastFailed    = "the last refresh failed"
	siteRefuses   = "the site refuses strangers"
	siteUnreached = "the sitemap's handler is not reached"
	tooManyLinks  = "too many links away"
	fewVisitors   = "too few visitors"
)

// explainer finds out why a page of a site is listed or is not.
type explainer struct {
	ctx  context.Context
	site *site
	path string
	x    *Explanation
	now  time.Time

	seen   *sight // nil: the site was not looked at
	record *state.Record
	known  discover.Known // of visitors and links
	rules  *crawlRules    // that the last refresh went by; nil: none

	isOther bool // it is what another page goes by
}

// explain explains a path without asking for it.
func (s *site) explain(ctx context.Context, path string) (*explainer, error) {
	e := &explainer{ctx: ctx, site: s, path: path}
	return e, e.begin()
}

// begin explains all but what the page answers now.
func (e *explainer) begin() error {
	s, path := e.site, e.path
	e.now, e.seen = s.app.now(), s.seen.Load()
	e.x = &Explanation{URL: s.base + path, Site: s.base + s.at, Path: path}
	if !s.handler.settings.manners.off {
		e.rules = s.shelf.rules.Load()
		if err := e.fresh(e.remember); err != nil {
			return err
		}
	}
	if catalog := s.catalog.Load(); catalog != nil && s.handler.discovery != nil {
		e.known = catalog.Known(path)
		e.x.Linked = e.x.Linked || e.known.Linked
	}
	entry, document, err := s.entry(path)
	if err != nil {
		return err
	}
	if document != nil {
		e.listed(entry, document)
		return nil
	}
	return e.why()
}

func (e *explainer) note(format string, args ...any) {
	e.x.Notes = append(e.x.Notes, fmt.Sprintf(format, args...))
}

// because is why the page is not listed.
func (e *explainer) because(reason, format string, args ...any) {
	e.x.Reason, e.x.Explanation = reason, fmt.Sprintf(format, args...)
}

// weight tells which of several sitemaps' explanations counts.
func (e *explainer) weight() int {
	switch {
	case e.x.Listed:
		return 2
	case e.x.Reason == siteRefuses, e.x.Reason == siteUnreached:
		return 0
	}
	return 1
}

func (e *explainer) summary() string {
	if e.x.Listed {
		return "listed"
	}
	return e.x.Reason
}

// maxStale is how often what is remembered is read again that changes meanwhile.
const maxStale = 5

// fresh reads what is remembered, and again where another book took its place.
func (e *explainer) fresh(read func(*state.Book) error) error {
	for n := 1; ; n++ {
		book := e.site.shelf.book.Load()
		if book == nil {
			return nil
		}
		err := read(book)
		switch {
		case err == nil || e.ctx.Err() != nil:
			return e.ctx.Err()
		case errors.Is(err, state.ErrStale) && n < maxStale:
		default:
			return fmt.Errorf("reading what is known of pages: %w", err)
		}
	}
}

// remember takes what is known of the page.
func (e *explainer) remember(book *state.Book) error {
	r, found, err := book.Find(e.ctx, e.path)
	if err != nil || !found {
		return err
	}
	e.record = r
	e.x.Discovered = r.Flags&verdict.FlagDiscovered != 0
	e.x.Linked = r.Flags&verdict.FlagLinked != 0
	if r.Asked != 0 {
		e.x.AskedAt = time.Unix(r.Asked, 0).UTC().Format(time.RFC3339)
	}
	if r.Canonical != "" {
		e.x.Canonical = e.site.base + r.Canonical
	}
	return nil
}

// entry is what the sitemap being served says of a path; a nil document: nothing.
func (s *site) entry(path string) (sitemapxml.URL, *document, error) {
	snapshot := s.current()
	if snapshot == nil {
		return sitemapxml.URL{}, nil, nil
	}
	d := snapshot.holding(path)
	xml, err := openXML(d)
	if err != nil {
		return sitemapxml.URL{}, nil, fmt.Errorf("reading the sitemap: %w", err)
	}
	defer xml.Close()
	entry, found, err := sitemapxml.Find(xml, s.base+path)
	if err != nil {
		return sitemapxml.URL{}, nil, fmt.Errorf("reading the sitemap: %w", err)
	}
	if !found {
		d = nil
	}
	return entry, d, nil
}

// listed says where the page is listed, and what may take it off.
func (e *explainer) listed(entry sitemapxml.URL, d *document) {
	e.x.Listed, e.x.Document = true, e.site.base+e.site.docPath(d.suffix, ".xml")
	e.x.LastMod, e.x.ChangeFreq, e.x.Priority = entry.LastMod, entry.ChangeFreq, entry.Priority
	r := e.record
	e.x.Verified = r != nil && r.Asked != 0 && verdict.Reason(r.Answer) != verdict.Unknown
	switch {
	case e.x.Verified:
		e.x.Explanation = "It is listed: it was asked for, and answered with 200."
	case e.site.handler.settings.manners.off:
		e.x.Explanation = "It is listed by its name alone: ask is off, so nobody knows what it answers."
	default:
		e.x.Explanation = "It is listed. It has not answered an ask so far, and nothing speaks against it."
	}
	if reason := e.ruled(); reason != "" {
		e.note("the next refresh takes it off: %s", reason)
	}
	if r != nil && r.Flags&verdict.FlagGone != 0 {
		e.note("no source names it any more, so the next refresh takes it off")
	}
	e.noteSuspicion()
}

func (e *explainer) noteSuspicion() {
	if r := e.record; r != nil && r.Suspect != 0 {
		e.note("the last ask said '%s', which counts once it is believed: if few pages say so at once, or when it says so again, an hour later", verdict.Reason(r.Suspect))
	}
}

// ruled is the reason for which the handler's own rules leave the page out; "": none.
func (e *explainer) ruled() string {
	j := &judge{settings: e.site.handler.settings, site: e.site, scope: e.site.scope()}
	return j.verdict(page.Page{Path: e.path})
}

// why finds the reason for which the page is not listed: what is true of the whole site
// comes before what is true of the page.
func (e *explainer) why() error {
	switch ruled := e.ruled(); {
	case e.siteIsLeftOut():
		if ruled != "" {
			e.note("it would not be listed anyway: %s", ruled)
		}
		return nil
	case ruled != "":
		e.because(ruled, "%s", e.ruledBy(ruled))
		return nil
	case e.site.current() == nil && e.site.isFirst():
		e.because(notRefreshed, "The sitemap is being made for the first time: ask again when it is there.")
		return nil
	}
	if r := e.record; r != nil && r.Flags&verdict.FlagGone == 0 {
		reason, explained, isCandidate, err := e.judged()
		switch {
		case err != nil:
			return err
		case isCandidate && reason.Listed():
			e.pending()
			return nil
		case isCandidate:
			e.because(reason.String(), "%s", explained)
			e.noteSuspicion()
			return nil
		}
	}
	return e.notNamed()
}

// siteIsLeftOut reports whether nothing of the site is listed, and says why.
func (e *explainer) siteIsLeftOut() bool {
	seen := e.seen
	if seen == nil {
		return false
	}
	switch seen.unlisted() {
	case saysPrivate:
		e.because(siteRefuses, "Its front page, or the sitemap, answers %d to a stranger, so nothing of the site is listed. Nothing is to be done if it is private.", seen.private)
	case saysShadowed:
		e.because(siteUnreached, "Another sitemap handler before this one has the same path, %s, so nothing is listed here: give one of them another 'path'.", e.site.askPath())
	case saysUnreached:
		e.because(siteUnreached, "Requests for %s do not reach the sitemap handler (they are answered with status %d), so nothing is listed: take them out of what answers them first.", e.site.askPath(), seen.status)
	default:
		return false
	}
	return true
}

// ruledBy explains a reason of ruled.
func (e *explainer) ruledBy(reason string) string {
	s := e.site
	switch reason {
	case outsideScope:
		return fmt.Sprintf("The sitemap %s may list what lies below %s alone: see 'path' and 'base_url'.", s.url(), s.base+s.scope())
	case omitted:
		return fmt.Sprintf("'omit' has a pattern that matches it: %s.", matching(s.handler.Omit, e.path))
	case urlTooLong:
		return fmt.Sprintf("It has %d bytes, and the protocol allows %d.", len(s.base)+len(e.path), page.MaxLoc)
	case ownDocument:
		return "It is a document of the sitemap itself."
	}
	return reason
}

// matching are those of some patterns that match a path.
func matching(patterns []string, path string) string {
	var found []string
	for _, pattern := range replaced(caddy.NewReplacer(), patterns) {
		if one, err := page.CompilePatterns([]string{pattern}); err == nil && one.Match(path) {
			found = append(found, pattern)
		}
	}
	return strings.Join(found, " ")
}

// pending says why a page is not in the sitemap of which nothing keeps it out.
func (e *explainer) pending() {
	s, last, snapshot := e.site, e.site.told(), e.site.current()
	if last == nil {
		last = new(report)
	}
	switch {
	case last.result == refreshFailed:
		e.because(lastFailed, "Nothing speaks against it, but the last refresh failed, and the last good sitemap stays: %.500q. The log says more.", last.reason)
	case last.result == refreshDoubted:
		e.because(notBelieved, "Nothing speaks against it, but the last refresh is not believed until the next one says the same: %.500s.", last.reason)
	case snapshot != nil && snapshot.pages >= s.handler.settings.maxURLs:
		e.because(overMaxURLs, "The sitemap holds as many pages as it may, %d, and the last ones by path are left out: raise 'max_urls'.", s.handler.settings.maxURLs)
	case snapshot != nil && len(snapshot.shards) >= maxIndexEntries:
		e.because(indexFull, "The index holds as many documents as it may: raise 'shard_urls'.")
	default:
		e.because(nextRefresh, "Nothing speaks against it: it was learnt after the sitemap was made, and the next refresh lists it.")
	}
	for i, source := range last.sources {
		if source.err != "" {
			e.note("at the last refresh, source %d (%s) could not be read: %.300q", i+1, source.name, source.err)
		}
	}
}

// askNow asks for the page, as a stranger, and says what is otherwise than before.
func (e *explainer) askNow() error {
	why, err := e.unasked()
	if err != nil {
		return err
	}
	if why != "" {
		e.note("it is not asked for now: %s", why)
		return nil
	}
	answer, err := e.ask()
	switch {
	case e.ctx.Err() != nil:
		return e.ctx.Err()
	case err == errResting:
		e.note("it is not asked for now: %s", err)
	case err != nil:
		e.x.Answer = &ExplainedAnswer{Error: clip(err.Error())}
		e.compare(verdict.Unknown, "it gives no answer now")
	default:
		e.heard(answer)
	}
	return nil
}

// unasked is why the page is not to be asked for; "": it is.
func (e *explainer) unasked() (string, error) {
	s, r := e.site, e.record
	switch {
	case s.handler.settings.manners.off:
		return "ask is off", nil
	case !s.isAsked(e.path):
		return "'ask never' has a name or a pattern of its path", nil
	case len(e.path) > evidence.MaxURL:
		return "its URL is too long", nil
	case r == nil && (e.known.From != 0 || e.known.Hashed) && !e.known.Linked:
		return "a page that only visitors know may be somebody's own", nil
	}
	rules, err := s.askRules(e.ctx)
	if err != nil {
		return "", err
	}
	if rules.closed {
		return "robots.txt answers with an error, so nothing is asked for", nil
	}
	if before := e.rules; before != nil && before.forbid(e.path) != rules.forbid(e.path) {
		e.note("robots.txt says otherwise now, which the next refresh goes by")
	}
	if rules.forbid(e.path) {
		return fmt.Sprintf("robots.txt forbids it (%.200q)", rules.rules.Line(e.path)), nil
	}
	return "", nil
}

var errResting = errors.New("asking rests, since the upstream is slow, or was asked for another page just now")

// longestTurn is how long an ask may wait for its turn at an upstream.
const longestTurn = 3 * time.Second

// ask asks for the page when it is its turn.
func (e *explainer) ask() (*Answer, error) {
	s := e.site
	ask := func() (*Answer, error) {
		return s.askPage(e.ctx, nil, http.MethodGet, e.path, evidence.MaxBody, nil)
	}
	if r := e.record; !s.proxied.Load() && !s.proxiedFiles.Load() && (r == nil || r.Flags&verdict.FlagProxied == 0) {
		return ask()
	}
	ctx, cancel := context.WithTimeout(e.ctx, longestTurn)
	defer cancel()
	done, err := s.pace.begin(ctx, s.app.now)
	if err != nil {
		return nil, errResting
	}
	answer, err := ask()
	done(answer)
	return answer, err
}

// heard says what an answer means.
func (e *explainer) heard(answer *Answer) {
	x := &ExplainedAnswer{
		Status: answer.Status, Location: clip(answer.Header.Get("Location")), ContentType: clip(answer.Header.Get("Content-Type")),
	}
	e.x.Answer = x
	if answer.Unhandled {
		x.Error = "no route answers it: a visitor gets an empty 200"
		e.compare(verdict.Gone, "no route answers it now")
		return
	}
	as := evidence.Page{Base: e.site.base, Path: e.path, Header: answer.Header, Now: e.now}
	said := evidence.Header(as)
	r := &state.Record{Page: page.Page{Path: e.path}}
	if e.record != nil {
		r.Flags = e.record.Flags & verdict.FlagDiscovered
	}
	answered := verdict.Answered{Status: answer.Status, Header: answer.Header}
	encoding := answer.Header.Get("Content-Encoding")
	if answer.Status == http.StatusOK && evidence.IsHTML(answer.Header.Get("Content-Type")) && (encoding == "" || encoding == "identity") {
		said = evidence.NewReader(evidence.Options{}).Read(answer.Body, as)
		answered.Page = &said
	}
	x.NoIndex = said.NoIndex
	verdict.Answer(r, answered, e.site.base, e.now)
	e.compare(verdict.Reason(r.Answer), fmt.Sprintf("it answers %d now", answer.Status))
}

// compare says what differs between what is remembered and what the page says now.
func (e *explainer) compare(now verdict.Reason, what string) {
	switch {
	case e.x.Listed:
		e.compareListed(now, what)
	case e.record == nil && !now.Listed():
		e.note("%s ('%s'), so it would not be listed if a source named it", what, now)
	case e.record == nil, e.x.Reason == now.String():
	case !now.Listed():
		e.add("Besides, %s ('%s').", what, now)
	case !verdict.Reason(e.record.Content).Listed():
		e.add("But %s, and nothing in that speaks against it: its file is read again at the next refresh after it has changed.", what)
	case e.x.Reason == verdict.Reason(e.record.Answer).String() && e.x.Reason != verdict.SoftNotFound.String():
		due := verdict.Due(e.record, verdict.Hash(e.path))
		e.add("But %s, and nothing in that speaks against it: it is listed once it has been asked for again, which is due %s.", what, dueAt(due, e.now))
	}
}

// compareListed says what becomes of a listed page with what it says now.
func (e *explainer) compareListed(now verdict.Reason, what string) {
	switch {
	case now.Listed():
	case now == verdict.Failing, e.x.Answer.Status == http.StatusForbidden:
		e.add("But %s, which says nothing of a page that was good: it stays listed.", what)
	case now == verdict.CanonicalHere:
		e.add("But it names another page as its canonical now: if that one is listed, the sitemap drops this one when it has asked for it again.")
	default:
		e.add("But %s ('%s'): the sitemap drops it when it has asked for it again, and it still says so.", what, now)
	}
}

// dueAt is when something is due, in words.
func dueAt(due int64, now time.Time) string {
	if due <= now.Unix() {
		return "now"
	}
	return "at " + time.Unix(due, 0).UTC().Format(time.RFC3339)
}

func (e *explainer) add(format string, args ...any) {
	e.x.Explanation += " " + fmt.Sprintf(format, args...)
}

// maxClipped bounds what is shown of a stranger's words.
const maxClipped = 2048

func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxClipped)], "\uFFFD")
}
