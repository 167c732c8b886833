package discover

import (
	"slices"
	"strings"
)

// isRobot remembers what [isAgentRobot] says. A User-Agent of "" is one that the log
// does not tell: the Common format has none, and what writes JSON may leave out headers,
// all or those that a request did not have. So it is anybody's. "-" is how a log tells
// that there was none, and always so in the Combined format: all browsers send one.
func (f *Filter) isRobot(agent string) bool {
	switch agent {
	case "":
		return false
	case "-":
		return true
	}
	if robot, ok := f.agents[agent]; ok {
		return robot
	}
	if len(agent) > maxAgent {
		return isAgentRobot(agent[:maxAgent])
	}
	robot := isAgentRobot(agent)
	if f.agents == nil || len(f.agents) >= maxAgents {
		f.agents = make(map[string]bool)
	}
	f.agents[strings.Clone(agent)] = robot
	return robot
}

// isAgentRobot reports whether a User-Agent is that of no browser: of a crawler, of
// what shows previews of links, watches over sites or reads feeds, or of a library for
// HTTP.
func isAgentRobot(agent string) bool {
	agent = strings.ToLower(agent)
	for _, part := range robotBeginnings {
		if strings.HasPrefix(agent, part) {
			return true
		}
	}
	if robots.isIn(agent) {
		return true
	}
	// CUBOT makes telephones.
	return strings.Count(agent, "bot") > strings.Count(agent, "cubot")
}

// parts finds whether one of many strings is part of another. They are found by their
// first four bytes, which all of them have: looking for each by itself would take most
// of the time that a log does.
type parts struct {
	begins [1<<partBits + 1]uint16 // by slot, where those that begin so are
	sorted []string
}

const partBits = 12

var robots = newParts(robotParts)

func newParts(all []string) *parts {
	p := &parts{sorted: slices.Clone(all)}
	slices.SortFunc(p.sorted, func(a, b string) int { return p.slot(a) - p.slot(b) })
	for _, part := range p.sorted {
		p.begins[p.slot(part)+1]++
	}
	for slot := range 1 << partBits {
		p.begins[slot+1] += p.begins[slot]
	}
	return p
}

// slot is the same for strings that begin with the same four bytes.
func (p *parts) slot(s string) int {
	first := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
	return int(first * 0x9E3779B1 >> (32 - partBits))
}

func (p *parts) isIn(s string) bool {
	for ; len(s) >= 4; s = s[1:] {
		slot := p.slot(s)
		for _, part := range p.sorted[p.begins[slot]:p.begins[slot+1]] {
			if strings.HasPrefix(s, part) {
				return true
			}
		}
	}
	return false
}

// robotBeginnings begin the names of robots, and stand elsewhere in browsers'.
var robotBeginnings = []string{
	"apache/", "apache-", "axios/", "bun/", "cfnetwork", "curl", "dart/", "dalvik/", "daum/", "deno/", "feed", "fetch", "go ", "go-", "google", "got ", "got/",
	"http", "java", "jersey/", "ktor", "libcurl", "lua-", "lwp", "mattermost", "meta-", "microsoft bits", "microsoft office", "monit/", "needle/",
	"nessus", "nextcloud", "node", "ocsp", "okhttp", "pear ", "perl", "php", "postman", "pycurl", "python", "reqwest", "resty/", "rome ", "rss", "ruby", "rust",
	"serf/", "signal", "snoopy", "synapse", "typhoeus", "unirest", "urlgrabber", "varnish", "vlc/", "w3c", "wget", "whatsapp/", "windows-rss", "winhttp", "wordpress", "xenu", "yeti/", "zend",
}

