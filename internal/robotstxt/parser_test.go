package robotstxt

import (
	"bytes"
	"slices"
	"strings"
)

// robots is what a reader takes from a robots.txt.
type robots struct {
	groups   []group
	sitemaps []string
}

type group struct{ agents, disallow []string }

func (g group) equal(o group) bool {
	return slices.Equal(g.agents, o.agents) && slices.Equal(g.disallow, o.disallow)
}

// parse reads a robots.txt by the grammar of RFC 9309, section 2.2, as strictly as
// any reader: 500 KiB at most, and a Sitemap line ends the group before it.
func parse(body []byte) (r robots) {
	body = body[:min(len(body), 512_000)]
	body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
	inRules, open := true, false
	for _, line := range lines(body) {
		line, _, _ = strings.Cut(line, "#")
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.Trim(value, " \t")
		switch strings.ToLower(strings.Trim(name, " \t")) {
		case "user-agent":
			if inRules || !open {
				r.groups = append(r.groups, group{})
			}
			g := &r.groups[len(r.groups)-1]
			g.agents = append(g.agents, value)
			inRules, open = false, true
		case "disallow":
			inRules = true
			if open && value != "" {
				g := &r.groups[len(r.groups)-1]
				g.disallow = append(g.disallow, value)
			}
		case "sitemap":
			r.sitemaps = append(r.sitemaps, value)
			open = false
		}
	}
	return r
}

// lines are the lines of a text whose lines end in CR, LF or CR LF.
func lines(text []byte) []string {
	s := strings.ReplaceAll(string(text), "\r\n", "\n")
	all := strings.Split(strings.ReplaceAll(s, "\r", "\n"), "\n")
	if last := len(all) - 1; all[last] == "" {
		all = all[:last]
	}
	return all
}
