package page

import (
	"net/url"
	"strings"
	"unicode"
)

// Action returns the word that makes a normal path, with its query, look like an action, a request for which may
// change something; "": none does. The word is a verb such as delete or add, in lower case and without separators.
//
// A verb counts where it is
//   - a segment of its own at the end of a path, as in /reset and /admin/users/7/ban,
//   - or beside an ID or the name of what it changes: /vote/7, /user/follow/ann; or the first of two short segments: /follow/ann,
//   - the first word of a segment whose other words say what it changes: /add-to-cart, /removeItem, /deleteAll;
//     or the last one, as in /customer-logout,
//   - a name or a value in the query: ?action=delete, ?remove_item=7.
//
// It does not count as one of the words of a longer slug (/how-to-delete-a-branch), in the name of a document or of
// source code (/verify.go), or as a title (/wiki/Delete). A title counts beside an ID, and where all segments are
// written like that: /Cart/Remove/7 and /Account/Delete are actions of applications that name them so.
//
// Where a path can be read both ways, it is an action: a page that is not requested is missing from a list, while a
// request for an action may destroy data.
func Action(path string) (word string) {
	_, query, _ := strings.Cut(path, "?")
	word = actionOfPath(Unescape(path))
	if word != "" {
		return word
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		word = actionOfParameter(unescapeQuery(name), unescapeQuery(value))
		if word != "" {
			return word
		}
	}
	return ""
}

func unescapeQuery(s string) string {
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	return s
}

// Verbs, by where they count.
var (
	// anywhere are verbs that name no page and no folder of pages: they count in any segment of their own.
	anywhere = setOf("logout logoff signout unsubscribe delete destroy remove erase purge revoke deactivate")

	// verbs count in a segment of their own at the end, and beside an ID or an object.
	verbs = setOf(`abort accept acknowledge activate add approve assign ban basket cancel cart checkout clear
		confirm decline del demote deny detach disable disconnect dislike dismiss downvote empty
		enable favorite favourite flush follow hide impersonate insert kill like markallread
		markasread markread mute optout pay purchase reboot redeem redo refund regenerate reindex
		reject reload reset restart restore revert rm rollback save shutdown submit suspend
		terminate unassign unban unblock undo unfavorite unfavourite unfollow unhide unlike unlink
		unlock unmute unpin unpublish unstar unvote unwatch upvote verify vote`)

	// orNouns are names of pages and folders, too: they count after an ID or a machine, as in /issues/7/close and
	// /cron/run. /book/7, /docs/install and /store/order are pages.
	orNouns = setOf(`archive backup bid block build buy charge claim clone close complete copy create deploy exec
		execute extend finish flag fork grant import install invite join leave lock mark merge move
		open order pause pin post promote publish pull push rate rebuild renew reopen resume rotate
		run scan send set share spam star start stick stop subscribe switch sync toggle transfer
		trash trigger unarchive uninstall unset unstick update upgrade`)

	// beforeIDs are those of orNouns that count right before an ID, too: /complete/7 does something, /post/7 is a page.
	beforeIDs = setOf(`buy claim clone close complete copy execute extend finish join leave merge move publish
		rebuild renew reopen send stop subscribe sync toggle trigger unarchive uninstall unset
		unstick update upgrade`)

	// scripts are verbs and nouns that count with the extension of a program only, such as /install.php.
	scripts = setOf("cron install setup update upgrade wpcron")

	// places are verbs that have pages below them: they count as the first segment, too, as in /checkout/shipping.
	places = setOf("basket cart checkout")
)