// robotParts stand in the names of robots alone. What has "bot" in it is one, too.
var robotParts = []string{
	"caddy-sitemap", "+http", // an address to ask about the robot

	// Crawlers.
	"crawl", "spider", "slurp", "archiver", "heritrix", "nutch", "httrack", "scrapy", "scrape", "harvest", "indexer", "mediapartners",
	"googleother", "google-", "apis-google", "feedfetcher", "duplexweb", "google favicon", "google web preview",
	"bingpreview", "msnptc", "ia_archive", "archive.org", "facebookexternal", "facebookcatalog", "facebookplatform", "meta-external",
	"yandexacc", "yandexadnet", "yandexblogs", "yandexcal", "yandexdirect", "yandexfav", "yandexfordomain", "yandeximage", "yandexmarket", "yandexmedia", "yandexmetrika",
	"yandexnews", "yandexontodb", "yandexpage", "yandexpartner", "yandexrca", "yandexscreenshot", "yandexsitelinks", "yandextracker", "yandexturbo", "yandexuserproxy",
	"yandexvertis", "yandexvideo", "yandexwebmaster", "yeti/", "qwantify", "teoma", "coccoc/crawler", "sogou web", "sogou pic",
	"chatgpt-user", "oai-search", "claude-", "anthropic", "perplexity", "cohere-ai", "mistralai", "duckassist", "diffbot", "imagesift", "omgili", "brandwatch", "trendiction", "zoominfo", "ahrefs", "semrush", "dataprovider",
	"screaming frog", "sitebulb", "netpeak", "siteaudit", "seokicks", "linkdex", "link checker", "linkcheck", "link-check", "xenu link", "validator", "w3c_", "siteimprove", "nuzzel",

	// Previews of links.
	"preview", "whatsapp/2.", "slack-img", "slackbot", "skypeuri", "embedly", "iframely", "bitlybot", "vkshare", "flipboardproxy", "line-poker", "mastodon", "misskey", "pleroma", "akkoma", "friendica", "lemmy/",
	"outbrain", "quora link", "bufferbot", "xing-content", "redditbot", "metainspector", "opengraph", "unfurl", "snap url", "kakaotalk-scrap",

	// Watchers.
	"pingdom", "uptime", "statuscake", "site24x7", "newrelic", "new relic", "datadog", "synthetic", "nagios", "check_http", "icinga", "zabbix", "prtg", "catchpoint", "hetrix", "better stack",
	"betteruptime", "freshping", "updown.io", "statusoid", "checkly", "monitor", "healthcheck", "health check", "health-check", "kube-probe", "elb-health", "googlehc", "blackbox", "dynatrace", "rigor", "keycdn", "gtmetrix",
	"pagespeed", "lighthouse", "ptst/", "speedcurve", "yellowlab", "detectify", "zgrab", "masscan", "nmap", "nikto", "sqlmap", "wpscan", "nuclei", "openvas", "qualys", "censys", "expanse", "internet-measurement", "internetmeasurement", "netcraft", "shodan",
	"gobuster", "dirbuster", "feroxbuster", "fuzz", "l9explore", "leakix", "paloalto", "letsencrypt", "let's encrypt",

	// Readers of feeds.
	"feedly", "feedbin", "feedburner", "feedparser", "feeddemon", "feedspot", "feedwind", "feedvalidator", "freshrss", "tiny tiny rss", "tt-rss", "miniflux", "newsblur", "netnewswire", "inoreader", "theoldreader", "bazqux",
	"rssowl", "rss reader", "rssreader", "newsboat", "newsbeuter", "akregator", "liferea", "quiterss", "reeder/", "commafeed", "blogtrottr", "blogtrotter", "vienna/", "podcasts/", "overcast/", "itunes/",

	// Browsers without a screen, and libraries.
	"headless", "phantomjs", "slimerjs", "selenium", "puppeteer", "playwright", "prerender", "rendertron", "wkhtmlto", "jsdom/", "htmlunit", "mechanize", "electron-fetch",
	"go-http-client", "python-", "aiohttp", "httpx", "httpclient", "http-client", "http_client", "http client", "http.rb", "httpie", "http_request", "libwww-perl", "lwp::", "okhttp", "guzzle", "node-fetch", "undici", "superagent", "cfnetwork", "java/1.", "winhttp",
	"postmanruntime", "insomnia/", "curl/", "wget/", "faraday", "rest-client", "restsharp", "nsplayer", "windowspowershell", "powershell/", "simplepie", "magpierss", "embarcadero", "indy library", "wininet",
}
