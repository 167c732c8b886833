package visits

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// Classes of User-Agents besides the crawlers that [classes] names.
const (
	noAgent  = "none"      // there is no User-Agent
	browser  = "browser"   // or a client that claims to be one
	otherBot = "other bot" // any other crawler, a preview of links, a monitor, a feed reader
	tool     = "tool"      // a library, a command, a browser without a screen, an app
)

// maxAgent is how many bytes of a User-Agent are looked at.
const maxAgent = 512

// browsers are what the User-Agents of browsers begin with.
var browsers = []string{"mozilla/", "opera/", "lynx/", "w3m/", "links ", "elinks/"}

// classes are the classes of robots, by what their User-Agents contain. The first that matches counts; what
// is in none and does not begin like a browser is a tool.
var classes = []struct {
	name  string
	parts []string
}{
	{"Googlebot", []string{"googlebot"}},
	{"GoogleOther", []string{"googleother", "google-", "mediapartners", "adsbot", "apis-google", "feedfetcher", "google favicon", "google web preview", "googleproducer"}},
	{"Bingbot", []string{"bingbot", "bingpreview", "microsoftpreview", "msnbot", "adidxbot"}},
	{"YandexBot", []string{"yandexbot", "yandex.com/bots"}},
	{"Baiduspider", []string{"baiduspider"}},
	{"DuckDuckBot", []string{"duckduckbot", "duckassist", "duckduckgo-favicons"}},
	{"Applebot", []string{"applebot"}},
	{"Slurp", []string{"slurp"}},
	{"SeznamBot", []string{"seznambot"}},
	{"Yeti", []string{"yeti/", "naverbot"}},
	{"Sogou", []string{"sogou web", "sogou pic", "sogou inst", "sogou news", "sogou spider"}},
	{"Qwantbot", []string{"qwantbot", "qwantify"}},
	{"MojeekBot", []string{"mojeekbot"}},
	{"PetalBot", []string{"petalbot", "aspiegelbot"}},
	{"Amazonbot", []string{"amazonbot", "amzn-searchbot"}},
	{"GPTBot", []string{"gptbot"}},
	{"OAI-SearchBot", []string{"oai-search", "chatgpt-user"}},
	{"ClaudeBot", []string{"claudebot", "claude-", "anthropic"}},
	{"PerplexityBot", []string{"perplexity"}},
	{"Meta", []string{"meta-external", "facebookexternal", "facebookcatalog", "facebot"}},
	{"Bytespider", []string{"bytespider", "tiktokspider"}},
	{"CCBot", []string{"ccbot"}},
	{"archive.org_bot", []string{"archive.org", "ia_archive"}},
	{"AhrefsBot", []string{"ahrefs"}},
	{"SemrushBot", []string{"semrush", "siteauditbot"}},
	{"MJ12bot", []string{"mj12bot"}},
	{"DotBot", []string{"dotbot", "rogerbot"}},
	{"Screaming Frog", []string{"screaming frog"}},
	{otherBot, []string{
		"bot", "crawl", "spider", "archiver", "scrape", "harvest", "indexer", "validator", "preview", "monitor", "uptime", "synthetic", "linkcheck",
		"link checker", "+http", // an address to ask about the robot
		"httrack", "nutch", "heritrix", "siteaudit", "siteimprove", "pingdom", "statuscake", "site24x7", "newrelic", "new relic", "datadog", "catchpoint",
		"gtmetrix", "pagespeed", "lighthouse", "ptst/", "speedcurve", "dynatrace", "nikto", "nmap", "zgrab", "masscan", "nuclei", "detectify", "censys",
		"expanse", "internet-measurement", "netcraft", "flipboardproxy", "outbrain", "quora link", "feedly", "feedburner", "newsblur", "netnewswire",
		"inoreader", "theoldreader", "bazqux", "tiny tiny rss", "freshrss", "miniflux",
	}},
	{tool, []string{
		"headless", "phantomjs", "selenium", "puppeteer", "playwright", "prerender", "rendertron", "wkhtmlto", "jsdom/", "htmlunit", "python-",
		"http-client", "httpclient", "libwww-perl", "okhttp", "node-fetch", "cfnetwork", "winhttp", "windowspowershell", "simplepie",
	}},
}

// classOf returns the class of a User-Agent: whose crawler it says it is, or what kind of client. Nobody has
// verified that. It is safe for concurrent use.
func classOf(agent string) string {
	agent = agent[:min(len(agent), maxAgent)]
	slot := &classified[xxhash.Sum64String(agent)%uint64(len(classified))]
	if last := slot.Load(); last != nil && last.agent == agent {
		return last.class
	}
	class := classify(strings.ToLower(agent))
	slot.Store(&agentClass{strings.Clone(agent), class})
	return class
}

// classified remembers the classes of User-Agents: most requests come with one of a few.
var classified [1024]atomic.Pointer[agentClass]

type agentClass struct{ agent, class string }

func classify(agent string) string {
	if strings.Trim(agent, " \t-") == "" { // "-" is how logs write that there is none
		return noAgent
	}
	agent = strings.ReplaceAll(agent, "cubot", "") // CUBOT makes telephones
	for _, c := range classes {
		if slices.ContainsFunc(c.parts, func(part string) bool { return strings.Contains(agent, part) }) {
			return c.name
		}
	}
	if slices.ContainsFunc(browsers, func(prefix string) bool { return strings.HasPrefix(agent, prefix) }) {
		return browser
	}
	return tool
}
