package publish

import (
	"fmt"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

// Lengths of parts of names.
const (
	maxSection = 32 // bytes of the name of a section
	shardHash  = 12 // hexadecimal digits that name a shard
	folderHash = 32 // those that name the page of a folder
)

// Form is a form in which a document is requested.
type Form uint8

// The forms.
const (
	FormXML Form = iota
	FormGzip
	FormText
	FormFile // of what is beside the XML
)

var extensions = [...]string{FormXML: ".xml", FormGzip: ".xml.gz", FormText: ".txt", FormFile: ""}

// Extension is what names of the form end in. That of a file is a part of its suffix.
func (f Form) Extension() string { return extensions[f] }

// ParseName returns the suffix and form of the document that a path names. stem is the path of the sitemap without
// its extension, and beside says which files there are. ok is false if the path names no document. Any name that a
// section may have counts: see [SectionOf]. [webpage.LLMs] is a suffix, too, but its path does not begin with the stem.
func ParseName(path, stem string, beside webpage.Options) (suffix string, form Form, ok bool) {
	rest, ours := strings.CutPrefix(path, stem)
	if !ours {
		return
	}
	if rest == webpage.LLMs {
		return rest, FormFile, false // so it is stored, but not served
	}
	for f, extension := range extensions[:FormFile] {
		if suffix, found := strings.CutSuffix(rest, extension); found {
			return suffix, Form(f), isSitemap(suffix, Form(f), beside.News != nil)
		}
	}
	return rest, FormFile, isFile(rest, &beside)
}

// isSitemap reports whether a suffix may be that of an XML document in a form.
func isSitemap(suffix string, form Form, hasNews bool) bool {
	if hasNews && suffix == webpage.NewsSitemap {
		return form != FormText // a list of URLs says nothing of articles
	}
	return suffix == "" || isHash(suffix, shardHash) || SectionOf(suffix) != ""
}

// isFile reports whether a suffix may be that of a document beside the XML.
func isFile(suffix string, beside *webpage.Options) bool {
	switch suffix {
	case webpage.Feed:
		return beside.Feed
	case webpage.Stylesheet:
		return beside.Stylesheet
	}
	part, isHTML := strings.CutSuffix(suffix, webpage.HTML)
	isFolder := part == "" || isHash(part, folderHash) // the page of the topmost folder has no hash
	return beside.HTML && isHTML && isFolder
}

// SectionOf returns the name of the section that an XML document belongs to by its suffix: "blog" of -blog, which is
// its only urlset or its index, and of -blog-0123456789ab, which is one of its shards. "": it belongs to none.
func SectionOf(suffix string) string {
	name, ours := strings.CutPrefix(suffix, "-")
	if !ours {
		return ""
	}
	if at := strings.LastIndexByte(name, '-'); at >= 0 && isHash(name[at:], shardHash) {
		name = name[:at]
	}
	if CheckSectionName(name) != nil {
		return ""
	}
	return name
}

// Errors of names of sections.
var (
	errSectionName = fmt.Errorf(
		"use 1 to %d lowercase letters, digits and dashes, with a letter or digit at both ends", maxSection)
	errShardName = fmt.Errorf("a name whose last part is %d hexadecimal digits is that of a shard", shardHash)
)

// CheckSectionName checks the name of a section: 1 to 32 lower-case letters, digits and hyphens. It begins and ends
// with a letter or digit, and what is behind its last hyphen, or all of it, is not twelve hexadecimal digits: its
// document would have the name of a shard.
func CheckSectionName(name string) error {
	if name == "" || len(name) > maxSection {
		return errSectionName
	}
	for i := range len(name) {
		c := name[i]
		isWord := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		isInnerDash := c == '-' && i > 0 && i < len(name)-1
		if !isWord && !isInnerDash {
			return errSectionName
		}
	}
	last := name[strings.LastIndexByte(name, '-')+1:]
	if len(last) == shardHash && areHex(last) {
		return errShardName
	}
	return nil
}

// IsOfSection reports whether a suffix is that of the document of a section: its only urlset, or its index.
func IsOfSection(suffix string) bool {
	section := SectionOf(suffix)
	return section != "" && len(suffix) == len(suffixOfSection(section))
}

// suffixOfSection is that of a section's index, or of its only urlset.
func suffixOfSection(name string) string { return "-" + name }

// isHash matches a hyphen and n lower-case hexadecimal digits.
func isHash(s string, n int) bool { return len(s) == 1+n && s[0] == '-' && areHex(s[1:]) }

func areHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
