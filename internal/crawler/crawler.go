// Package crawler says by its User-Agent who reads a site. Nobody has verified it: a
// User-Agent is what whoever asks says of itself.
package crawler

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
	found := beginningOf(agent)
	var word uint32 // the last four bytes, the first one lowest
	for i := range len(agent) {
		word = word>>8 | uint32(lowered[agent[i]])<<24
		if word>>8 == bot && !isCubot(agent[:i+1]) {
			found = max(found, OtherBot)
		}
		if !parts.mayBegin(word) || i < 3 {
			continue
		}
		named := parts.at(word, agent[i-3:])
		if named > OtherBot {
			return named
		}
		found = max(found, named)
	}
	return found
}
