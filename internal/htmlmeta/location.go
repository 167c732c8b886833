package htmlmeta

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// location is the URL of a document: what references are relative to.
type location struct {
	origin string // scheme, host and port
	path   string // with its query, canonical
}

func (l location) url() string { return l.origin + l.path }

// absolute returns the absolute URL of a reference without its fragment; "" where that is all, or it is not an
// http URL, not valid or too long.
func (l location) absolute(ref []byte) string {
	origin, path, ok := l.resolve(nil, ref)
	if !ok {
		return ""
	}
	return origin + string(path)
}

// resolve returns the origin to which a reference leads, and appends the canonical path and query to dst. Most
// references are paths and need no [url.URL].
func (l location) resolve(dst, ref []byte) (origin string, path []byte, ok bool) {
	ref, _, _ = bytes.Cut(bytes.TrimFunc(ref, func(c rune) bool { return c <= ' ' }), []byte("#"))
	if len(ref) == 0 || len(ref) > 2*MaxURL {
		return "", dst, false
	}
	origin = l.origin
	n, prefix := len(origin), ""
	switch {
	case len(ref) > n && ref[n] == '/' && string(ref[:n]) == origin:
		ref = ref[n:]
	case bytes.ContainsAny(ref, "\\\n\r\t"), bytes.HasPrefix(ref, []byte("//")), isLetter(ref[0]) && bytes.IndexByte(ref, ':') > 0:
		if origin, prefix, ok = l.resolveURL(string(ref)); !ok {
			return "", dst, false
		}
		ref = nil
	case ref[0] == '?':
		prefix, _, _ = strings.Cut(l.path, "?")
	case ref[0] != '/':
		prefix = page.Folder(l.path)
	}
	if prefix != "" {
		var buf [256]byte
		ref = append(append(buf[:0], prefix...), ref...)
	}
	path, err := page.AppendCanonical(dst, ref)
	return origin, path, err == nil && len(origin)+len(path)-len(dst) <= MaxURL
}

// Browsers ignore line ends and tabs in a URL, and take backslashes for slashes.
var browserRules = strings.NewReplacer("\n", "", "\r", "", "\t", "", `\`, "/")

// resolveURL resolves a reference that may have a scheme and a host.
func (l location) resolveURL(ref string) (origin, path string, ok bool) {
	base, err := url.Parse(l.url())
	if err != nil {
		return "", "", false
	}
	u, err := base.Parse(browserRules.Replace(ref))
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Host, ":"+u.Port()))
	if strings.ContainsFunc(host, func(c rune) bool { return c >= 0x80 }) {
		host, err = idna.Lookup.ToASCII(host)
	}
	if err != nil || host == "" || len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-._:[]") != "" {
		return "", "", false
	}
	if port := u.Port(); port != "" && u.Scheme+port != "http80" && u.Scheme+port != "https443" {
		host += ":" + port
	}
	return u.Scheme + "://" + host, "/" + strings.TrimPrefix(u.EscapedPath(), "/") + "?" + u.RawQuery, true
}
