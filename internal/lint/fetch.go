package lint

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// trust lets a URL's host have any address, at its port and at those to which another scheme may redirect.
func (c *checker) trust(u *url.URL) {
	for _, port := range []string{u.Port(), "80", "443"} {
		c.trusted[net.JoinHostPort(strings.ToLower(u.Hostname()), port)] = true
	}
}

const acceptAny = "*/*" // for documents, which no HTML should stand for

// get requests a URL as a client that accepts these types. The body is to be closed.
func (c *checker) get(client *http.Client, at, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.UserAgent)
	req.Header.Set("Accept", accept)
	res, err := client.Do(req)
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return nil, fmt.Errorf("%w; --insecure accepts any certificate", err)
	}
	return res, err
}

// location checks a URL that the user names: a site, whose robots.txt says where its sitemaps are; a robots.txt;
// or a document.
func (c *checker) location(name string) {
	base, _, err := parseURL(name)
	if err != nil {
		c.unchecked(place{file: name}, "document-unreachable", err)
		return
	}
	u, err := url.Parse(name)
	if err != nil {
		c.unchecked(place{file: name}, "document-unreachable", err)
		return
	}
	u.Fragment = ""
	c.trust(u)
	isSite := u.RawQuery == "" && (u.Path == "" || strings.HasSuffix(u.Path, "/"))
	if !isSite && u.Path != "/robots.txt" {
		c.fetch(place{url: u.String()}, false)
		return
	}
	namesSitemap := c.siteRobots(base, isSite)
	if isSite && !namesSitemap {
		// The place that the protocol recommends (https://www.sitemaps.org/protocol.html#location).
		c.fetch(place{url: u.JoinPath("sitemap.xml").String()}, false)
	}
}

// siteRobots checks the robots.txt of a site and the documents that it names, and reports whether there are any.
// A site needs none; where the user has named it, it is missing.
func (c *checker) siteRobots(base string, isOptional bool) bool {
	at := place{file: base + "/robots.txt"}
	s := c.server(base)
	if s.closed != nil {
		c.unchecked(at, "robots-unreachable", s.closed)
	} else if s.status != http.StatusOK && !isOptional {
		c.report(at, Error, "robots-status", "returns status %d", s.status)
	}
	if s.status != http.StatusOK {
		return false
	}
	return c.robots(at.file, strings.NewReader(s.robots), "")
}

// robots checks the Sitemap lines of a robots.txt and the documents that they name, and reports whether there are any.
func (c *checker) robots(file string, r io.Reader, dir string) bool {
	c.done[file] = new(result)
	body, err := io.ReadAll(io.LimitReader(r, robotstxt.MaxBody))
	at := place{file: file}
	if err != nil {
		c.unchecked(at, "document-unread", err)
	} else if robotstxt.IsHTML("", body) {
		c.report(at, Error, "html", "is an HTML page, not a robots.txt")
	}
	sitemaps := robotstxt.Sitemaps(body)
	for _, at.url = range sitemaps {
		if _, _, err := parseURL(at.url); err != nil {
			c.report(at, Error, "robots-url", "the URL of a Sitemap line is invalid: %v", err)
		} else {
			c.load(at, dir, false)
		}
	}
	if len(sitemaps) == 0 {
		c.report(place{file: file}, Warning, "robots-no-sitemap", "there is no Sitemap line")
	}
	return len(sitemaps) > 0
}

// fetch checks the document at a URL, unless it was already; listed says that an index names it.
func (c *checker) fetch(at place, listed bool) *result {
	if done := c.done[at.url]; done != nil {
		return done
	}
	at.file = cmp.Or(at.file, at.url)
	res, err := c.get(c.follow, at.url, acceptAny)
	if err != nil {
		c.unchecked(at, "document-unreachable", err)
		return new(result)
	}
	defer res.Body.Close()
	final := res.Request.URL.String()
	if final != at.url {
		c.report(at, Warning, "document-redirect", "redirects to %s", final)
	}
	if res.StatusCode != http.StatusOK {
		c.report(at, Error, "document-status", "returns status %d", res.StatusCode)
		return new(result)
	}
	d := c.document(at.url, final, res.Body, "", listed)
	at.file = at.url
	// The transport has decompressed what was compressed for the transfer: of that, the file's own bytes are not known.
	if !res.Uncompressed {
		c.checkPacked(at, res.Request.URL.Path, d)
	}
	c.checkMedia(at, res.Header.Get("Content-Type"), d)
	return d
}

// checkMedia checks as what a document is sent.
func (c *checker) checkMedia(at place, contentType string, d *result) {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	isXML := d.kind == urlSet || d.kind == index
	isSentAsXML := strings.HasSuffix(media, "xml") || strings.HasSuffix(media, "gzip")
	if d.kind != "" && html.IsHTML(media) {
		c.report(at, Error, "content-type", "is sent as %s", media)
	} else if isXML && !isSentAsXML {
		c.report(at, Warning, "content-type",
			"is XML sent as '%s': some crawlers read only application/xml or text/xml", media)
	}
}

