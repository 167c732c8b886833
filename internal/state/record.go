package state

import "github.com/seed3295b519/caddy-sitemap/internal/page"

// Record is what is known of one page.
type Record struct {
	// Page is the page as its sources say: LastMod is a file's modification time
	// or what a list says. Extensions are not kept in it.
	Page page.Page

	// Fingerprint tells versions of what a reader sees apart. 0: not read.
	Fingerprint uint64

	// Declared is the date that the page itself declares, in Unix seconds, or a
	// day where DeclaredDay. 0: none.
	Declared    int64
	DeclaredDay bool

	// LastMod is the date that is listed, in Unix seconds, or a day where
	// LastModDay. 0: none.
	LastMod    int64
	LastModDay bool

	// Seen is when a first look or a change found what LastMod is told by; see
	// the root package's dates. The zero value: nothing to tell.
	Seen uint8

	// Content is what reading the page came to, Answer what asking for it did,
	// and Suspect what the last ask said that is not yet believed. The zero
	// value: nothing is known.
	Content, Answer, Suspect uint8

	// Flags are the root package's own.
	Flags uint16

	// Streak counts the asks in a row in which Fingerprint changed.
	Streak uint8

	// Wait is the number of days after Asked after which the page is asked again.
	Wait uint8

	// Asked is when the page was last asked for, in Unix seconds, kept to the
	// minute. 0: never.
	Asked int64

	// Canonical is the path of another page of the site that the page names in
	// its own stead. "": none.
	Canonical string

	// ETag and Modified are the headers of the last answer, for the next ask to
	// be conditional on.
	ETag, Modified string

	// Details are what is kept apart, since few need it. Nil: as it was kept before.
	Details *Details
}

// Details are the larger part of what is known of a page.
type Details struct {
	Links      []string // paths of the site that the page links to
	Alternates []page.Alternate
	Images     []string
}
