// Package verdict decides of each page whether it is listed, and with which date,
// from what reading it and asking for it showed.
package verdict

// Reason is why a page is left out, or that it is not.
type Reason uint8

// Unknown and Good are listed; all others are left out. They are kept on disk:
// only ever add to them.
const (
	Unknown       Reason = iota // nothing speaks against it so far
	Good                        // it answers 200 and wants to be found
	Redirects                   // 3xx
	Gone                        // 404, 410
	Refused                     // 401, 403 and other refusals
	Failing                     // 5xx, or no answer that makes sense
	NotHTML                     // something else than HTML where HTML was expected
	Fragment                    // HTML, but no whole document
	NoIndex                     // asks not to be indexed
	Refreshes                   // a refresh leads elsewhere
	CanonicalAway               // names a page of another site in its stead
	CanonicalHere               // names another page of this site in its stead
	Duplicate                   // the same as a page with nearly the same path
	SoftNotFound                // 200, but what a page that cannot exist gets, too
	Forbidden                   // robots.txt keeps crawlers from it
	Waiting                     // it was not asked for yet, and its folder refuses pages, or nobody names it
	Orphan                      // no page links to it
	Guarded                     // it is never asked for
)

var names = [...]string{
	Redirects:     "redirects",
	Gone:          "not found",
	Refused:       "refused to strangers",
	Failing:       "answers with an error",
	NotHTML:       "not HTML",
	Fragment:      "no whole document",
	NoIndex:       "noindex",
	Refreshes:     "refreshes to another page",
	CanonicalAway: "canonical on another site",
	CanonicalHere: "canonical is another page",
	Duplicate:     "duplicate",
	SoftNotFound:  "soft 404",
	Forbidden:     "forbidden by robots.txt",
	Waiting:       "waits for its own answer",
	Orphan:        "nothing links to it",
	Guarded:       "never asked for",
}

// String is the reason in the words of logs and of the README; "" for those that
// are listed, and for what is none.
func (r Reason) String() string {
	if int(r) >= len(names) {
		return ""
	}
	return names[r]
}

// Listed reports whether a page with this verdict is listed.
func (r Reason) Listed() bool { return r <= Good }

// Flags of a [state.Record]. They are kept on disk: only ever add to them.
const (
	FlagRead          uint16 = 1 << iota // its content was read
	FlagDynamic                          // the content came with an answer: what the file holds is not what is served
	FlagListed                           // it was listed the last time
	FlagLinked                           // another page links to it
	FlagProxied                          // an upstream answered
	FlagTarget                           // no source has it, but a page names it as its canonical
	FlagDue                              // to be asked for again, whenever it was asked last
	FlagDeclaredMoves                    // its declared date moved while its text stayed
	FlagTwice                            // the suspicion was said twice
	FlagGuarded                          // never asked for, since its path is one of those
	FlagNoVerdict                        // the last ask found nothing out
	FlagUnseen                           // the last ask did not show what a reader sees
	FlagGone                             // no source has it any more
	FlagGoneLong                         // and had it not a day ago
	FlagDiscovered                       // nobody names it but visitors and other pages
)
