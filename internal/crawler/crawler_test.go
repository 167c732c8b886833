package crawler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	chrome    = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"
	googlebot = "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
)

var known = []struct {
	agent string
	want  Family
}{
	{"", None},
	{" \t", None},
	{"-", None},
	{"\n", Unknown},
	{"x", Unknown},
	{"MyApp/1.0", Unknown},
	{"\xff\xfe\x00", Unknown},
	{chrome, Browser},
	{"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0", Browser},
	{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1", Browser},
	{"Mozilla/5.0 (Linux; Android 10; Cubot Note 20) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36", Browser},
	{"Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18", Browser},

	{"curl/8.5.0", Tool},
	{"Wget/1.21.4", Tool},
	{"python-requests/2.31.0", Tool},
	{"Go-http-client/2.0", Tool},
	{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/141.0.0.0 Safari/537.36", Tool},
	{"curl/8.5.0 (my crawler)", OtherBot},
	{"Twitterbot/1.0", OtherBot},
	{"bot", OtherBot},
	{"a cubot bot", OtherBot},
	{"caddy-sitemap (+https://github.com/seed3295b519/caddy-sitemap; bot)", OtherBot},
	{"Feedly/1.0 (+http://www.feedly.com/fetcher.html)", OtherBot},

	{googlebot, Googlebot},
	{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", Googlebot},
	{"Googlebot/2.1 (+http://www.google.com/bot.html)", Googlebot},
	{"Googlebot-Image/1.0", Googlebot},
	{"Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)", GoogleOther},
	{"GoogleOther", GoogleOther},
	{"AdsBot-Google (+http://www.google.com/adsbot.html)", GoogleOther},
	{"Mediapartners-Google", GoogleOther},
	{"APIs-Google (+https://developers.google.com/webmasters/APIs-Google.html)", GoogleOther},
	{"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", Bingbot},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/141.0.0.0 Safari/537.36", Bingbot},
	{"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", Bingbot},
	{"Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", YandexBot},
	{"Mozilla/5.0 (compatible; YandexWebmaster/2.0; +http://yandex.com/bots)", YandexBot},
	{"Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)", Baiduspider},
	{"DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)", DuckDuckBot},
	{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)", Applebot},
	{"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)", Slurp},
	{"Mozilla/5.0 (compatible; SeznamBot/4.0; +http://napoveda.seznam.cz/seznambot-intro/)", SeznamBot},
	{"Mozilla/5.0 (compatible; Yeti/1.1; +https://naver.me/spd)", Yeti},
	{"Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)", Sogou},
	{"Mozilla/5.0 (compatible; Qwantbot/1.0; +https://help.qwant.com/bot/)", Qwantbot},
	{"Mozilla/5.0 (compatible; MojeekBot/0.11; +https://www.mojeek.com/bot.html)", MojeekBot},
	{"Mozilla/5.0 (Linux; Android 7.0;) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; PetalBot;+https://webmaster.petalsearch.com/site/petalbot)", PetalBot},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot) Chrome/119.0.6045.214 Safari/537.36", Amazonbot},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", GPTBot},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; OAI-SearchBot/1.0; +https://openai.com/searchbot", OAISearchBot},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot", OAISearchBot},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", ClaudeBot},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)", PerplexityBot},
	{"meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)", Meta},
	{"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", Meta},
	{"Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)", Bytespider},
	{"CCBot/2.0 (https://commoncrawl.org/faq/)", CCBot},
	{"Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)", ArchiveOrg},
	{"ia_archiver", ArchiveOrg},
	{"Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", AhrefsBot},
	{"Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)", SemrushBot},
	{"Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)", MJ12bot},
	{"Mozilla/5.0 (compatible; DotBot/1.2; +https://opensiteexplorer.org/dotbot; help@moz.com)", DotBot},
	{"Screaming Frog SEO Spider/19.0", ScreamingFrog},
	{"Googlebot and bingbot", Googlebot},
	{"bingbot and Googlebot", Bingbot},
}

func TestOf(t *testing.T) {
	seen := make(map[Family]bool)
	for _, test := range known {
		seen[test.want] = true
		for _, agent := range []string{test.agent, strings.ToUpper(test.agent), strings.ToLower(test.agent)} {
			if got := Of(agent); test.want != Unknown && got != test.want {
				t.Errorf("%s: got %s, want %s", agent, got, test.want)
			}
		}
		if got := Of(test.agent); got != test.want {
			t.Errorf("%q: got %s, want %s", test.agent, got, test.want)
		}
	}
	names := make(map[string]bool)
	for f := range Family(Families) {
		if f.String() == "" || names[f.String()] || !seen[f] {
			t.Errorf("family %d: called %q, tested %t", f, f, seen[f])
		}
		names[f.String()] = true
		if f.IsRobot() != (f != None && f != Unknown && f != Browser) {
			t.Errorf("%s: a robot: %t", f, f.IsRobot())
		}
	}
	if got := Family(Families).String(); got != "" {
		t.Errorf("got %q for no family", got)
	}
}

// TestLong: what comes late is not looked at.
func TestLong(t *testing.T) {
	const name = " Googlebot"
	for _, test := range []struct {
		before int
		want   Family
	}{
		{Longest - len(name), Googlebot},
		{Longest - len(name) + 1, Unknown},
		{1 << 20, Unknown},
	} {
		if got := Of(strings.Repeat("x", test.before) + name + strings.Repeat("y", 1<<20)); got != test.want {
			t.Errorf("behind %d bytes: got %s, want %s", test.before, got, test.want)
		}
	}
}

func TestOfAllocates(t *testing.T) {
	for _, agent := range []string{"", chrome, googlebot, strings.Repeat("googlebo\n\xff", 1<<17)} {
		if got := testing.AllocsPerRun(100, func() { Of(agent) }); got != 0 {
			t.Errorf("%.20q: got %v allocations, want none", agent, got)
		}
	}
}

// TestParts looks for names at every place of strings, and for what is almost one.
func TestParts(t *testing.T) {
	var texts []string
	for _, kind := range partsOfNames {
		texts = append(texts, kind.texts...)
	}
	for _, text := range texts {
		if text != strings.ToLower(text) {
			t.Errorf("%q is not in lower case", text)
		}
		for _, s := range []string{text, "x" + text, text + "x", "mozilla/5.0 (" + text + ") x", "x" + text[1:], "x" + text[:len(text)-1] + "\x00"} {
			want := slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ReplaceAll(s, "cubot", ""), text) })
			begins := slices.ContainsFunc(beginnings, func(k named) bool {
				return slices.ContainsFunc(k.texts, func(text string) bool { return strings.HasPrefix(s, text) })
			})
			if got := Of(s).IsRobot(); got != want && !begins {
				t.Errorf("%q: got %t, want %t", s, got, want)
			}
		}
	}
}

