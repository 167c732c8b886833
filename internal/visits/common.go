package visits

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// quoted matches what is in quotes: a quote after a backslash is a part of it, unless that is itself after one.
const quoted = `[^"\\]*(?:\\.[^"\\]*)*`

// commonLine matches a line such as
//
//	192.0.2.1 - user [02/Jan/2006:15:04:05 -0700] "GET / HTTP/1.1" 200 1234 "referer" "user agent"
//
// which anything may follow. The Common Log Format has no referer and no User-Agent. A user's name may have spaces in it.
// The identity is hardly ever known, and must not be, to tell a host from prefixes of syslog and the like.
var commonLine = regexp.MustCompile(`^` +
	`(?:(?:-|([\w.-]+(?::\d+)?|\[[\w:.]+\](?::\d+)?)) )?` + // a virtual host
	`[\w.:%\[\]-]+(?:, ?[\w.:%\[\]-]+)* ` + // the client, or the addresses of an X-Forwarded-For
	`- ([^\[]*) \[([^\]]*)\] ` + // identity, user and time
	`"(` + quoted + `)" (\d{3}|-) (?:\d+|-)` + // request, status and size
	`(?: "` + quoted + `" "(` + quoted + `)")?(?: |$)`) // referer and User-Agent

// parseCommon reads a line in the Common Log Format, or in the combined one.
func parseCommon(line string) (v Visit, problem string) {
	m := commonLine.FindStringSubmatch(line)
	if m == nil {
		return v, unread
	}
	request := strings.Fields(m[4])
	if len(request) != 3 || !strings.HasPrefix(request[2], "HTTP/") {
		return v, noRequest
	}
	v = Visit{Method: request[0], Host: m[1], URI: request[1], User: isUser(m[2]), UserAgent: m[6]}
	v.Status, _ = strconv.Atoi(m[5]) // or "-"
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[3])
	if err == nil {
		v.Time = at.Unix()
	}
	// Proxies and content delivery networks log absolute URLs, whose host counts more than another one of the line.
	if u, err := origin.ParseURL(v.URI); err == nil {
		v.Host = u.Host
		v.URI = u.Path
	}
	return v, ""
}
