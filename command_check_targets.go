package sitemap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/lint"
)

// mention is where something was named: a line of a document.
type mention struct {
	file string
	line int
}

// of is a finding about a document: where it was named, if it was.
func (m mention) of(at, code string) lint.Finding {
	if m.file == "" {
		return lint.Finding{File: at, Code: code, URL: at}
	}
	return lint.Finding{File: m.file, Line: m.line, Code: code, URL: at}
}

// String is how a finding begins whose file is the one that names the document.
func (m mention) String() string {
	if m.file == "" {
		return ""
	}
	return "names a document that "
}

// target checks what an argument stands for.
func (k *checking) target(arg string) {
	if k.ctx.Err() != nil {
		return
	}
	if arg == "-" {
		d := &checkedDir{k: k}
		d.document("-", k.cmd.InOrStdin(), d.at(siteMapName))
		return
	}
	if scheme, _, ok := strings.Cut(arg, "://"); ok && !strings.ContainsAny(scheme, `/\`) {
		k.named(arg)
		return
	}
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		k.cannot(err)
	case info.IsDir():
		k.folder(arg)
	default:
		k.file(arg)
	}
}

const siteMapName = "sitemap.xml"

// named checks a URL that the user has named.
func (k *checking) named(arg string) {
	u, err := url.Parse(arg)
	switch {
	case err != nil || !isWebURL(arg):
		k.cannot(fmt.Errorf("%s: not a URL of http or https", arg))
		return
	case k.flags.offline:
		k.cannot(fmt.Errorf("%s: %w", arg, errWebOffline))
		return
	}
	u.Fragment = ""
	k.web.trust(arg)
	switch {
	case u.Path == robotsPath:
		k.robots(u.String(), true)
	case u.RawQuery == "" && (u.Path == "" || strings.HasSuffix(u.Path, "/")):
		k.site(u)
	default:
		k.fetch(u.String(), mention{}, false)
	}
}

// site checks the sitemaps of a site: those of its robots.txt, else the one in its
// folder.
func (k *checking) site(u *url.URL) {
	if !k.robots(u.ResolveReference(&url.URL{Path: robotsPath}).String(), false) {
		k.fetch(u.ResolveReference(&url.URL{Path: path.Join("/", u.Path, siteMapName)}).String(), mention{}, false)
	}
}

// robots checks a robots.txt and the sitemaps that it names, and reports whether it
// names any. A missing one is wrong only where it was asked for.
func (k *checking) robots(at string, wanted bool) bool {
	if k.seen(at) {
		return true
	}
	var none mention
	a, err := k.polite(at, maxWebRedirects)
	if err != nil {
		k.add(none.of(at, "robots-unreachable"), "cannot be had: %v", err)
		return false
	}
	defer a.close()
	k.redirects(none, at, a)
	switch {
	case a.Status == http.StatusOK:
	case a.Status >= 500 || a.Status == http.StatusTooManyRequests:
		k.add(none.of(at, "robots-status"), "answers %d, so crawlers leave the whole site alone", a.Status)
		return false
	default:
		if wanted {
			k.add(none.of(at, "robots-status"), "answers %d", a.Status)
		}
		return false
	}
	if htmlmeta.IsHTML(a.Header.Get("Content-Type")) {
		k.add(none.of(at, "content-type"), "is sent as %s, not as text/plain", a.Header.Get("Content-Type"))
		return false
	}
	k.seen(a.URL)
	sitemaps, err := k.checker.Robots(at, a.URL, a.Body)
	if err != nil {
		k.add(mention{}.of(at, "document-unread"), "cannot be read to its end: %v", cause(err))
	}
	for _, s := range sitemaps {
		k.fetch(s, mention{file: at}, false)
	}
	return len(sitemaps) > 0
}

// seen reports whether a document was checked already, and notes that it is now.
func (k *checking) seen(at string) bool {
	key := at
	if u, err := url.Parse(at); err == nil && u.Host != "" {
		key = u.Scheme + "://" + hostPort(u) + u.RequestURI()
	}
	if k.done[key] {
		return true
	}
	k.done[key] = true
	return false
}

// fetch checks the document at a URL, and what it lists if it is an index. from is
// what named it, if anything did.
func (k *checking) fetch(at string, from mention, ofIndex bool) (result lint.Result) {
	if k.ctx.Err() != nil || k.seen(at) {
		return result
	}
	a, err := k.polite(at, maxWebRedirects)
	if a != nil {
		k.redirects(from, at, a)
	}
	if err != nil {
		k.add(from.of(at, "document-unreachable"), "%scannot be had: %v", from, err)
		return result
	}
	defer a.close()
	if a.Status != http.StatusOK {
		k.add(from.of(at, "document-status"), "%sanswers %s", from, a.says())
		return result
	}
	if a.URL != at && k.seen(a.URL) {
		return result
	}
	body := bufio.NewReader(a.Body)
	packed := isGzip(body)
	result, err = k.document(at, a.URL, body)
	if err != nil {
		k.add(mention{}.of(at, "document-unread"), "cannot be read to its end: %v", cause(err))
	}
	k.contentType(at, a, result.Kind, packed)
	a.close() // while children are fetched
	if result.Kind != lint.KindIndex {
		return result
	}
	if ofIndex {
		k.nested(from, at)
		return result
	}
	for _, child := range result.Children {
		k.dates(mention{at, child.Line}, child, k.fetch(child.Loc, mention{at, child.Line}, true))
	}
	return result
}

// dates compares what an index says of a document with what that says itself, where
// it was read just now.
func (k *checking) dates(from mention, child lint.Child, read lint.Result) {
	last, ok := lastOf(child.LastMod)
	if !ok || !read.NewestLastMod.After(last) {
		return
	}
	f := from.of(child.Loc, "index-lastmod")
	f.Severity = lint.Warning
	k.add(f, "has the lastmod %q for a document with a page of %s, so readers may not come for it", child.LastMod, read.NewestLastMod.UTC().Format(time.RFC3339))
}

// lastOf is the last moment that a date can mean; a day ends last in the far west.
func lastOf(date string) (time.Time, bool) {
	if day, err := time.Parse(time.DateOnly, date); err == nil {
		return day.Add(36 * time.Hour), true
	}
	at, err := time.Parse(time.RFC3339, date)
	return at, err == nil
}

// document checks one document.
func (k *checking) document(name, at string, r io.Reader) (lint.Result, error) {
	k.sample.file = name
	defer k.report.flush()
	return k.checker.Document(name, at, &untilDone{k.ctx, r})
}

// untilDone ends a reading with its context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// cause is an error without what names the document.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// nested says that an index lists an index, whose children no engine reads.
func (k *checking) nested(from mention, at string) {
	k.add(from.of(at, "index-in-index"), "%sis an index itself; an index lists documents of pages alone", from)
}

func (k *checking) redirects(from mention, at string, a *webAnswer) {
	for _, r := range a.Redirects {
		f := from.of(at, "document-redirect")
		f.Severity = lint.Warning
		k.add(f, "%sis redirected (%d) to %s", from, r.Status, r.To)
	}
}

// contentType checks how a document is sent.
func (k *checking) contentType(at string, a *webAnswer, kind lint.Kind, packed bool) {
	sent := a.Header.Get("Content-Type")
	media, _, _ := strings.Cut(sent, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	f := lint.Finding{Severity: lint.Warning, File: at, Code: "content-type", URL: at}
	isXML := media == "application/xml" || media == "text/xml" || strings.HasSuffix(media, "+xml") && !htmlmeta.IsHTML(media)
	switch {
	case a.Mislabels:
		f.Severity, f.Code = lint.Error, "content-encoding"
		k.add(f, "is sent with Content-Encoding: gzip, and is no gzip")
	case kind == lint.KindHTML:
		// which is said already
	case htmlmeta.IsHTML(media):
		f.Severity = lint.Error
		k.add(f, "is sent as %s", sent)
	case packed && isXML && !a.Encoded:
		k.add(f, "is a gzip file sent as %s without Content-Encoding: some crawlers read it only as application/gzip", sent)
	case packed:
	case sent == "":
		k.add(f, "is sent without a Content-Type")
	case kind == lint.KindText && media != "text/plain":
		k.add(f, "is a text sitemap sent as %s, not as text/plain", sent)
	case kind != lint.KindText && kind != lint.KindUnknown && !isXML:
		k.add(f, "is XML sent as %s: some crawlers read it only as application/xml or text/xml", sent)
	}
}

func isGzip(r *bufio.Reader) bool {
	magic, _ := r.Peek(2)
	return string(magic) == "\x1f\x8b"
}
