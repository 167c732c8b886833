package document

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// How the names of forms end. Documents beside the XML have other names, and one form.
const (
	extension     = ".xml"
	gzipExtension = ".gz" // behind the other
	textExtension = ".txt"
)

// Names of documents beside the XML of the pages.
const (
	HTML         = ".html"
	PeopleStyle  = "-html.css" // of the pages for people
	PeopleScript = "-html.js"
	Feed         = ".atom"
	Stylesheet   = ".css"
	NewsSitemap  = "-news.xml"
	LLMs         = "/llms.txt" // the whole name: it lies in the folder of the site, not beside the sitemap
)

// Names returns what matches the names that documents of a site may have: what their paths have behind that of the sitemap
// without its extension. [LLMs] lies elsewhere.
func Names(sections []string, beside Beside) *regexp.Regexp {
	const urlset = `(-[0-9a-f]{12})?\.(xml|xml\.gz|txt)`
	names := []string{urlset}
	for _, section := range sections {
		names = append(names, "-"+regexp.QuoteMeta(section)+urlset)
	}
	for name, isOn := range map[string]bool{
		`-news\.xml(\.gz)?`:                      beside.News != nil, // a list of URLs says nothing of articles
		`(-[0-9a-f]{32})?\.html|-html\.(css|js)`: beside.People != nil,
		`\.atom`:                                 beside.Feed,
		`\.css`:                                  beside.Stylesheet,
	} {
		if isOn {
			names = append(names, name)
		}
	}
	return regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")
}

// ofSection matches the names of shards, and those of documents of sections with the name of the section.
var ofSection = regexp.MustCompile(`^-(?:[0-9a-f]{12}|(.+?)(?:-[0-9a-f]{12})?)\.xml$`)

// SectionOf returns the name of the section that a document belongs to by its name: "blog" of -blog.xml, which is its only
// urlset or its index, and of -blog-0123456789ab.xml, which is one of its shards. "": it belongs to none.
func SectionOf(name string) string {
	match := ofSection.FindStringSubmatch(name)
	if match == nil {
		return ""
	}
	return match[1]
}

var hashed = regexp.MustCompile(`(^|-)[0-9a-f]{12}(\.|$)`)

// IsHashed reports whether a name is that of a shard, in any form.
func IsHashed(name string) bool { return hashed.MatchString(name) }

// NameOfSection is the name of a section's index, or of its only urlset; "": of that of all pages.
func NameOfSection(section string) string {
	if section == "" {
		return extension
	}
	return "-" + section + extension
}

// shardName is the name of a shard of a section; "": of the rest.
func shardName(section string, id uint64) string {
	return strings.TrimSuffix(NameOfSection(section), extension) + fmt.Sprintf("-%012x", id) + extension
}

var sectionName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// CheckSectionName checks the name of a section: 1 to 32 lower-case letters, digits and hyphens. It begins and ends
// with a letter or digit, and what is behind its last hyphen, or all of it, is not twelve hexadecimal digits: its
// document would have the name of a shard.
func CheckSectionName(name string) error {
	if !sectionName.MatchString(name) {
		return errors.New("use 1 to 32 lowercase letters, digits and dashes, with a letter or digit at both ends")
	}
	if IsHashed(name) {
		return errors.New("a name whose last part is 12 hexadecimal digits is that of a shard")
	}
	return nil
}
