// Package state keeps what is known of a site's pages, and its finished documents,
// across restarts: in a key-value [Storage], in pieces that follow the pages, so
// that a refresh rewrites only what changed and holds a few pieces at a time.
//
// A [Book] is one generation, and never changes. A [Draft] makes the next one of
// it: its values are stored as they are ready, under names that follow from their
// content, and the manifest last. So whatever ends a process, Open finds a whole
// generation.
package state

import "github.com/seed3295b519/caddy-sitemap/internal/page"

// Record is what is known of one page.
type Record struct {
	// Page is the page as its sources say: LastMod is a file's modification time
	// or what a list says. Extensions are not kept in it.
	Page page.Page

	// Fingerprint tells versions of what a reader sees apart, by the 48 bits of
	// FingerprintMask. 0: not read.
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
	// internal/verdict. The zero value: nothing to tell.
	Seen uint8

	// Content is what reading the page came to, Answer what asking for it did,
	// and Suspect what the last ask said that is not yet believed. The zero
	// value: nothing is known.
	Content, Answer, Suspect uint8

	// Flags are internal/verdict's.
	Flags uint16

	// Streak counts the asks in a row in which Fingerprint changed.
	Streak uint8

	// Wait is the number of days after Asked after which the page is asked again.
	Wait uint8

	// Asked is when the page was last asked for, in Unix seconds, kept to the
	// minute. 0: never.
	Asked int64

	// Canonical is the path of another page of the site that the page names in
	// its own stead. "": none. One longer than MaxPath is not kept.
	Canonical string

	// ETag and Modified are the headers of the last answer, for the next ask to
	// be conditional on. One longer than MaxHeader is not kept.
	ETag, Modified string

	// Details are what is kept apart, since few need it. Nil: as it was kept before.
	Details *Details

	// Where a book's own record comes from. Nil: not from a book.
	of *loaded
	at uint32
}

// FingerprintMask is what is kept of a fingerprint.
const FingerprintMask = 1<<(8*fingerprintBytes) - 1

const fingerprintBytes = 6

// Bounds of what is kept of a record.
const (
	MaxPath   = 8192
	MaxHeader = 1024
)

// Details are the larger part of what is known of a page. Of one page, 65,536
// links, alternates and images are kept, and 4 MiB of them.
type Details struct {
	Links      []string // paths of the site that the page links to
	Alternates []page.Alternate
	Images     []string
}

func (d *Details) empty() bool {
	return len(d.Links) == 0 && len(d.Alternates) == 0 && len(d.Images) == 0
}
