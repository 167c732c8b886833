package lint

import (
	"strings"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

const (
	sureRobots = 500 << 10 // bytes that readers are sure to parse (RFC 9309, section 2.5)
	maxRobots  = 1 << 20   // bytes that are checked
)

// robots is the check of a robots.txt.
type robots struct {
	*findings
	urls   []string
	known  map[string]bool // of urls
	lines  int             // Sitemap lines
	agents int             // the line of the last User-agent, with only Sitemap lines after it; 0: none
	inside int             // the first Sitemap line after that
}

func (r *robots) check(at string, body []byte) {
	text := strings.TrimPrefix(string(body), "\uFEFF")
	switch {
	case hasAnyPrefix(body, "\xFF\xFE", "\xFE\xFF"):
		r.add(Error, 1, "encoding", "is in UTF-16, not in UTF-8")
		return
	case robotstxt.IsHTML("", body):
		r.add(Error, 1, "html", "is an HTML page, not a robots.txt")
		return
	}
	if a, bad := parseURL(at); bad == nil && a.path != "/robots.txt" {
		r.add(Warning, 0, "robots-place", "is not at /robots.txt, the only place where readers look for it")
	}
	end := len(body) - len(text)
	for i, line := range strings.Split(lineEnds.Replace(text), "\n") {
		end += len(line)
		if !utf8.ValidString(line) || strings.Contains(line, "\x00") {
			r.once(Error, i+1, "not-utf-8", "has bytes that are not text in UTF-8")
		}
		r.line(line, i+1, end > sureRobots)
		end++
	}
	if len(body) > sureRobots {
		r.add(Warning, 0, "robots-too-long", "is longer than 500 KiB, beyond which readers stop")
	}
	if r.lines == 0 {
		r.add(Warning, 0, "robots-no-sitemap", "has no Sitemap line")
	}
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// line takes one line, which ends beyond what readers are sure to parse or not.
func (r *robots) line(text string, line int, beyond bool) {
	text, _, _ = strings.Cut(text, "#")
	name, value, ok := strings.Cut(text, ":")
	if name = strings.ToLower(strings.TrimSpace(name)); !ok {
		name = ""
	}
	switch {
	case name == "sitemap":
		r.sitemap(strings.TrimSpace(value), line, beyond)
	case glued(text):
		r.add(Error, line, "robots-glued", "has a Sitemap line that is joined to the text before it")
	case lacksColon(text):
		r.add(Warning, line, "robots-no-colon", "has a Sitemap line without a colon after 'Sitemap', which strict readers ignore")
	case name == "user-agent":
		if r.inside > 0 {
			r.add(Warning, r.inside, "robots-between-agents", "has a Sitemap line between two User-agent lines, about which parsers disagree")
		}
		r.agents, r.inside = line, 0
	case name != "":
		r.agents, r.inside = 0, 0
	}
}

// glued reports whether text, which is not a Sitemap line, ends in one.
func glued(text string) bool {
	_, after, found := strings.Cut(strings.ToLower(text), "sitemap:")
	return found && strings.HasPrefix(strings.TrimSpace(after), "http")
}

// lacksColon reports whether text is a Sitemap line but for its colon.
func lacksColon(text string) bool {
	fields := strings.Fields(text)
	return len(fields) == 2 && strings.EqualFold(fields[0], "sitemap") && strings.Contains(fields[1], "/")
}

func (r *robots) sitemap(value string, line int, beyond bool) {
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
	if _, bad := parseURL(value); bad != nil {
		r.about(value, Error, line, "robots-url", "has a Sitemap line whose URL %s", bad.message)
		return
	}
	if !isASCII(value) {
		r.about(value, Warning, line, "loc-not-ascii", "has a Sitemap line with characters that should be percent-encoded")
	}
	if r.known[value] {
		r.about(value, Warning, line, "duplicate", "has a Sitemap line twice")
		return
	}
	r.known[value] = true
	r.urls = append(r.urls, value)
}