// draw draws some of the pages that it is given, each as likely as any other. Equal documents give an equal sample.
func (c *checker) draw(at place) {
	c.offered++
	if len(c.drawn) < c.Sample {
		c.drawn = append(c.drawn, at)
		return
	}
	// Reservoir sampling: how many pages come is not known (https://en.wikipedia.org/wiki/Reservoir_sampling).
	if i := c.random.IntN(c.offered); i < c.Sample {
		c.drawn[i] = at
	}
}

// server is what is known of a server.
type server struct {
	status      int // of its robots.txt; 0: it does not answer
	robots      string
	own, google robotstxt.Rules
	closed      error // why it is left alone
}

// server fetches the robots.txt of a server, once.
func (c *checker) server(base string) *server {
	if s := c.servers[base]; s != nil {
		return s
	}
	s := new(server)
	c.servers[base] = s
	res, err := c.get(c.follow, base+"/robots.txt", acceptAny)
	if err != nil {
		s.closed = fmt.Errorf("cannot read robots.txt: %w", err)
		return s
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, robotstxt.MaxBody))
	if err != nil {
		s.closed = fmt.Errorf("cannot read robots.txt: %w", err)
		return s
	}
	s.status = res.StatusCode
	s.robots = string(body)
	if robotstxt.Closes(s.status) {
		s.closed = fmt.Errorf("robots.txt returns status %d, so crawlers request no page of the site", s.status)
		return s
	}
	hasRules := s.status == http.StatusOK && !robotstxt.IsHTML(res.Header.Get("Content-Type"), body)
	if hasRules {
		token, _, _ := strings.Cut(c.UserAgent, " ")
		s.own = robotstxt.ReadRules(body, token)
		s.google = robotstxt.ReadRules(body, "Googlebot")
	}
	return s
}

var errDisallowed = errors.New("robots.txt disallows it")

// getPage requests a page, unless its server must not be requested. answer says what it returns; "": status 200, with
// a body that must be closed.
func (c *checker) getPage(at string, base string, path string) (res *http.Response, answer string, err error) {
	s := c.server(base)
	if s.closed != nil {
		return nil, "", s.closed
	}
	if !s.own.Allows(path) {
		return nil, "", errDisallowed
	}
	if err := c.turns.Wait(c.ctx); err != nil {
		return nil, "", err
	}
	res, err = c.get(c.single, at, html.AcceptPage)
	if err != nil {
		return nil, "", err
	}
	c.summary.Fetched++
	if res.StatusCode == http.StatusOK {
		return res, "", nil
	}
	_ = res.Body.Close()
	answer = fmt.Sprintf("returns status %d", res.StatusCode)
	if to, err := res.Location(); err == nil {
		answer = fmt.Sprintf("redirects (%d) to %s", res.StatusCode, to)
	}
	// Both ask for fewer requests (RFC 6585, section 4; RFC 9110, section 15.6.4).
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		s.closed = fmt.Errorf("%s %s, so no more requests are sent to its server", at, answer)
	}
	return res, answer, nil
}

// fetchPages fetches the pages that were drawn, and reports what keeps them from being indexed.
func (c *checker) fetchPages() {
	for _, at := range c.drawn {
		base, path, _ := parseURL(at.url)
		if !c.server(base).google.Allows(path) {
			c.report(at, Warning, "page-disallowed", "robots.txt disallows the page for Googlebot")
		}
		res, answer, err := c.getPage(at.url, base, path)
		switch {
		case err == errDisallowed: // for this check: what keeps Googlebot out is reported above
		case err != nil:
			c.unchecked(at, "page-unreachable", err)
		case answer != "" && res.StatusCode/100 == 3:
			c.report(at, Error, "page-redirect", "the page %s", answer)
		case answer != "":
			c.report(at, Error, "page-status", "the page %s", answer)
		default:
			c.page(at, res.Body, html.Page{Base: base, Path: path, Header: res.Header})
			_ = res.Body.Close()
		}
	}
}

// page checks a page that returns 200.
func (c *checker) page(at place, body io.Reader, p html.Page) {
	meta := html.Header(p)
	if html.IsHTML(p.Header.Get("Content-Type")) {
		text, err := io.ReadAll(io.LimitReader(body, html.MaxBody))
		if err != nil {
			c.unchecked(at, "page-unreachable", err)
			return
		}
		meta = html.Parse(text, p)
	}
	if meta.NoIndex {
		c.report(at, Error, "page-noindex", "the page has noindex")
	}
	if meta.Refresh != "" {
		c.report(at, Error, "page-refresh", "the page refreshes to %s", meta.Refresh)
	}
	if meta.Canonical != "" {
		c.checkCanonical(at, meta.Canonical)
	}
}

// checkCanonical reports a listed page that names another one as its canonical. Where that does not return 200, search
// engines disregard the canonical, so it is only a warning.
func (c *checker) checkCanonical(at place, canonical string) {
	const (
		code    = "page-canonical"
		message = "the page's canonical %s %s"
	)
	base, path, _ := parseURL(canonical)
	res, answer, err := c.getPage(canonical, base, path)
	if err != nil {
		c.report(at, Warning, code, message, canonical, "was not fetched: "+err.Error())
		return
	}
	if answer != "" {
		c.report(at, Warning, code, message, canonical, answer)
		return
	}
	_ = res.Body.Close()
	c.report(at, Error, code, message, canonical, "returns status 200: list that one")
}
