package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Explanation is why a URL is listed in a site's sitemap, or why it is not.
type Explanation struct {
	// URL is the one that was asked about, as it is or would be listed, Site what
	// the URLs of its site begin with, and Path its path with its query.
	URL  string `json:"url"`
	Site string `json:"site"`
	Path string `json:"path"`

	// Listed says that the sitemap being served has it: the document at Document
	// says LastMod, ChangeFreq and Priority of it. Verified says that it was asked
	// for, and answered with 200.
	Listed     bool   `json:"listed"`
	Document   string `json:"document,omitempty"`
	LastMod    string `json:"lastmod,omitempty"`
	ChangeFreq string `json:"changefreq,omitempty"`
	Priority   string `json:"priority,omitempty"`
	Verified   bool   `json:"verified,omitempty"`

	// Reason is why it is not listed, in the words of the log; empty if it is.
	// Explanation is what that means here, and what to do.
	Reason      string `json:"reason,omitempty"`
	Explanation string `json:"explanation"`

	// What is remembered of it: the page that it names in its own stead, when it was
	// asked for last (RFC 3339), whether visitors and links alone show it, and
	// whether a page links to it.
	Canonical  string `json:"canonical,omitempty"`
	AskedAt    string `json:"asked_at,omitempty"`
	Discovered bool   `json:"discovered,omitempty"`
	Linked     bool   `json:"linked,omitempty"`

	// Answer is what a stranger gets now; nil: it was not asked for.
	Answer *ExplainedAnswer `json:"answer,omitempty"`

	// Sources is what each source says of it, where that decides.
	Sources []ExplainedSource `json:"sources,omitempty"`

	Notes []string `json:"notes,omitempty"`
}

