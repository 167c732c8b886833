package accesslog

import (
	"fmt"
	"strings"
	"testing"
)

const chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"

func TestReason(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Visit)
		want   Reason
	}{
		{"a visit", func(*Visit) {}, Counts},
		{"HEAD", func(v *Visit) { v.Method = "HEAD" }, Counts},
		{"304", func(v *Visit) { v.Status = 304 }, Counts},
		{"nobody known", func(v *Visit) { v.UserAgent, v.ContentType = "", "" }, Counts},
		{"no type", func(v *Visit) { v.ContentType = "-" }, Counts},
		{"XHTML", func(v *Visit) { v.ContentType = "application/XHTML+xml" }, Counts},
		{"HTML of an image", func(v *Visit) { v.URI = "/File:A.jpg" }, Counts},
		{"indexed", func(v *Visit) {
			v.RobotsTag = "nofollow, max-snippet: 50, unavailable_after: 25 Jun 2030 15:00:00 PST"
		}, Counts},
		{"noindex for another", func(v *Visit) { v.RobotsTag = "otherbot: noindex, nofollow" }, Counts},
		{"POST", func(v *Visit) { v.Method = "POST" }, WrongMethod},
		{"get", func(v *Visit) { v.Method = "get" }, WrongMethod},
		{"206", func(v *Visit) { v.Status = 206 }, WrongStatus},
		{"301", func(v *Visit) { v.Status = 301 }, WrongStatus},
		{"404", func(v *Visit) { v.Status = 404 }, WrongStatus},
		{"no answer", func(v *Visit) { v.Status = 0 }, WrongStatus},
		{"a user", func(v *Visit) { v.User = true }, SignedIn},
		{"a user's JSON", func(v *Visit) { v.User, v.ContentType = true, "application/json" }, NotHTML},
		{"noindex", func(v *Visit) { v.RobotsTag = "nofollow,NoIndex" }, NoIndex},
		{"none", func(v *Visit) { v.RobotsTag = "none" }, NoIndex},
		{"noindex for Google", func(v *Visit) { v.RobotsTag = "otherbot: nofollow, googlebot: noindex" }, NoIndex},
		{"noindex after a value", func(v *Visit) { v.RobotsTag = "max-image-preview:large noindex" }, NoIndex},
		{"JSON", func(v *Visit) { v.ContentType = "application/json" }, NotHTML},
		{"text", func(v *Visit) { v.ContentType = "text/plain; charset=utf-8" }, NotHTML},
		{"a robot", func(v *Visit) {
			v.UserAgent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
		}, Robot},
		{"no User-Agent", func(v *Visit) { v.UserAgent = "-" }, Robot},
		{"a long robot", func(v *Visit) { v.UserAgent = "bot" + strings.Repeat("x", 9999) }, Robot},
		{"our own", func(v *Visit) {
			v.UserAgent = "caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)"
		}, Robot},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Visit{
				Time: 1764000000, Method: "GET", Host: "example.com", URI: "/a", Status: 200,
				UserAgent: chrome, ContentType: "text/html; charset=utf-8",
			}
			test.change(&v)
			var f Filter
			for range 2 {
				if got := f.Reason(&v); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			}
		})
	}
	for r := Reason(0); int(r) < Reasons; r++ {
		if r.String() == "" {
			t.Errorf("reason %d has no words", r)
		}
	}
	if Counts.IsOfPage() || WrongStatus.IsOfPage() || Asset.IsOfPage() || !Robot.IsOfPage() || !SignedIn.IsOfPage() || !NoIndex.IsOfPage() {
		t.Error("a reason is not of the kind it should be")
	}
	if got := Reason(Reasons).String(); got != "" {
		t.Errorf("got %q for no reason", got)
	}
}

func TestAssets(t *testing.T) {
	for uri, want := range map[string]bool{
		"/": false, "/a": false, "/a.html": false, "/a.htm": false, "/a.php?x=y.png": false, "/a.aspx": false, "/a.jsp;v=1.png": false, "/a.xhtml": false,
		"/a.css/b": false, "/v1.2": false, "/a.unknown": false, "/a.": false, "/.png/": false, "/mr.smith": false, "/a.a-very-long-one.png/": false, "": false, "*": false,
		"/a.css": true, "/a.CSS?v=3": true, "/a.b.js": true, "/a.js#x": true, "/a.jpeg;v=1": true, "/robots.txt": true, "/sitemap.xml": true, "/feed.rss": true,
		"/a.woff2": true, "/site.webmanifest": true, "/a.tar.gz": true, "/a.wasm": true,
	} {
		if got := isAsset(uri); got != want {
			t.Errorf("%s: got %t, want %t", uri, got, want)
		}
	}
}