// What actions are done to.
var (
	// objects are what verbs change, in the singular; isOneOf knows their plurals. What manuals write about in two
	// words, such as /add-plugin and /remove-list, is in codeObjects.
	objects = setOf(`account address alert all answer article attachment avatar bag basket bookmark cache cart
		category comment compare comparison conversation cookie coupon customer draft email entry
		everything favorite favourite file follower friend group image invitation item job login
		mail member message newsletter node notification now order page passwd password payment
		permission phone photo picture poll post product profile qty quantity queue question rating
		record reply request review selected selection session spam subscriber subscription tag task
		this thread ticket token topic unread upload user video vote voucher wish wishlist worker`)

	// codeObjects are those of names in camel case or with underscores: deletePlugin, remove_list.
	codeObjects = setOf(`backup card config content data database db device directory document event folder image
		index key line link list log module option plugin role row rule server service setting site
		snapshot table team theme version widget`)

	// machines act without an ID, so that a noun behind them is a verb.
	machines = setOf(`admin administrator ajax api backend basket cache cart cgibin cron cronjob db job
		maintenance migration queue rpc scheduler session system task worker wpadmin`)

	// fillers stand between a verb and its object.
	fillers = setOf("from my to")

	// doers stand before a verb.
	doers = setOf("action admin ajax auth confirm customer do handle member perform process saml sso user wp")
)

// Extensions of segments.
var (
	// documents are extensions of what is read, not run. Those of scripts that servers run, such as .php and .pl, are
	// not among them: /delete.php is an action.
	documents = setOf(`html htm xhtml shtml md mdx markdown rst adoc asciidoc txt text pdf ps doc docx odt rtf
		tex epub org ipynb man
		go rs c h cc cpp cxx hh hpp m mm java kt kts scala groovy py pyi pyx rb js mjs cjs ts tsx jsx
		css scss sass less swift cs fs vb lua r jl hs erl ex exs clj cljs ml mli dart
		sh bash zsh fish ps1 bat sql yaml yml toml ini conf cfg proto tf nix vue svelte zig nim asm s v
		vhd diff patch lock gradle cmake mk el lisp scm pas f90 tcl vim
		png jpg jpeg gif svg webp avif ico mp3 mp4 webm zip gz tgz csv tsv`)

	// webPages are documents that applications make, too.
	webPages = setOf("html htm xhtml shtml")

	// programs are extensions of what a server runs, or of data that it makes.
	programs = setOf(`php php3 php4 php5 php7 phtml asp aspx ashx asmx axd jsp jspx jsf faces do action cgi fcgi
		pl cfm cfc dll exe json xml`)
)