// ExplainedAnswer is what the site answers to a stranger.
type ExplainedAnswer struct {
	Status      int    `json:"status,omitempty"`
	Location    string `json:"location,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	NoIndex     bool   `json:"noindex,omitempty"`
	Error       string `json:"error,omitempty"` // why there was no answer
}

// ExplainedSource is what a source says of a page.
type ExplainedSource struct {
	Source string `json:"source"`
	Says   string `json:"says"`
}

var (
	errNotURL = errors.New("not the URL of a page")
	errNoSite = errors.New("no sitemap is for this URL")
)

const (
	longestExplained = 64 << 10 // bytes of a URL
	maxNamedSites    = 10
	maxExplained     = 10 // sitemaps of one address
)

// explain tells why a URL is listed or is not. It changes nothing but what an ask
// does: the page is asked for as a refresh would ask for it. The error wraps errNotURL,
// errNoSite or errNotReady, or is ctx's.
func (a *App) explain(ctx context.Context, rawURL string) (*Explanation, error) {
	asked, err := parseAsked(rawURL)
	if err != nil {
		return nil, err
	}
	if err := a.awaitStart(ctx); err != nil {
		return nil, err
	}
	sites := a.sitesFor(&asked)
	if len(sites) == 0 {
		return nil, a.noSite()
	}
	var all []*explainer
	for _, s := range sites[:min(len(sites), maxExplained)] {
		e, err := s.explain(ctx, asked.path)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(x, y *explainer) int { return y.weight() - x.weight() })
	best := all[0]
	best.x.Notes = append(asked.notes, best.x.Notes...)
	for _, e := range all[1:] {
		best.note("of the sitemap %s: %s", e.site.url(), e.summary())
	}
	if err := best.askNow(); err != nil {
		return nil, err
	}
	return best.x, nil
}

// askedURL is a URL that is asked about.
type askedURL struct {
	scheme, host, port string
	path               string // canonical, with its query
	notes              []string
}

func parseAsked(raw string) (askedURL, error) {
	if len(raw) > longestExplained {
		return askedURL{}, fmt.Errorf("%w: it has more than %d bytes", errNotURL, longestExplained)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err // without all of the URL
		}
		return askedURL{}, fmt.Errorf("%w: %.200q", errNotURL, err.Error())
	case u.Scheme != "http" && u.Scheme != "https", u.Opaque != "", u.Host == "":
		return askedURL{}, fmt.Errorf("%w: an absolute one is wanted, such as https://example.com/page", errNotURL)
	case u.User != nil:
		return askedURL{}, fmt.Errorf("%w: it has a user name", errNotURL)
	}
	asked := askedURL{scheme: u.Scheme}
	var ok, hasPort bool
	asked.host, ok = cleanHost(u.Host)
	if asked.port, hasPort = forwardedPort(u.Scheme, u.Host); !ok || !hasPort {
		return askedURL{}, fmt.Errorf("%w: its host is none", errNotURL)
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	if asked.path, err = page.Canonical(path); err != nil {
		return askedURL{}, fmt.Errorf("%w: %w", errNotURL, err)
	}
	if u.Fragment != "" {
		asked.notes = append(asked.notes, "what follows # names a place in a page, and is left out")
	}
	if asked.path != path {
		asked.notes = append(asked.notes, "it is written as sitemaps write it")
	}
	return asked, nil
}

// sitesFor are the sites that a URL may be of, the likeliest first: those in whose
// folder it lies, else all of its address.
func (a *App) sitesFor(asked *askedURL) []*site {
	sites := a.sitesAt(asked)
	within := slices.DeleteFunc(slices.Clone(sites), func(s *site) bool { return !strings.HasPrefix(asked.path, s.at+"/") })
	if len(within) > 0 {
		sites = within
	}
	for i, s := range sites {
		if main := s.main.Load(); main != nil {
			sites[i] = main
			asked.notes = append(asked.notes, fmt.Sprintf("the sitemap of %s stands for that of %s", main.base+main.at, s.base+s.at))
		}
	}
	// The narrowest first, of those that the URL lies in.
	slices.SortFunc(sites, func(x, y *site) int {
		nx, ny := asked.depthIn(x), asked.depthIn(y)
		if nx != ny {
			return ny - nx
		}
		return strings.Compare(x.url(), y.url())
	})
	return slices.Compact(sites)
}

// depthIn is how long the folder is of which a site's sitemap is and that the URL lies
// in; 0: it lies outside.
func (u *askedURL) depthIn(s *site) int {
	if scope := s.scope(); strings.HasPrefix(u.path, scope) {
		return len(scope)
	}
	return 0
}

// sitesAt are the sites of a URL's scheme, host and port: as they stand in the sitemap,
// else as the server knows them.
func (a *App) sitesAt(asked *askedURL) []*site {
	all := a.allSites()
	bare := asked.port
	if bare == fmt.Sprint(a.httpPort) || bare == fmt.Sprint(a.httpsPort) {
		bare = "" // as URLs leave it out
	}
	for _, is := range []func(*site) bool{
		func(s *site) bool { return s.base == origin(asked.scheme, asked.host, asked.port) },
		func(s *site) bool { return s.base == origin(asked.scheme, asked.host, bare) },
		func(s *site) bool { return s.askBase == origin(asked.scheme, asked.host, asked.port) },
		func(s *site) bool { return s.askBase == origin(asked.scheme, asked.host, bare) },
	} {
		var found []*site
		for _, s := range all {
			if is(s) {
				found = append(found, s)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// noSite says which sites there are.
func (a *App) noSite() error {
	var names []string
	for _, s := range a.allSites() {
		names = append(names, s.base+s.at+"/")
	}
	names = slices.Compact(names)
	switch n := len(names); {
	case n == 0:
		return fmt.Errorf("%w: there is no site so far; one that no matcher names is made by its first request", errNoSite)
	case n > maxNamedSites:
		return fmt.Errorf("%w: there are %d sites, such as %s", errNoSite, n, strings.Join(names[:maxNamedSites], ", "))
	}
	return fmt.Errorf("%w: there are the sites %s", errNoSite, strings.Join(names, ", "))
}
