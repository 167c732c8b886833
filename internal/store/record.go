package store

import "github.com/seed3295b519/caddy-sitemap/internal/page"

// Record is what is known of one page. Times are Unix seconds; 0 means never, or not
// known. A record is written by the crawl, save for the fields under Selected.
type Record struct {
	_ struct{} `cbor:",toarray"`

	// Path is the page's path with its query, as [page.Page] has it.
	Path string

	// Flags are what is known of the page that is either true or not.
	Flags Flags

	// What sources said when they last named the page: as in [page.Page].
	ModTime    int64
	Version    uint32
	ChangeFreq page.ChangeFreq
	Priority   page.Priority

	// Absent is since when no source has named the page that a source did name.
	Absent int64

	// Depth is how many links lead to the page from one that a source names, at least.
	Depth uint8

	// Linked is when a page that links to it, and whose links count, was last fetched.
	Linked int64

	// Fetched is when the page was last fetched, whatever came of it, and Due when it is
	// to be fetched again, Wait seconds later or somewhat more. 0: at once.
	Fetched int64
	Due     int64
	Wait    uint32

	// Failing is since when fetches have come to nothing: a status of 429 or from 500 on,
	// or no response. What follows is then from the last fetch before, until Failing is
	// over an hour ago.
	Failing int64

	// Status is the HTTP status of the response; 0 with Fetched: there was none.
	Status uint16

	// Text is a hash of the text that a reader sees; 0: there is none, or it was not read.
	Text uint64

	// Canonical is the page that this one names as its canonical, and Target the one to
	// which it redirects or refreshes: a path where it is on the site, else an absolute
	// URL. "": none, or the page itself.
	Canonical string
	Target    string

	// Declared is the date that the page declares itself.
	Declared int64

	// ETag and Modified are the validators of the response, where no Version spares a
	// fetch.
	ETag     string
	Modified int64

	// First is the batch in which the page's text was first read, Changed that in which it
	// was last found changed, and Before when it had been fetched last before that. A batch
	// is named by when it began. Streak counts the fetches in a row that found it changed.
	First   int64
	Changed int64
	Before  int64
	Streak  uint8

	// Alternates and Images are collected only where they are listed.
	Alternates []page.Alternate
	Images     []string

	// Selected is what the last published selection said of the page. Selecting alone
	// writes it.
	Selected Selected
}

// Selected is what a selection said of a page.
type Selected struct {
	_ struct{} `cbor:",toarray"`

	// Listed says that the page was listed, with LastMod as its date; 0: without one. Of a
	// date whose time is not known, Day is true.
	Listed  bool
	LastMod int64
	Day     bool

	// Dated is the batch, First or Changed, from which LastMod was decided.
	Dated int64
}

// Flags of a [Record].
type Flags uint32

// The flags. They are kept on disk: only ever add to them.
const (
	Named         Flags = 1 << iota // a source names the page: not a link, not a visitor
	Visited                         // visitors have had it
	Target                          // another page names it as its canonical
	Seed                            // the front page, or where its redirects lead
	ModDay                          // of ModTime only the day is known
	HTML                            // the response was HTML
	Document                        // and a document: it has a doctype, html, head, body or title
	NoIndex                         // the page, or its header, asks not to be indexed
	Truncated                       // the body was longer than is read
	Unreadable                      // the body has an encoding that was not asked for
	SoftNotFound                    // a page that cannot exist has the same text
	Proxied                         // an upstream answered
	DeclaredDay                     // of Declared only the day is known
	DeclaredMoves                   // Declared moved while the text stayed
	Disallowed                      // never fetched: the operator's or the default words say so
	Blocked                         // never fetched: robots.txt says so
)
