package sitemap

import (
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
)

// Section has pages in sitemaps of their own: search consoles report which pages of a sitemap they have indexed only for
// those that are submitted to them.
//
//	sitemap {
//		section blog /blog/*
//		section docs /docs/* /manual/*
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "sections": [
//		{"name": "blog", "match": ["/blog/*"]},
//		{"name": "docs", "match": ["/docs/*", "/manual/*"]}
//	]}
type Section struct {
	// The name of the section, by which its sitemap is called: `blog` is `/sitemap-blog.xml`. Required. It has up to 32
	// lowercase letters, digits and dashes, and begins and ends with a letter or digit. It must not end in a dash and
	// twelve hexadecimal digits, as names of shards do, nor be twelve hexadecimal digits.
	Name string `json:"name,omitempty"`

	// Path patterns of its pages, at least one.
	Match []string `json:"match,omitempty"`

	match pathPatterns
}

// sections are those of a handler. They never change. The first that matches a page has it.
type sections []Section

func compileSections(c *option.Checker, given []Section) sections {
	c.Refuse(len(given) > document.MaxSections, "%d sections: use at most %d", len(given), document.MaxSections)
	var all sections
	for _, s := range given {
		c.Refuse(all.has(s.Name), "section '%s' is given twice: write all of its patterns into one line", s.Name)
		err := document.CheckSectionName(s.Name)
		c.Refuse(err != nil, "section '%s': %w", s.Name, err)
		c.Refuse(len(s.Match) == 0, "section '%s' needs at least one path pattern", s.Name)
		s.match = compilePatterns(c, "section "+s.Name, s.Match)
		all = append(all, s)
	}
	return all
}

// of returns the name of the section that a page is in, by its normal path; "": it is in none.
func (all sections) of(path string) string {
	i := slices.IndexFunc(all, func(s Section) bool { return s.match.Match(path) })
	if i < 0 {
		return ""
	}
	return all[i].Name
}

func (all sections) has(name string) bool {
	return slices.ContainsFunc(all, func(s Section) bool { return s.Name == name })
}

func (all sections) names() []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// sectionStatus is what the admin API shows of a section.
type sectionStatus struct {
	document.Section
	Sitemap string `json:"sitemap,omitempty"` // URL; "": it has no pages
}

// sectionsStatus is what there is to show of the sections by which a publication was made, in their order.
func (s *site) sectionsStatus(served *publication) []sectionStatus {
	listed := served.snapshot.Sections()
	var all []sectionStatus
	for _, name := range served.sections.names() {
		st := sectionStatus{Section: document.Section{Name: name}}
		i := slices.IndexFunc(listed, func(s document.Section) bool { return s.Name == name })
		if i >= 0 {
			st.Section = listed[i]
			st.Sitemap = s.origin + s.docPath(document.NameOfSection(name))
		}
		all = append(all, st)
	}
	return all
}

// unmarshalSection parses a section: its name and patterns.
func (h *Handler) unmarshalSection(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) < 2 {
		return d.Err("wrong number of values: use 'section <name> <path-pattern...>'")
	}
	h.Sections = append(h.Sections, Section{Name: args[0], Match: args[1:]})
	return nil
}
