package indexing

import "strings"

// Status is the index status of a page: that it is indexable, or the one reason why not.
type Status uint8

// The statuses. Of several that apply to a page, the first counts.
const (
	Indexable Status = iota
	Excluded
	Disallowed
	Blocked
	TooDeep
	Absent
	Pending
	NotFound
	Refused
	Redirect
	RateLimited
	ServerError
	NotHTML
	Unreadable
	Refresh
	NoIndexTag
	NoIndex
	NoDocument
	SoftNotFound
	CanonicalForeign
	CanonicalOther
	Duplicate
	NoLinks
	OverMax

	StatusCount // is how many there are
)

// meaning is what a Status says to people in logs, metrics, explanations and documentation.
type meaning struct{ name, explanation, remedy string }

var statuses = [StatusCount]meaning{
	Indexable: {"indexable", "It returns 200 and is indexable.", ""},
	Excluded: {"excluded", "It is outside the sitemap's scope, or a setting excludes it.",
		"Change 'exclude', 'path' or 'base_url' if it should be listed."},
	Disallowed: {"disallowed", "Only links or visitors name it, and its path looks like an action, or 'crawl disallow' has it.",
		"Name it in 'urls', with 'files' or 'links' written beside it, if a GET request for it is harmless."},
	Blocked: {"blocked by robots.txt", "The site's robots.txt disallows it.",
		"Allow it in robots.txt if it should be listed."},
	TooDeep: {"beyond depth", "It is more links away from the front page, or from a page that a source names, than 'depth' allows.",
		"Raise 'depth' of 'links', or link to it from a page that is fewer links away."},
	Absent: {"absent", "No source names it any more.",
		"Restore its file or its entry in a list if it should be listed."},
	Pending: {"pending", "It has not been fetched yet.",
		"Wait: upstreams are requested at the pace of 'crawl rate'."},
	NotFound: {"not found", "It returns 404 or 410.",
		"Serve it, or remove the links and list entries that name it."},
	Refused: {"refused", "It returns 401, 403 or another 4xx status to anonymous visitors.",
		"Nothing if it is private; otherwise let the address 192.0.2.1, or the User-Agent 'caddy-sitemap', pass the rule that refuses it, remove the login, or let Caddy read the file."},
	Redirect: {"redirect", "It redirects to another URL.",
		"Name the target instead, if it is not listed."},
	RateLimited: {"rate limited", "It returns 429: too many requests. All requests pause for as long as it asks.",
		"Lower 'crawl rate', or let 'caddy-sitemap' or 192.0.2.1 request more; it is requested again soon."},
	ServerError: {"server error", "It returns a server error, 400 or an unexpected status, or does not respond.",
		"See the page and the server's log; it is requested again soon."},
	NotHTML: {"not HTML", "Its Content-Type is not HTML, although its name suggests a page, or only links or visitors name it.",
		"Set its Content-Type, or name it in 'urls', with 'files' or 'links' written beside it, if it is another kind of document."},
	Unreadable: {"unreadable encoding", "Its body has a Content-Encoding that was not requested.",
		"Let the server honor Accept-Encoding."},
	Refresh: {"refresh", "A refresh in a meta tag or a header leads to another URL.",
		"Remove the refresh, or name the target instead, if it is not listed."},
	NoIndexTag: {"noindex in X-Robots-Tag", "Its X-Robots-Tag header says noindex.",
		"Look at 'header' directives and at the application, and remove the header if it should be listed."},
	NoIndex: {"noindex", "A meta tag of the page says noindex.",
		"Remove the meta tag if it should be listed."},
	NoDocument: {"no document", "It is empty, or an HTML fragment: it has no doctype, html, head, body or title.",
		"Give it a doctype and a title if it is a page."},
	SoftNotFound: {"soft 404", "It returns 200 with the text that the site returns for paths that do not exist.",
		"Return 404 for paths that do not exist."},
	CanonicalForeign: {"canonical on another site", "Its rel=canonical has another scheme, host or port.",
		"Correct the canonical, or set 'base_url' if visitors use that address."},
	CanonicalOther: {"canonical is another page", "Its rel=canonical names another page, which is listed instead.",
		"Correct the canonical if it should be listed itself."},
	Duplicate: {"duplicate", "It has the same text as a page with nearly the same path, which is listed instead.",
		"Link to only one of the two, or name the preferred one in rel=canonical."},
	NoLinks: {"no incoming links", "No listed page links to it.",
		"Link to it, or see the settings 'orphans' and 'unlinked'."},
	OverMax: {"over max_urls", "The sitemap already lists 'max_urls' pages.",
		"Raise 'max_urls'."},
}

// String returns the name of the status, such as "not found".
func (s Status) String() string { return statuses[s].name }

// Explanation says in one sentence what the status means.
func (s Status) Explanation() string { return statuses[s].explanation }

// Remedy says what to do for the page to be listed; "" for Indexable.
func (s Status) Remedy() string { return statuses[s].remedy }

// isGone reports whether a page that was listed is gone if it has the status, by its own response or as nothing names it. With any
// other one, settings or other pages leave it out, or a later response may be another.
func (s Status) isGone() bool {
	switch s {
	case Absent, NotFound, Refused, Redirect, Refresh, NoIndexTag, NoIndex:
		return true
	}
	return false
}

// IsSuspicious reports whether a setting may be wrong if more than half of the pages have the status. Most links of a shop are to
// carts and logins: that these are disallowed is usual.
func (s Status) IsSuspicious() bool {
	return s == NoIndexTag || s == NoIndex || s == CanonicalForeign
}

// RemedyAt is the Remedy of a page whose canonical is on another site, with the setting written out.
func (s Status) RemedyAt(origin string) string {
	return strings.Replace(s.Remedy(), "'base_url'", "'base_url "+origin+"'", 1)
}
