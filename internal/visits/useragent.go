package visits

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// maxAgent is how many bytes of a User-Agent are looked at.
const maxAgent = 512

// browsers are what the User-Agents of browsers begin with. Most robots claim to be one.
var browsers = []string{"mozilla/", "opera/", "lynx/", "w3m/", "links ", "elinks/"}

// robots are what the User-Agents of robots contain: of crawlers, previews of links, monitors, feed readers, libraries, commands,
// and browsers without a screen.
var robots = []string{
	"bot", "crawl", "spider", "archiver", "scrape", "harvest", "indexer", "validator", "preview", "monitor", "uptime", "synthetic", "linkcheck",
	"link checker", "+http", // an address to ask about the robot
	"google-", "googleother", "googleproducer", "google favicon", "mediapartners", "feedfetcher", "yandex.com/bots", "duckassist",
	"duckduckgo-favicons", "slurp", "yeti/", "sogou web", "sogou pic", "sogou inst", "sogou news", "qwantify", "amzn-searchbot", "oai-search",
	"chatgpt-user", "claude-", "anthropic", "perplexity", "meta-external", "facebookexternal", "facebookcatalog", "archive.org", "ia_archive",
	"ahrefs", "semrush", "screaming frog",
	"httrack", "nutch", "heritrix", "siteaudit", "siteimprove", "pingdom", "statuscake", "site24x7", "newrelic", "new relic", "datadog", "catchpoint",
	"gtmetrix", "pagespeed", "lighthouse", "ptst/", "speedcurve", "dynatrace", "nikto", "nmap", "zgrab", "masscan", "nuclei", "detectify", "censys",
	"expanse", "internet-measurement", "netcraft", "flipboardproxy", "outbrain", "quora link", "feedly", "feedburner", "newsblur", "netnewswire",
	"inoreader", "theoldreader", "bazqux", "tiny tiny rss", "freshrss", "miniflux",
	"headless", "phantomjs", "selenium", "puppeteer", "playwright", "prerender", "rendertron", "wkhtmlto", "jsdom/", "htmlunit", "python-",
	"http-client", "httpclient", "libwww-perl", "okhttp", "node-fetch", "cfnetwork", "winhttp", "windowspowershell", "simplepie",
}

// isRobot reports whether a User-Agent is not that of a browser, nor of a client that claims to be one. It is safe for
// concurrent use.
func isRobot(agent string) bool {
	agent = agent[:min(len(agent), maxAgent)]
	slot := &judged[xxhash.Sum64String(agent)%uint64(len(judged))]
	if last := slot.Load(); last != nil && last.agent == agent {
		return last.isRobot
	}
	is := !looksLikeBrowser(strings.ToLower(agent))
	slot.Store(&judgment{strings.Clone(agent), is})
	return is
}

// judged remembers User-Agents: most requests come with one of a few.
var judged [1024]atomic.Pointer[judgment]

type judgment struct {
	agent   string
	isRobot bool
}

func looksLikeBrowser(agent string) bool {
	agent = strings.ReplaceAll(agent, "cubot", "") // CUBOT makes telephones
	names := func(part string) bool { return strings.Contains(agent, part) }
	begins := func(prefix string) bool { return strings.HasPrefix(agent, prefix) }
	return slices.ContainsFunc(browsers, begins) && !slices.ContainsFunc(robots, names)
}
