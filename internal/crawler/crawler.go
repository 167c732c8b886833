// Package crawler says by its User-Agent who reads a site. Nobody has verified it: a
// User-Agent is what whoever asks says of itself.
package crawler

import (
	"slices"
	"strings"
)

// Family is whose User-Agent it is: of the crawlers of one name or one operator, or of
// a kind of visitors.
type Family uint8

// The families. Those from [Googlebot] on are crawlers with a name of their own; some
// stand for others of their operator, too.
const (
	None     Family = iota // there is no User-Agent
	Unknown                // neither a browser's nor one that says what it is
	Browser                // or what takes itself for one
	Tool                   // a library for HTTP, a program for the command line
	OtherBot               // any other crawler, a preview of links, a watcher, a reader of feeds

	Googlebot
	GoogleOther // Google-InspectionTool, AdsBot-Google and the like, too
	Bingbot     // BingPreview and Microsoft's others, too
	YandexBot   // Yandex's others, too
	Baiduspider
	DuckDuckBot // DuckAssistBot, too
	Applebot
	Slurp // Yahoo
	SeznamBot
	Yeti // Naver
	Sogou
	Qwantbot
	MojeekBot
	PetalBot
	Amazonbot
	GPTBot
	OAISearchBot // ChatGPT-User, too
	ClaudeBot    // Claude-SearchBot and Claude-User, too
	PerplexityBot
	Meta // meta-externalagent, facebookexternalhit and the like
	Bytespider
	CCBot
	ArchiveOrg
	AhrefsBot
	SemrushBot
	MJ12bot
	DotBot // rogerbot, too
	ScreamingFrog

	Families = int(ScreamingFrog) + 1 // how many there are
)

// Longest is how many bytes of a User-Agent are looked at.
const Longest = 512

var names = [Families]string{
	None: "none", Unknown: "unknown", Browser: "browser", Tool: "tool", OtherBot: "other bot",
	Googlebot: "Googlebot", GoogleOther: "GoogleOther", Bingbot: "Bingbot", YandexBot: "YandexBot", Baiduspider: "Baiduspider",
	DuckDuckBot: "DuckDuckBot", Applebot: "Applebot", Slurp: "Slurp", SeznamBot: "SeznamBot", Yeti: "Yeti", Sogou: "Sogou", Qwantbot: "Qwantbot",
	MojeekBot: "MojeekBot", PetalBot: "PetalBot", Amazonbot: "Amazonbot", GPTBot: "GPTBot", OAISearchBot: "OAI-SearchBot",
	ClaudeBot: "ClaudeBot", PerplexityBot: "PerplexityBot", Meta: "Meta", Bytespider: "Bytespider", CCBot: "CCBot", ArchiveOrg: "archive.org_bot",
	AhrefsBot: "AhrefsBot", SemrushBot: "SemrushBot", MJ12bot: "MJ12bot", DotBot: "DotBot", ScreamingFrog: "Screaming Frog",
}

// String is the name that the family's crawler gives itself, or words for a kind of
// visitors.
func (f Family) String() string {
	if int(f) >= Families {
		return ""
	}
	return names[f]
}

// IsRobot reports whether the family says of itself that no person is looking.
func (f Family) IsRobot() bool { return f >= Tool }

// Of returns the family of a User-Agent, whatever its case: of several crawlers that it
// names, the first.
func Of(userAgent string) Family {
	agent := userAgent[:min(len(userAgent), Longest)]
	if isBlank(agent) {
		return None
	}
	found := Unknown
	for _, n := range beginningsBySlot[slotOf(agent)] {
		if hasPrefix(agent, n.text) {
			found = max(found, n.family)
		}
	}
	for i := range len(agent) {
		for _, n := range partsBySlot[slotOf(agent[i:])] {
			if !hasPrefix(agent[i:], n.text) || n.text == "bot" && i >= 2 && hasPrefix(agent[i-2:], "cubot") { // CUBOT makes telephones
				continue
			}
			if n.family > OtherBot {
				return n.family
			}
			found = max(found, n.family)
			break
		}
	}
	return found
}

// name is a text in lower case, and whose name it is or is part of.
type name struct {
	text   string
	family Family
}

// slots are names by what slotOf says of their first two letters, the longest first.
type slots [1 << 10][]name

var beginningsBySlot, partsBySlot = newSlots(beginnings), newSlots(partsOfNames)

func newSlots(kinds []named) (s slots) {
	for _, kind := range kinds {
		for _, text := range kind.texts {
			slot := &s[slotOf(text)]
			*slot = append(*slot, name{text, kind.family})
		}
	}
	for _, names := range s {
		slices.SortStableFunc(names, func(a, b name) int { return len(b.text) - len(a.text) })
	}
	return s
}

// slotOf is the same for a text in upper and lower case. Looking for each name by itself
// would take most of the time that reading a log does.
func slotOf(text string) int {
	slot := int(text[0]&31) << 5
	if len(text) > 1 {
		slot |= int(text[1] & 31)
	}
	return slot
}

// isBlank reports whether there is no User-Agent: "-" is how logs write that.
func isBlank(agent string) bool { return strings.Trim(agent, " \t-") == "" }

// hasPrefix reports whether s begins with a text in lower case, whatever its own case. A
// letter beyond ASCII is in no name.
func hasPrefix(s, text string) bool {
	if len(s) < len(text) {
		return false
	}
	for i := range len(text) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != text[i] {
			return false
		}
	}
	return true
}