func TestBeginnings(t *testing.T) {
	for _, kind := range beginnings {
		for _, text := range kind.texts {
			if got := Of(text); got < kind.family {
				t.Errorf("%q: got %s, want %s", text, got, kind.family)
			}
		}
	}
	if got := Of("(java) curl"); got != Unknown {
		t.Errorf("elsewhere: got %s", got)
	}
}

func FuzzOf(f *testing.F) {
	for _, test := range known {
		f.Add(test.agent)
	}
	f.Add("\n\r\x00Googlebot\xff")
	f.Add(strings.Repeat("yandexm", 100))
	f.Fuzz(func(t *testing.T, agent string) {
		got := Of(agent)
		if int(got) >= Families || got.String() == "" {
			t.Errorf("%q: got family %d", agent, got)
		}
		if (got == None) != (strings.Trim(agent[:min(len(agent), Longest)], " \t-") == "") {
			t.Errorf("%q: got %s", agent, got)
		}
		for _, other := range []string{changeCase(agent, 'a', 'z'), changeCase(agent, 'A', 'Z')} {
			if of := Of(other); of != got {
				t.Errorf("%q: got %s, want %s as of %q", other, of, got, agent)
			}
		}
		if len(agent) >= Longest {
			if of := Of(agent + " Googlebot bot curl/"); of != got {
				t.Errorf("%q: got %s for more of it, want %s", agent, of, got)
			}
		}
	})
}

// changeCase changes the case of the letters of ASCII between two.
func changeCase(s string, from, to byte) string {
	changed := []byte(s)
	for i, c := range changed {
		if from <= c && c <= to {
			changed[i] = c ^ 0x20
		}
	}
	return string(changed)
}

func BenchmarkOf(b *testing.B) {
	for _, test := range []struct{ name, agent string }{
		{"browser", chrome}, {"googlebot", googlebot}, {"curl", "curl/8.5.0"}, {"none", ""}, {"long", strings.Repeat("yandexm ", 1<<10)},
	} {
		b.Run(fmt.Sprintf("%s-%d", test.name, len(test.agent)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Of(test.agent)
			}
		})
	}
}
