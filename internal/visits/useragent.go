package visits

import (
	"slices"
	"strings"
)

// maxAgent is how many bytes of a User-Agent are looked at.
const maxAgent = 512

// robots are what the User-Agents of robots contain that claim to be a browser. Most have an address to ask about them.
var robots = []string{
	"http", "@", "bot", "crawl", "spider", "archive", "preview", "monitor", "synthetic", "feed", "google-", "googleother", "pingdom",
	"pagespeed", "lighthouse", "headless", "phantomjs", "selenium", "puppeteer", "playwright", "powershell",
}

// isRobot reports whether the User-Agent is not that of a browser, or that of a client that only claims to be one. A mistake
// does little harm: a visited page is fetched before it is listed.
func (v *Visit) isRobot() bool {
	if v.UserAgent == "" {
		return false
	}
	agent := strings.ToLower(v.UserAgent[:min(len(v.UserAgent), maxAgent)])
	isBrowser := strings.HasPrefix(agent, "mozilla/") || strings.HasPrefix(agent, "opera/")
	names := func(part string) bool { return strings.Contains(agent, part) }
	return !isBrowser || slices.ContainsFunc(robots, names)
}
