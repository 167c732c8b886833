package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

const (
	// buildTime is how long a build may ask for pages before it lists them.
	buildTime = 1000 * time.Hour

	// idleRounds is how often in a row asking may come to nothing before it ends.
	idleRounds = 2

	// maxDoubts is how often in a row a refresh may find something else than the one
	// before it, and that to be doubted.
	maxDoubts = 5
)

// building is a build without a server. Its methods do nothing where there is none.
type building struct {
	pages, asked atomic.Int64 // looked at; asked for apart from reading
	doing        atomic.Pointer[string]
	last         map[*site]outcome
}

func newBuilding() *building {
	b := &building{last: make(map[*site]outcome)}
	b.now("looking at the site")
	return b
}

// now says what the build is doing.
func (b *building) now(doing string) { b.doing.Store(&doing) }

// found counts a page that sources have.
func (b *building) found() {
	if b != nil {
		b.pages.Add(1)
	}
}

// heard counts a page that was asked for.
func (b *building) heard() {
	if b != nil {
		b.asked.Add(1)
	}
}

// cameTo takes down what a refresh came to.
func (b *building) cameTo(s *site, result outcome) {
	if b != nil {
		b.last[s] = result
	}
}

// appOf is the sitemap app of a configuration that is provisioned and not started.
func appOf(ctx caddy.Context) (*App, error) {
	app, err := ctx.App("sitemap")
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

var errNoSitemapHandler = errors.New("the configuration has no sitemap handler")

// buildSites finds the sites that are to be built, in the place of Start. Those that are
// united with others are left out. The error says why there is none, or that one could
// not be looked at.
func (a *App) buildSites(ctx context.Context, b *building) ([]*site, error) {
	if len(a.handlers) == 0 {
		return nil, errNoSitemapHandler
	}
	cores := max(runtime.GOMAXPROCS(0), 1)
	a.building, a.asks = b, make(chan struct{}, cores)
	a.seatHandlers()
	a.library.open(a)
	named := a.namedSites(math.MaxInt)
	close(a.started)
	if len(named) == 0 {
		return nil, errors.New("no matcher of the configuration names a host: give the site's URL with --base-url")
	}
	for _, s := range named {
		s.advised = true // which is about serving
		if err := s.look(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", s.base+s.at, err)
		}
	}
	a.unite(ctx, twins(named))
	var sites []*site
	for _, s := range named {
		if s.main.Load() == nil {
			sites = append(sites, s)
		}
	}
	return sites, ctx.Err()
}

// build refreshes a site until there is nothing more to learn: every page was asked for
// that is to be, and what that has changed is listed. The error is ctx's, or says which
// pages could not be gathered.
func (s *site) build(ctx context.Context) error {
	b := s.app.building
	for i := range s.verifiers {
		s.verifiers[i].busy.Store(true) // the build asks itself
	}
	for doubts := 0; ; {
		b.now("reading")
		if s.handler.settings.manners.off {
			b.now("scanning")
		}
		s.hastened.Store(true)
		s.refresh(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		result, ran := b.last[s]
		if err := failure(result, ran); err != nil {
			return err
		}
		if s.held.Load().doubted != "" && doubts < maxDoubts {
			doubts++
			continue
		}
		doubts = 0
		asked := s.askAll(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		grown := result.round != nil && result.round.Grown()
		if asked == 0 && !grown && (s.handler.settings.manners.off || !s.shelf.changed.Load()) {
			return nil
		}
	}
}

// failure is why a refresh cannot be believed to have seen all pages; nil: it can.
func failure(result outcome, ran bool) error {
	if !ran {
		return errors.New("the site could not be looked at")
	}
	if err := result.err(); err != nil {
		return fmt.Errorf("gathering pages: %w", err)
	}
	return nil
}

// askAll asks for all pages that are due, and returns how many that were.
func (s *site) askAll(ctx context.Context) int64 {
	b := s.app.building
	if s.handler.settings.manners.off {
		return 0
	}
	begun := b.asked.Load()
	for idle := 0; idle < idleRounds && ctx.Err() == nil; {
		before, due := b.asked.Load(), false
		var group sync.WaitGroup
		for kind := range kindsOfAnswerer {
			if s.verifiers[kind].due.Load() > s.app.now().Unix() {
				continue
			}
			due = true
			group.Go(func() { (&verification{site: s, kind: kind}).run(ctx) })
		}
		if !due {
			break
		}
		b.now("asking")
		group.Wait()
		if idle++; b.asked.Load() > before {
			idle = 0
		}
	}
	return b.asked.Load() - begun
}

// silent are the paths of the first few pages that are listed, and have not answered.
func (s *site) silent(ctx context.Context) (paths []string, err error) {
	err = s.shelf.book.Load().Records(ctx, func(r *state.Record) error {
		answered := r.Asked != 0 && verdict.Reason(r.Answer) != verdict.Unknown
		if r.Flags&verdict.FlagListed != 0 && !answered && len(paths) < maxExamples {
			paths = append(paths, strings.Clone(r.Page.Path))
		}
		return nil
	})
	return paths, err
}

// nothing says why a site has no pages.
func (s *site) nothing() string {
	seen := &s.sight
	switch seen.unlisted() {
	case saysPrivate:
		return fmt.Sprintf("the site refuses strangers with status %d", seen.private)
	case saysShadowed:
		return "another sitemap handler before this one has the same path"
	case saysUnreached:
		return fmt.Sprintf("requests for %s do not reach its handler: status %d", s.askPath(), seen.status)
	}
	if seen.root == "" && s.handler.wantsRoot {
		return seen.noRoot
	}
	return "no page to list"
}

// builtRobots is a robots.txt to be written.
type builtRobots struct {
	was     []byte // what the site has; nil: nothing
	content []byte // nil: none is written
	note    string // why not
	named   string // the URL of a Sitemap line that a build has put there; "": none
}

// robotsNaming makes the robots.txt that names the sitemap of a site's own one. earlier
// is the URL of the line that the build before put there, "": none. It goes.
func (s *site) robotsNaming(ctx context.Context, earlier string) (r builtRobots) {
	r.named = earlier
	line := "Sitemap: " + s.url()
	if s.at != "" {
		r.note = fmt.Sprintf("crawlers read the robots.txt of the host alone: add this line to %s%s: %s", s.base, robotsPath, line)
		return r
	}
	answer, err := s.ask(ctx, http.MethodGet, robotsPath, robotstxt.MaxBody)
	switch {
	case err != nil:
		r.note = fmt.Sprintf("robots.txt could not be read (%v): add this line to it: %s", err, line)
		return r
	case answer.Unhandled:
		answer.Status = http.StatusNotFound
	case answer.Truncated, answer.Status != http.StatusOK && !isGone(answer.Status):
		r.note = fmt.Sprintf("robots.txt answers with status %d, or is too long: add this line to it: %s", answer.Status, line)
		return r
	}
	body := answer.Body
	if earlier != s.url() {
		body = unnaming(body, earlier)
	}
	merged, made, ok := namingSitemap(answer.Status, answer.Header.Get("Content-Type"), body, s.url())
	if !ok {
		r.note = "robots.txt is no text: add this line to it: " + line
		return r
	}
	if r.content = merged; !bytes.Equal(merged, body) {
		r.named = s.url()
	} else if earlier != s.url() {
		r.named = "" // the site's own has the line
	}
	if !made || answer.Status == http.StatusOK && len(answer.Body) == 0 {
		r.was = append([]byte{}, answer.Body...)
	}
	return r
}

// unnaming is a robots.txt without the Sitemap line that a build put there; nothing where a
// build made all of it.
func unnaming(body []byte, sitemap string) []byte {
	if sitemap == "" {
		return body
	}
	if bytes.Equal(body, robotstxt.New(sitemap)) {
		return nil
	}
	var kept []byte
	for line := range bytes.Lines(body) {
		if string(bytes.TrimRight(line, "\r\n")) != "Sitemap: "+sitemap {
			kept = append(kept, line...)
		}
	}
	return kept
}

// fileName is the name of a document, or of another path of the site's URLs, in the
// folder that a static host serves as the site's.
func (s *site) fileName(suffix, extension string) string {
	return decoded(strings.TrimPrefix(strings.TrimPrefix(s.docPath(suffix, extension), s.at), "/"))
}