// setOf returns the set of the words in a list.
func setOf(list string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// isOneOf reports whether a set has a word, or its singular.
func isOneOf(set map[string]bool, word string) bool {
	if set[word] || set[strings.TrimSuffix(word, "s")] || set[strings.TrimSuffix(word, "es")] {
		return true
	}
	stem, isPlural := strings.CutSuffix(word, "ies")
	return isPlural && set[stem+"y"]
}

// segments are those of a path. What depends on all of them is found out once: paths of strangers have up to a
// thousand.
type segments struct {
	all       []segment
	lastID    int  // index of the last ID; -1: there is none
	areTitles bool // there are several, all of which begin with a capital or are IDs
}

// segment is a segment of a path, taken apart.
type segment struct {
	name    string   // without an extension that is known
	words   []string // in lower case
	letters string   // the words without what separates them

	isDocument bool // it has the extension of a document or of source code
	isWebPage  bool // it has that of a web page
	isProgram  bool // it has that of a program
	isTitle    bool // it begins with a capital, and is not in camel case
	isCode     bool // it is in camel case, or has underscores: no slug of an article
	isID       bool // it names one thing of many: a number, a UUID, a hash or a token
}

// actionOfPath returns the word that makes a decoded path an action; "": none.
func actionOfPath(path string) string {
	p := newSegments(path)
	for i := range p.all {
		if word := p.actionAt(i); word != "" {
			return word
		}
	}
	return ""
}

// newSegments takes a decoded path apart.
func newSegments(path string) segments {
	// Once for all: with a look at all others for each of a thousand segments, a path took 15 ms.
	p := segments{lastID: -1, areTitles: true}
	for text := range strings.SplitSeq(path, "/") {
		// It stands before the path in many applications, and behind a folder.
		if text == "" || text == "index.php" {
			continue
		}
		s := newSegment(text)
		if s.isID {
			p.lastID = len(p.all)
		}
		p.areTitles = p.areTitles && (startsUpper(s.name) || s.isID)
		p.all = append(p.all, s)
	}
	p.areTitles = p.areTitles && len(p.all) > 1
	return p
}

// newSegment takes a decoded segment of a path apart.
func newSegment(text string) segment {
	var s segment
	// A page of MediaWiki that does something: that it begins with a capital makes it no title.
	special, isSpecial := strings.CutPrefix(text, "Special:")
	if isSpecial {
		text = strings.ToLower(special)
	}
	if dot := strings.LastIndexByte(text, '.'); dot > 0 {
		extension := strings.ToLower(text[dot+1:])
		s.isDocument = documents[extension]
		s.isWebPage = webPages[extension]
		s.isProgram = programs[extension]
		if s.isDocument || s.isProgram {
			text = text[:dot]
		}
	}
	s.name = text
	raw := splitWords(text)
	s.words = make([]string, len(raw))
	for i, word := range raw {
		s.words[i] = strings.ToLower(word)
	}
	s.letters = strings.Join(s.words, "")
	isSeparated := strings.ContainsFunc(text, func(c rune) bool { return !isOfWord(c) })
	isCamel := !isSeparated && len(raw) > 1
	s.isCode = isCamel || strings.Contains(text, "_")
	s.isTitle = startsUpper(text) && !isCamel
	s.isID = isID(text)
	return s
}

// splitWords splits text into words, also where camel case begins a new one.
func splitWords(text string) (words []string) {
	for part := range strings.FieldsFuncSeq(text, func(c rune) bool { return !isOfWord(c) }) {
		begin := 0
		var before rune
		for i, c := range part {
			if unicode.IsUpper(c) && unicode.IsLower(before) {
				words = append(words, part[begin:i])
				begin = i
			}
			before = c
		}
		words = append(words, part[begin:])
	}
	return words
}

// isOfWord reports whether a character belongs to a word, and does not separate words.
func isOfWord(c rune) bool { return unicode.In(c, unicode.L, unicode.N, unicode.M) }

func startsUpper(text string) bool {
	for _, c := range text {
		return unicode.IsUpper(c)
	}
	return false
}

// actionAt returns the word that makes segment i an action where it stands; "": none.
func (p *segments) actionAt(i int) string {
	if p.isRead(i) {
		return ""
	}
	s := &p.all[i]
	if verb := s.compound(p.isIDAt(i + 1)); verb != "" {
		return verb
	}
	if p.isAction(i) {
		return s.letters
	}
	return ""
}

// isIDAt reports whether there is an ID at a place, which may be outside of the path.
func (p *segments) isIDAt(i int) bool { return i >= 0 && i < len(p.all) && p.all[i].isID }

// isRead reports whether segment i is that of a document or a title, whatever words it has.
func (p *segments) isRead(i int) bool {
	s := &p.all[i]
	isAfterID := p.isIDAt(i - 1)
	isMade := s.isWebPage && isAfterID // by an application, as /items/7/destroy.html is
	if s.isDocument && !isMade {
		return true
	}
	if p.leadsToDocument(i) {
		return true
	}
	// Beside an ID, or where all segments are written like that, a capital is only how an application spells its paths.
	isSpelling := isAfterID || p.isIDAt(i+1) || p.areTitles
	return s.isTitle && !isSpelling
}

// isAction reports whether segment i is a verb that counts where it stands.
func (p *segments) isAction(i int) bool {
	s := &p.all[i]
	word := s.letters
	if anywhere[word] {
		return true
	}
	if verbs[word] && (p.isIDAt(i-1) || p.hasIDAfter(i) || p.isVerbAt(i)) {
		return true
	}
	if beforeIDs[word] && p.isIDAt(i+1) {
		return true
	}
	if orNouns[word] && p.isDoneTo(i) {
		return true
	}
	return scripts[word] && s.isProgram
}

// isDoneTo reports whether segment i, which may be a verb or a noun, is done to what stands before it.
func (p *segments) isDoneTo(i int) bool {
	if i == 0 {
		return false
	}
	isLast := i+1 == len(p.all)
	return p.isActedOn(i-1) || isLast && isMachine(p.all[0])
}

// leadsToDocument reports whether segment i is a folder of documents, such as in /verify/intro.html, and not what is
// done to an ID, as in /delete/id/7.html.
func (p *segments) leadsToDocument(i int) bool {
	last := len(p.all) - 1
	return i < last && p.all[last].isDocument && !p.hasIDAfter(i)
}

// hasIDAfter reports whether an ID follows segment i, as in /activate/MQ/5f2b9c81.
func (p *segments) hasIDAfter(i int) bool { return p.lastID > i }

// isVerbAt reports whether segment i, which is a verb, is an action where it stands. IDs are not looked at.
func (p *segments) isVerbAt(i int) bool {
	last := len(p.all) - 1
	switch {
	case i == last:
		return true
	case i == 0 && places[p.all[i].letters]:
		return true
	case i > 0 && isOneOf(objects, p.all[i-1].letters):
		return true
	case isOneOf(objects, p.all[i+1].letters):
		return true
	}
	return i == 0 && last == 1 && !p.all[last].isSlug()
}

// isSlug reports whether a segment is made of at least three words: /vote/how-to-register is an article, and
// /follow/ann-smith is not.
func (s *segment) isSlug() bool { return len(s.words) > 2 }

// isActedOn reports whether what follows segment i is done to it: it is an ID or a machine. The year and month of
// /2024/05/update are no IDs.
func (p *segments) isActedOn(i int) bool {
	if isMachine(p.all[i]) {
		return true
	}
	for first := max(0, i-2); first <= i; first++ {
		isDated := p.all[first].isYear() && (first < i || first == 0)
		if isDated && areNumbers(p.all[first+1:i+1]) {
			return false
		}
	}
	return p.all[i].isID
}

func isMachine(s segment) bool { return isOneOf(machines, s.letters) }

// areNumbers reports whether all segments are numbers of up to two digits, as a month and a day are.
func areNumbers(all []segment) bool {
	for _, s := range all {
		if len(s.name) > 2 || !isNumber(s.name) {
			return false
		}
	}
	return true
}

// compound returns the verb of a segment that names a verb and what it is done to, or who does it; "": it does not.
// Before an ID, any word may be what it is done to.
func (s *segment) compound(isBeforeID bool) string {
	n := len(s.words)
	if n == 1 {
		return gluedVerb(s.letters, isBeforeID)
	}
	isSentence := n > 4 // /add-to-my-cart has four
	if n == 0 || isSentence {
		return ""
	}
	if verb := s.verbOfObject(); verb != "" {
		return verb
	}
	if isBeforeID {
		return s.verbOfAny()
	}
	return ""
}

// isVerbFirst reports whether the first word can be a verb. In code, that is so of nouns, too: updatePlugin.
func (s *segment) isVerbFirst() bool {
	first := s.words[0]
	return anywhere[first] || verbs[first] || s.isCode && orNouns[first]
}

// isVerbLast reports whether the last word can be a verb.
func (s *segment) isVerbLast() bool {
	last := s.words[len(s.words)-1]
	return anywhere[last] || verbs[last]
}

// verbOfObject returns the verb of several words that name what it is done to, or who does it; "": they do not.
func (s *segment) verbOfObject() string {
	n := len(s.words)
	first := s.words[0]
	last := s.words[n-1]
	if s.isVerbFirst() && s.areObjects(s.words[1:]) { // add-to-cart
		return first
	}
	isOfTwo := n == 2 && (doers[first] || s.areObjects(s.words[:1]))
	if isOfTwo && s.isVerbLast() { // customer-logout
		return last
	}
	if n == 3 && doers[first] && anywhere[s.words[1]+last] { // user_log_out
		return s.words[1] + last
	}
	return ""
}

// verbOfAny returns the verb of several words before an ID: what it is done to may have any name there.
func (s *segment) verbOfAny() string {
	n := len(s.words)
	first := s.words[0]
	last := s.words[n-1]
	// Verbs that pages are called by, too, count in code only: /follow-ann/7 may be one.
	if s.isCode && s.isVerbFirst() || n == 2 && anywhere[first] { // toggleComplete/7, delete-student/7
		return first
	}
	if s.isCode && s.isVerbLast() || n == 2 && anywhere[last] { // student-delete/7
		return last
	}
	return ""
}

// areObjects reports whether words of the segment say what a verb is done to: objects, or an ID.
func (s *segment) areObjects(words []string) bool {
	for i, word := range words {
		isFiller := i+1 < len(words) && fillers[word]
		isObject := isOneOf(objects, word) || s.isCode && isOneOf(codeObjects, word)
		if !isFiller && !isObject && !isToken(word) {
			return false
		}
	}
	return true
}

// gluedVerb returns the verb of a segment that is written as one word, such as addtocart; "": there is none. Before an
// ID, any letters may be what it is done to.
func gluedVerb(letters string, isBeforeID bool) string {
	if strings.HasSuffix(letters, "logout") {
		return "logout"
	}
	for _, verb := range []string{"add", "delete", "remove"} {
		rest, found := strings.CutPrefix(letters, verb)
		if !found || rest == "" {
			continue
		}
		if isBeforeID && anywhere[verb] && len(rest) > 2 {
			return verb // deletestudent/7, but not deleted/7
		}
		for _, filler := range []string{"to", "from", "all", ""} {
			object, found := strings.CutPrefix(rest, filler)
			if found && (object == "" || isOneOf(objects, object)) {
				return verb
			}
		}
	}
	return ""
}

// isID reports whether the name of a segment is that of one thing of many, or ends in one: see segment.isID.
func isID(name string) bool {
	if isUUID(name) || isToken(name) {
		return true
	}
	isSeparator := func(c rune) bool { return c == '-' || c == '_' }
	for part := range strings.FieldsFuncSeq(name, isSeparator) {
		isHash := len(part) >= 7 && !isNumber(part) && isToken(part) // as in how-to-paint-5f2b9c81a3d4
		if isHash {
			return true
		}
	}
	return false
}

// isYear reports whether a segment is a year of our time.
func (s *segment) isYear() bool {
	isOurs := strings.HasPrefix(s.name, "19") || strings.HasPrefix(s.name, "20")
	return len(s.name) == 4 && isNumber(s.name) && isOurs
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// isUUID reports whether text is a UUID (RFC 9562, section 4), or a hash without letters beyond F.
func isUUID(text string) bool {
	hasDigit := strings.ContainsAny(text, "0123456789")
	isHex := strings.Trim(text, "0123456789abcdefABCDEF-") == ""
	return len(text) >= 32 && hasDigit && isHex
}

// isToken reports whether a word is a number, or such a mixture of letters and digits that it is no word of a language:
// 7, t3, 5f2b9c81, dQw4w9WgXcQ. A version such as v2 and a name such as windows11 are none.
func isToken(text string) bool {
	if isNumber(text) {
		return true
	}
	changes, isMixture := digitChanges(text)
	if !isMixture {
		return false
	}
	isShort := len(text) > 1 && text[0] != 'v' && isNumber(text[1:])
	isMixed := len(text) >= 7 && changes >= 2
	return isShort || isMixed || len(text) >= 32
}

// digitChanges counts how often text goes from letters to digits or back. ok is false where it has anything else.
func digitChanges(text string) (n int, ok bool) {
	wasDigit := false
	for i, c := range text {
		isDigit := '0' <= c && c <= '9'
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		isPadding := c == '=' // of base 64
		if !isDigit && !isLetter && !isPadding {
			return 0, false
		}
		if i > 0 && isDigit != wasDigit {
			n++
		}
		wasDigit = isDigit
	}
	return n, true
}

// named are query parameters whose value says what to do.
var named = setOf("a act action cmd command do event func function method mode op operation oper submit task")

// actionOfParameter returns the word that makes a decoded query parameter an action; "": none.
func actionOfParameter(name, value string) string {
	// Some applications have their path in the query: ?route=checkout/cart/add.
	if strings.Contains(value, "/") {
		if word := actionOfPath(value); word != "" {
			return word
		}
	}
	for _, s := range []segment{newSegment(name), newSegment(value)} {
		word := s.compound(false)
		isVerb := anywhere[s.letters] || verbs[s.letters]
		if word == "" && isVerb {
			word = s.letters
		}
		if word != "" && !s.isTitle {
			return word
		}
	}
	// A noun says what to do only behind a name that asks for it: ?action=update, but not ?page=order.
	s := newSegment(value)
	if named[strings.ToLower(name)] && orNouns[s.letters] {
		return s.letters
	}
	return ""
}
