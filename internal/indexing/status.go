package indexing

// Status is the index status of a page: that it is indexable, or the one reason why not.
type Status uint8

// The statuses. Of several that apply to a page, the first counts.
const (
	Indexable Status = iota
	Excluded
	Disallowed
	Blocked
	Absent
	Pending
	NotFound
	Refused
	Redirect
	ServerError
	NotHTML
	Unreadable
	Refresh
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

// text is what people read of a Status: in logs, metrics, explanations and documentation.
type text struct{ name, explanation, remedy string }

var texts = [StatusCount + 1]text{
	Indexable: {"indexable", "It returns 200 and is indexable.", ""},
	Excluded: {"excluded", "It is outside the sitemap's scope, or a setting excludes it.",
		"Change 'exclude', 'path' or 'base_url' if it should be listed."},
	Disallowed: {"disallowed", "Only links or visitors name it, and 'crawl disallow' keeps it from being requested.",
		"If it is a page and a GET of it is harmless, name it in 'urls', beside 'files' and other sources."},
	Blocked: {"blocked by robots.txt", "The site's robots.txt disallows it.",
		"Allow it in robots.txt if it should be listed."},
	Absent: {"absent", "No source names it any more.",
		"Restore the file, or what named it, if it should be listed."},
	Pending: {"pending", "It has not been fetched yet.",
		"Wait: upstreams are requested at the pace of 'crawl rate'."},
	NotFound: {"not found", "It returns 404 or 410.",
		"Serve it, or remove what names it."},
	Refused: {"refused", "It refuses anonymous visitors, with 401, 403 or another status from 400 on.",
		"Nothing if it is private; otherwise remove the login or the address rule."},
	Redirect: {"redirect", "It redirects to another URL.",
		"Name the page it redirects to instead, where that is not listed."},
	ServerError: {"server error", "It returns a server error or an unexpected status, or does not respond.",
		"Look at the page and the server's log. It is requested again soon."},
	NotHTML: {"not HTML", "Its Content-Type is not HTML, but its name suggests it, or only links or visitors name it.",
		"Set its Content-Type; or if it is a document of another kind, name it in 'urls', beside 'files' and other sources."},
	Unreadable: {"unreadable encoding", "Its body has an encoding that was not asked for.",
		"Let the server honor Accept-Encoding."},
	Refresh: {"refresh", "A refresh, in a meta tag or a header, leads to another URL.",
		"Remove the refresh, or name the page it leads to instead, where that is not listed."},
	NoIndex: {"noindex", "It asks not to be indexed, in a meta tag or an X-Robots-Tag header.",
		"Remove noindex if it should be listed."},
	NoDocument: {"no document", "It is HTML without doctype, html, head, body or title, as parts of pages are.",
		"Give it a doctype and a title if it is a page."},
	SoftNotFound: {"soft 404", "It returns 200 with the same text as a page that cannot exist.",
		"Return 404 for what does not exist."},
	CanonicalForeign: {"canonical on another site", "Its rel=canonical has another scheme, host or port.",
		"Correct the canonical; or if that is where all pages are served, set 'base_url'."},
	CanonicalOther: {"canonical is another page", "Its rel=canonical names another page, which is listed instead.",
		"Correct the canonical, if it should be listed itself."},
	Duplicate: {"duplicate", "It has the same text as a page with nearly the same path, which is listed instead.",
		"Link to one of the two only, or name it as the canonical."},
	NoLinks: {"no incoming links", "No listed page links to it.",
		"Link to it, or see the settings 'orphans' and 'unlinked'."},
	OverMax: {"over max_urls", "The sitemap lists as many pages as 'max_urls' allows.",
		"Raise 'max_urls'."},
}

// String returns the name of the status, such as "not found"; "" for what is no status.
func (s Status) String() string { return texts[min(s, StatusCount)].name }

// Explanation says in one sentence what the status means.
func (s Status) Explanation() string { return texts[min(s, StatusCount)].explanation }

// Remedy says what to do for the page to be listed; "" for Indexable.
func (s Status) Remedy() string { return texts[min(s, StatusCount)].remedy }
