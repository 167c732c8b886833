package visits

import (
	"strings"
	"testing"
)

const chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"

var known = []struct {
	agent string
	want  bool // it is a robot
}{
	{"", false}, // not known
	{"-", true},
	{"MyApp/1.0", true},
	{"\xff\xfe\x00", true},
	{chrome, false},
	{"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0", false},
	{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1", false},
	{"Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18", false},
	{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 YaBrowser/25.8.0.0 Safari/537.36", false},
	{"Mozilla/5.0 (Linux; arm_64; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/138.0 Mobile Safari/537.36 YandexSearch/8.90 YandexSearchBrowser/8.90", false},
	{"Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/141.0 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/500.0.0;]", false},
	{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/22G86 [LinkedInApp]/9.30", false},
	{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [Pinterest/iOS]", false},
	{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) GSA/380.0 Mobile/15E148 Safari/604.1", false},
	{"Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Mobile Safari/537.36 MicroMessenger/8.0 NetType/WIFI", false},
	{"Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Mobile Safari/537.36 baiduboxapp/13.0", false},
	{"Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Mobile Safari/537.36 NAVER(inapp; search; 2000; 12.0)", false},
	{"Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko", false},
	{"Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; .NET CLR 2.0.50727; InfoPath.2)", false},
	{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15", false},

	{"curl/8.5.0", true},
	{"python-requests/2.31.0", true},
	{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/141.0.0.0 Safari/537.36", true},
	{"caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)", true},
	{"Feedly/1.0 (+http://www.feedly.com/fetcher.html)", true},

	{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", true},
	{"Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)", true},
	{"AdsBot-Google (+http://www.google.com/adsbot.html)", true},
	{"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", true},
	{"Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", true},
	{"Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)", true},
	{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)", true},
	{"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)", true},
	{"Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)", true},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", true},
	{"meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)", true},
	{"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", true},
	{"Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)", true},
	{"Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)", true},
	{"ia_archiver", true},
	{"Screaming Frog SEO Spider/19.0", true},
}

func isRobot(agent string) bool { return (&Visit{UserAgent: agent}).isRobot() }

// TestIsRobot: the case plays no part.
func TestIsRobot(t *testing.T) {
	for _, test := range known {
		for _, agent := range []string{test.agent, strings.ToUpper(test.agent), strings.ToLower(test.agent)} {
			if got := isRobot(agent); got != test.want {
				t.Errorf("%q: got %t, want %t", agent, got, test.want)
			}
		}
	}
	for _, part := range robots {
		if !isRobot("Mozilla/5.0 (" + part + ")") {
			t.Errorf("%q is in vain", part)
		}
	}
	if isRobot("Mozilla/5.0" + strings.Repeat(" ", maxAgent) + "Googlebot") {
		t.Error("what stands far behind is read")
	}
}