func TestAgents(t *testing.T) {
	for _, agent := range []string{
		"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
		"Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)",
		"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
		"Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
		"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)",
		"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "facebookexternalhit/1.1", "meta-externalagent/1.1",
		"WhatsApp/2.23.20.0 A", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "Slack-ImgProxy (+https://api.slack.com/robots)",
		"Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)", "TelegramBot (like TwitterBot)", "Twitterbot/1.0", "LinkedInBot/1.0", "SkypeUriPreview Preview/0.5",
		"Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)", "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)", "StatusCake", "Uptime-Kuma/1.23", "Better Stack Better Uptime Bot",
		"curl/8.5.0", "Wget/1.21.4", "python-requests/2.31.0", "Python/3.12 aiohttp/3.9.1", "python-httpx/0.27", "Go-http-client/2.0", "okhttp/4.12.0", "libwww-perl/6.72", "Java/17.0.1", "Apache-HttpClient/4.5 (Java/17)",
		"axios/1.6.2", "node-fetch/1.0", "node", "undici", "GuzzleHttp/7", "PHP/8.1", "Ruby", "PostmanRuntime/7.36", "HTTPie/3.2", "Dalvik/2.1.0 (Linux; U; Android 13)", "Scrapy/2.11 (+https://scrapy.org)",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/141.0.0.0 Safari/537.36",
		"Mozilla/5.0 (Linux; Android 11; moto g power) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0.0.0 Mobile Safari/537.36 Chrome-Lighthouse",
		"Feedly/1.0 (+http://www.feedly.com/fetcher.html)", "Tiny Tiny RSS/23.05", "FreshRSS/1.22", "NetNewsWire (RSS Reader; https://netnewswire.com/)", "Miniflux/2.0", "WordPress/6.4; https://example.com",
		"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot",
		"Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)", "ia_archiver", "W3C_Validator/1.3", "Screaming Frog SEO Spider/19.0", "Mastodon/4.2.1 (http.rb/5.1.1; +https://mastodon.social/)",
		"Mozilla/5.0 (compatible; Nmap Scripting Engine; https://nmap.org/book/nse.html)", "Mozilla/5.0 zgrab/0.x", "kube-probe/1.28", "Mediapartners-Google", "Google-Read-Aloud", "a cubot bot",
	} {
		if !new(Filter).isRobot(agent) {
			t.Errorf("%s: no robot", agent)
		}
	}
	for _, agent := range []string{
		chrome, "",
		"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 OPR/125.0.0.0",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 YaBrowser/25.8.0.0 Safari/537.36",
		"Mozilla/5.0 (Linux; arm_64; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/138.0 Mobile Safari/537.36 YandexSearch/8.90 YandexSearchBrowser/8.90",
		"Mozilla/5.0 (Linux; Android 9; CUBOT_X18_Plus) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36",
		"Mozilla/5.0 (Linux; Android 10; Cubot Note 20) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36",
		"Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/141.0 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/500.0.0;]",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/22G86 Instagram 400.0.0 (iPhone14,5; iOS 18_6)",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/22G86 [LinkedInApp]/9.30",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [Pinterest/iOS]",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) GSA/380.0 Mobile/15E148 Safari/604.1",
		"Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
		"Mozilla/5.0 (Linux; U; Android 13; en-US) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/100.0 UCBrowser/13.4 Mobile Safari/537.36",
		"Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Mobile Safari/537.36 MicroMessenger/8.0 NetType/WIFI",
		"Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Mobile Safari/537.36 baiduboxapp/13.0",
		"Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Mobile Safari/537.36 NAVER(inapp; search; 2000; 12.0)",
		"Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko", "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; .NET CLR 2.0.50727; InfoPath.2)",
		"Mozilla/5.0 (X11; CrOS x86_64 16181.61.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
		"Mozilla/5.0 (Mobile; Nokia_8110_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5", "Opera/9.80 (Android; Opera Mini/36.2/119.132; U; id) Presto/2.12.423 Version/12.16",
		"Mozilla/5.0 (PlayStation 5 3.11) AppleWebKit/605.1.15 (KHTML, like Gecko)", "Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/108.0 Safari/537.36 WebAppManager",
		"Lynx/2.8.9rel.1 libwww-FM/2.14 SSL-MM/1.4.1 OpenSSL/1.1.1", "w3m/0.5.3+git20230121", "Links (2.29; Linux x86_64)", "ELinks/0.16",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0 Electron/37.2 Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15",
		"Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Mobile Safari/537.36 Line/14.0.0 Viber/21.0",
	} {
		if new(Filter).isRobot(agent) {
			t.Errorf("%s: a robot", agent)
		}
	}
}

// TestNoIndexChanges: what is remembered of one X-Robots-Tag is not another's.
func TestNoIndexChanges(t *testing.T) {
	var f Filter
	for _, test := range []struct {
		tag  string
		want Reason
	}{{"noindex", NoIndex}, {"noindex", NoIndex}, {"", Counts}, {"nofollow", Counts}, {"none", NoIndex}, {"max-snippet:-1", Counts}} {
		v := Visit{Method: "GET", Status: 200, URI: "/", RobotsTag: test.tag}
		if got := f.Reason(&v); got != test.want {
			t.Errorf("%q: got %q, want %q", test.tag, got, test.want)
		}
	}
}

func TestFilterBound(t *testing.T) {
	var f Filter
	v := Visit{Method: "GET", Status: 200, URI: "/"}
	for i := range 3 * maxAgents {
		v.UserAgent = fmt.Sprintf("%s %d", chrome, i)
		f.Reason(&v)
	}
	if len(f.agents) > maxAgents {
		t.Errorf("%d names are remembered", len(f.agents))
	}
	// The strings of a visit are overwritten by the next.
	buffer := []byte(v.UserAgent)
	for agent := range f.agents {
		if agent == "" {
			t.Error("an empty name")
		}
	}
	if _, ok := f.agents[string(buffer)]; !ok {
		t.Error("the last name is not remembered")
	}
}

func BenchmarkReason(b *testing.B) {
	v := Visit{
		Time: 1764000000, Method: "GET", Host: "example.com", URI: "/articles/2026/some-page.html?a=b", Status: 200,
		UserAgent: chrome, ContentType: "text/html; charset=utf-8",
	}
	for _, known := range []bool{true, false} {
		b.Run(fmt.Sprintf("type=%t", known), func(b *testing.B) {
			if !known {
				v.ContentType = ""
			}
			var f Filter
			b.ReportAllocs()
			for b.Loop() {
				if got := f.Reason(&v); got != Counts {
					b.Fatal(got)
				}
			}
		})
	}
}
