package check

import (
	"hash/maphash"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// knownSpace is a namespace that this package knows.
type knownSpace uint8

const (
	spaceNone knownSpace = iota
	spaceXML
	spaceInstance // attributes for schema processors
	space09
	space084
	spaceImage
	spaceVideo
	spaceNews
	spaceMobile
	spaceXHTML
	spaceAtom
	spaceOther
)

var knownSpaces = map[string]knownSpace{
	"": spaceNone,
	"http://www.w3.org/2001/XMLSchema-instance":        spaceInstance,
	sitemapxml.Schema09.Namespace():                    space09,
	sitemapxml.Schema084.Namespace():                   space084,
	"http://www.google.com/schemas/sitemap-image/1.1":  spaceImage,
	"http://www.google.com/schemas/sitemap-video/1.1":  spaceVideo,
	"http://www.google.com/schemas/sitemap-news/0.9":   spaceNews,
	"http://www.google.com/schemas/sitemap-mobile/1.0": spaceMobile,
	"http://www.w3.org/1999/xhtml":                     spaceXHTML,
	"http://www.w3.org/2005/Atom":                      spaceAtom,
}

// namespace is comparable. Those that are not known differ by hash.
type namespace struct {
	known knownSpace
	hash  uint64
}

func (t *tokenizer) namespaceOf(uri string) namespace {
	if known, ok := knownSpaces[uri]; ok {
		return namespace{known: known}
	}
	return namespace{spaceOther, maphash.String(t.seed, uri)}
}
