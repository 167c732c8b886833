package check

import (
	"bytes"

	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

const (
	sureRobots = 500 << 10 // bytes that readers are sure to parse (RFC 9309, section 2.5)
	maxRobots  = 1 << 20   // bytes that are checked
)

// robots is the check of a robots.txt.
type robots struct {
	*findings
	body   []byte
	urls   []string
	known  map[string]bool // of urls
	lines  int             // Sitemap lines
	agents int             // the line of the last User-agent, with none but Sitemap lines after it; 0: none
	inside int             // the first Sitemap line after that
}

func (r *robots) run(at string) {
	body := bytes.TrimPrefix(r.body, []byte("\uFEFF"))
	switch {
	case bytes.HasPrefix(body, []byte("\xFF\xFE")) || bytes.HasPrefix(body, []byte("\xFE\xFF")):
		r.say(Error, 1, "encoding", "is in UTF-16, not in UTF-8")
		return
	case robotstxt.IsHTML("", body):
		r.say(Error, 1, "html", "is an HTML page, not a robots.txt")
		return
	}
	if a, flaw := parseAddress([]byte(at)); flaw == nil && string(a.path) != "/robots.txt" {
		r.say(Warning, 0, "robots-place", "is not at /robots.txt, where alone readers look for it")
	}
	r.each(body)
	if len(r.body) > sureRobots {
		r.say(Warning, 0, "robots-too-long", "is longer than 500 KiB, beyond which readers stop")
	}
	if r.lines == 0 {
		r.say(Warning, 0, "robots-no-sitemap", "has no Sitemap line")
	}
}

func (r *robots) each(body []byte) {
	start := len(r.body) - len(body)
	for line := 1; len(body) > 0; line++ {
		text := body
		next := len(body)
		if i := bytes.IndexAny(body, "\r\n"); i >= 0 {
			text, next = body[:i], i+1
			if bytes.HasPrefix(body[i:], []byte("\r\n")) {
				next++
			}
		}
		if bytes.IndexByte(text, 0) >= 0 || validChars(text) == errUTF8 {
			r.once(Error, line, "not-utf-8", "has bytes that are no text in UTF-8")
		}
		r.line(text, line, start+len(text) > sureRobots)
		body = body[next:]
		start += next
	}
}

// line takes one line, which ends beyond what readers are sure to parse or not.
func (r *robots) line(text []byte, line int, beyond bool) {
	text, _, _ = bytes.Cut(text, []byte("#"))
	name, value, ok := bytes.Cut(text, []byte(":"))
	name = bytes.TrimSpace(name)
	if !ok {
		name = nil
	}
	switch {
	case bytes.EqualFold(name, []byte("sitemap")):
		r.sitemap(bytes.TrimSpace(value), line, beyond)
		return
	case glued(text):
		r.say(Error, line, "robots-glued", "has a Sitemap line that is joined to the text before it")
	case lacksColon(text):
		r.say(Warning, line, "robots-no-colon", "has a Sitemap line without a colon after 'Sitemap', which strict readers do not take for one")
		return
	}
	switch {
	case bytes.EqualFold(name, []byte("user-agent")):
		if r.inside > 0 {
			r.say(Warning, r.inside, "robots-between-agents", "has a Sitemap line between two User-agent lines, about which parsers disagree")
		}
		r.agents, r.inside = line, 0
	case len(name) > 0:
		r.agents, r.inside = 0, 0
	}
}

// glued reports whether text, which is no Sitemap line, ends in one.
func glued(text []byte) bool {
	lower := bytes.ToLower(text)
	_, after, found := bytes.Cut(lower, []byte("sitemap:"))
	return found && bytes.HasPrefix(bytes.TrimSpace(after), []byte("http"))
}

// lacksColon reports whether text is a Sitemap line but for its colon.
func lacksColon(text []byte) bool {
	const name, space = "sitemap", " \t"
	text = bytes.TrimSpace(text)
	if len(text) <= len(name) || !bytes.EqualFold(text[:len(name)], []byte(name)) {
		return false
	}
	value := bytes.TrimLeft(text[len(name):], space)
	return len(value) < len(text)-len(name) && !bytes.ContainsAny(value, space) && bytes.IndexByte(value, '/') >= 0
}

func (r *robots) sitemap(value []byte, line int, beyond bool) {
	r.lines++
	if r.agents > 0 && r.inside == 0 {
		r.inside = line
	}
	if beyond {
		r.about(value, Error, line, "robots-beyond", "has a Sitemap line beyond 500 KiB, which readers do not see")
	}
	if glued(value) {
		r.about(value, Error, line, "robots-glued", "has a Sitemap line that another one is joined to")
		return
	}
	a, flaw := parseAddress(value)
	if flaw != nil {
		r.about(value, Error, line, "robots-url", "has a Sitemap line whose URL %s", flaw.message)
		return
	}
	if a.unicode {
		r.about(value, Warning, line, "loc-not-ascii", "has a Sitemap line with characters that should be percent-encoded")
	}
	url := string(value)
	if r.known[url] {
		r.about(value, Warning, line, "duplicate", "has a Sitemap line twice")
		return
	}
	r.known[url] = true
	r.urls = append(r.urls, url)
}
