package crawler

// beginnings begin the names of robots, and stand elsewhere in browsers'.
var beginnings = []named{
	{Browser, []string{"mozilla/", "opera/"}},
	{Tool, []string{
		"apache/", "apache-", "axios/", "bun/", "cfnetwork", "curl", "dart/", "dalvik/", "deno/", "fetch", "go ", "go-", "got ", "got/", "http", "java",
		"jersey/", "ktor", "libcurl", "lua-", "lwp", "needle/", "node", "okhttp", "pear ", "perl", "php", "postman", "pycurl", "python", "reqwest",
		"resty/", "ruby", "rust", "serf/", "typhoeus", "unirest", "urlgrabber", "wget", "winhttp", "zend",
	}},
	{OtherBot, []string{
		"daum/", "feed", "mattermost", "meta-", "microsoft bits", "microsoft office", "monit/", "nessus", "nextcloud", "ocsp", "rome ", "rss", "signal",
		"snoopy", "synapse", "varnish", "vlc/", "w3c", "whatsapp/", "windows-rss", "wordpress", "xenu",
	}},
	{GoogleOther, []string{
		"google",
	}},
}

// named are the names of one family.
type named struct {
	family Family
	texts  []string
}

// partsOfNames stand in the names of robots alone.
var partsOfNames = []named{
	{Googlebot, []string{"googlebot"}},
	{GoogleOther, []string{
		"googleother", "google-", "mediapartners", "adsbot", "apis-google", "feedfetcher", "duplexweb", "google favicon", "google web preview",
		"googleproducer",
	}},
	{Bingbot, []string{"bingbot", "bingpreview", "bingvideopreview", "microsoftpreview", "msnbot", "adidxbot"}},
	{YandexBot, []string{
		"yandexbot", "yandexmobilebot", "yandexacc", "yandexadnet", "yandexblogs", "yandexcal", "yandexdirect", "yandexfav", "yandexfordomain",
		"yandeximage", "yandexmarket", "yandexmedia", "yandexmetrika", "yandexnews", "yandexontodb", "yandexpage", "yandexpartner", "yandexrca",
		"yandexscreenshot", "yandexsitelinks", "yandextracker", "yandexturbo", "yandexuserproxy", "yandexvertis", "yandexvideo", "yandexwebmaster",
	}},
	{Baiduspider, []string{"baiduspider"}},
	{DuckDuckBot, []string{"duckduckbot", "duckassist", "duckduckgo-favicons"}},
	{Applebot, []string{"applebot"}},
	{Slurp, []string{"slurp"}},
	{SeznamBot, []string{"seznambot"}},
	{Yeti, []string{"yeti/", "naverbot"}},
	{Sogou, []string{"sogou web", "sogou pic", "sogou inst", "sogou news", "sogou spider"}},
	{Qwantbot, []string{"qwantbot", "qwantify"}},
	{MojeekBot, []string{"mojeekbot"}},
	{PetalBot, []string{"petalbot", "aspiegelbot"}},
	{Amazonbot, []string{"amazonbot", "amzn-searchbot"}},
	{GPTBot, []string{"gptbot"}},
	{OAISearchBot, []string{"oai-search", "chatgpt-user"}},
	{ClaudeBot, []string{"claudebot", "claude-", "anthropic"}},
	{PerplexityBot, []string{"perplexity"}},
	{Meta, []string{"meta-external", "facebookexternal", "facebookcatalog", "facebookplatform", "facebot"}},
	{Bytespider, []string{"bytespider", "tiktokspider"}},
	{CCBot, []string{"ccbot"}},
	{ArchiveOrg, []string{"archive.org", "ia_archive"}},
	{AhrefsBot, []string{"ahrefs"}},
	{SemrushBot, []string{"semrush", "siteauditbot"}},
	{MJ12bot, []string{"mj12bot"}},
	{DotBot, []string{"dotbot", "rogerbot"}},
	{ScreamingFrog, []string{"screaming frog"}},

	{OtherBot, []string{
		"bot", "caddy-sitemap", "+http", // an address to ask about the robot

		// Crawlers.
		"crawl", "spider", "archiver", "heritrix", "nutch", "httrack", "scrapy", "scrape", "harvest", "indexer", "msnptc", "teoma", "coccoc/crawler",
		"cohere-ai", "mistralai", "diffbot", "imagesift", "omgili", "brandwatch", "trendiction", "zoominfo", "dataprovider", "sitebulb", "netpeak",
		"siteaudit", "seokicks", "linkdex", "link checker", "linkcheck", "link-check", "xenu link", "validator", "w3c_", "siteimprove", "nuzzel",

		// Previews of links.
		"preview", "whatsapp/2.", "slack-img", "slackbot", "skypeuri", "embedly", "iframely", "bitlybot", "vkshare", "flipboardproxy", "line-poker",
		"mastodon", "misskey", "pleroma", "akkoma", "friendica", "lemmy/", "outbrain", "quora link", "bufferbot", "xing-content", "redditbot",
		"metainspector", "opengraph", "unfurl", "snap url", "kakaotalk-scrap",

		// Watchers.
		"pingdom", "uptime", "statuscake", "site24x7", "newrelic", "new relic", "datadog", "synthetic", "nagios", "check_http", "icinga", "zabbix", "prtg",
		"catchpoint", "hetrix", "better stack", "betteruptime", "freshping", "updown.io", "statusoid", "checkly", "monitor", "healthcheck", "health check",
		"health-check", "kube-probe", "elb-health", "googlehc", "blackbox", "dynatrace", "rigor", "keycdn", "gtmetrix", "pagespeed", "lighthouse", "ptst/",
		"speedcurve", "yellowlab", "detectify", "zgrab", "masscan", "nmap", "nikto", "sqlmap", "wpscan", "nuclei", "openvas", "qualys", "censys", "expanse",
		"internet-measurement", "internetmeasurement", "netcraft", "shodan", "gobuster", "dirbuster", "feroxbuster", "fuzz", "l9explore", "leakix",
		"paloalto", "letsencrypt", "let's encrypt",

		// Readers of feeds.
		"feedly", "feedbin", "feedburner", "feedparser", "feeddemon", "feedspot", "feedwind", "feedvalidator", "freshrss", "tiny tiny rss", "tt-rss",
		"miniflux", "newsblur", "netnewswire", "inoreader", "theoldreader", "bazqux", "rssowl", "rss reader", "rssreader", "newsboat", "newsbeuter",
		"akregator", "liferea", "quiterss", "reeder/", "commafeed", "blogtrottr", "blogtrotter", "vienna/", "podcasts/", "overcast/", "itunes/",
	}},

	// Browsers without a screen, and libraries.
	{Tool, []string{
		"headless", "phantomjs", "slimerjs", "selenium", "puppeteer", "playwright", "prerender", "rendertron", "wkhtmlto", "jsdom/", "htmlunit",
		"mechanize", "electron-fetch", "go-http-client", "python-", "aiohttp", "httpx", "httpclient", "http-client", "http_client", "http client",
		"http.rb", "httpie", "http_request", "libwww-perl", "lwp::", "okhttp", "guzzle", "node-fetch", "undici", "superagent", "cfnetwork", "java/1.",
		"winhttp", "postmanruntime", "insomnia/", "curl/", "wget/", "faraday", "rest-client", "restsharp", "nsplayer", "windowspowershell", "powershell/",
		"simplepie", "magpierss", "embarcadero", "indy library", "wininet",
	}},
}
