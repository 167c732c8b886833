package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// What the logs tell of: a site with its assets, and hosts beside it on the same server.
const (
	loggedHost   = "www.example.com"
	loggedPages  = 50_000
	loggedAssets = 5_000
	loggedAgents = 3_000
	lineSize     = 16 << 10 // more than any line has
)

// firstLogged is when the logs begin.
var firstLogged = time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)

// logKind is what the lines of a log are like.
type logKind struct {
	name, version string
	line          func(dst []byte, v *logVisit, r *rand.Rand) []byte
}

var (
	caddyLog    = logKind{"caddy", "3", appendCaddy}
	combinedLog = logKind{"combined", "3", appendCombined}
)

// accessLog makes an access log of so many megabytes, the same every time, unless an
// earlier run did.
func (b *bench) accessLog(ctx context.Context, kind logKind, megabytes int) (string, error) {
	name := b.path(fmt.Sprintf("%s-%d.log", kind.name, megabytes))
	made := name + ".made"
	if version, err := os.ReadFile(made); err == nil && string(version) == kind.version {
		return name, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	b.say("making %s", name)
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	visits := newLogVisits()
	line := make([]byte, 0, lineSize)
	for size := 0; size < megabytes*1e6; size += len(line) {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		line = append(kind.line(line[:0], visits.next(), visits.random), '\n')
		if _, err := w.Write(line); err != nil {
			return "", err
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return "", err
	}
	return name, os.WriteFile(made, []byte(kind.version), 0o644)
}

// logVisit is what a line tells of.
type logVisit struct {
	at                                time.Time
	client, method, host, uri, agent  string
	referer, contentType, etag        string
	status, size                      int
	isChromium, isRobot, isAsset, tls bool
	modified                          time.Time
}

// logVisits makes visits up.
type logVisits struct {
	random        *rand.Rand
	popular       *rand.Zipf
	pages, assets []string
	agents        []agent
	now           time.Time
	v             logVisit
}

type agent struct {
	name                string
	isChromium, isRobot bool
}

func newLogVisits() *logVisits {
	r := rand.New(rand.NewPCG(4, 4))
	g := &logVisits{random: r, now: firstLogged, popular: rand.NewZipf(r, 1.1, 8, loggedPages-1)}
	for i := range loggedPages {
		g.pages = append(g.pages, loggedPath(r, i))
	}
	for i := range loggedAssets {
		extension := []string{"js", "css", "png", "jpg", "webp", "svg", "woff2"}[i%7]
		g.assets = append(g.assets, fmt.Sprintf("/assets/%s-%08x.%s", word(r), r.Uint32(), extension))
	}
	for i := range loggedAgents {
		g.agents = append(g.agents, loggedAgent(r, i))
	}
	return g
}

var loggedWords = []string{
	"winter", "summer", "kitchen", "garden", "music", "river", "market", "bridge", "island", "museum", "coffee", "railway",
	"harbour", "library", "mountain", "theatre", "a", "the", "of", "in", "new", "old", "how-to", "history",
}

func word(r *rand.Rand) string { return loggedWords[r.IntN(len(loggedWords))] }

func loggedPath(r *rand.Rand, i int) string {
	section := []string{"blog", "products", "docs", "news", "people", "categories"}[r.IntN(6)]
	end := []string{"", "", ".html", "/"}[r.IntN(4)]
	if i == 0 {
		return "/"
	}
	return fmt.Sprintf("/%s/%d/%s-%s-%s-%x%s", section, 2010+r.IntN(16), word(r), word(r), word(r), i, end)
}

func loggedAgent(r *rand.Rand, i int) agent {
	major := 100 + r.IntN(40)
	system := []string{"Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64", "Linux; Android 10; K"}[r.IntN(4)]
	switch i % 10 {
	case 0, 1:
		name := []string{"Googlebot/2.1; +http://www.google.com/bot.html", "bingbot/2.0; +http://www.bing.com/bingbot.htm", "AhrefsBot/7.0; +http://ahrefs.com/robot/"}[r.IntN(3)]
		return agent{fmt.Sprintf("Mozilla/5.0 (compatible; %s) rev/%d", name, i), false, true}
	case 2, 3, 4:
		return agent{fmt.Sprintf("Mozilla/5.0 (iPhone; CPU iPhone OS %d_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/%d.%d Mobile/15E%d Safari/604.1", 14+r.IntN(5), r.IntN(8), 14+r.IntN(5), r.IntN(8), 100+i), false, false}
	case 5, 6:
		return agent{fmt.Sprintf("Mozilla/5.0 (%s; rv:%d.0) Gecko/20100101 Firefox/%d.%d", system, major, major, i), false, false}
	}
	return agent{fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.%d.%d Safari/537.36", system, major, 1000+i, r.IntN(200)), true, false}
}

func (g *logVisits) next() *logVisit {
	r, v := g.random, &g.v
	g.now = g.now.Add(time.Duration(r.IntN(int(2 * time.Second))))
	a := g.agents[int(float64(loggedAgents)*math.Pow(r.Float64(), 3))]
	*v = logVisit{at: g.now, method: "GET", host: loggedHost, agent: a.name, isChromium: a.isChromium, isRobot: a.isRobot, tls: true}
	v.client = fmt.Sprintf("%d.%d.%d.%d", 20+r.IntN(180), r.IntN(8), r.IntN(256), r.IntN(256))
	if r.IntN(7) == 0 {
		v.client = fmt.Sprintf("2001:db8:%x:%x::%x", r.IntN(1000), r.IntN(1000), 1+r.IntN(60000))
	}
	v.modified = firstLogged.Add(-time.Duration(r.IntN(500*24)) * time.Hour)
	v.etag = strconv.FormatUint(r.Uint64()>>4, 36)
	v.referer = "https://" + loggedHost + g.pages[g.popular.Uint64()]
	g.target(v)
	g.answer(v)
	return v
}

// target is what a visit is for.
func (g *logVisits) target(v *logVisit) {
	r := g.random
	switch n := r.IntN(100); {
	case n < 3:
		v.host = "example.com"
	case n < 8:
		v.host = "shop.example.net"
	}
	v.uri = g.pages[g.popular.Uint64()]
	v.contentType = "text/html; charset=utf-8"
	switch n := r.IntN(100); {
	case n < 45 && !v.isRobot:
		v.uri, v.isAsset = g.assets[r.IntN(loggedAssets)], true
		v.contentType = []string{"text/javascript; charset=utf-8", "text/css; charset=utf-8", "image/png", "image/jpeg", "image/webp", "image/svg+xml", "font/woff2"}[r.IntN(7)]
	case n < 52:
		v.uri += fmt.Sprintf("?utm_source=%s&utm_medium=email&id=%d", word(r), r.IntN(1000))
	case n < 56:
		v.uri, v.contentType = fmt.Sprintf("/api/v2/items?page=%d&sort=%s", r.IntN(100), word(r)), "application/json"
	}
	switch n := r.IntN(100); {
	case n < 3:
		v.method = "POST"
	case n < 4:
		v.method = "HEAD"
	}
}

// answer is what it was answered.
func (g *logVisits) answer(v *logVisit) {
	v.status, v.size = 200, 500+g.random.IntN(60_000)
	switch n := g.random.IntN(100); {
	case n < 8:
		v.status, v.size = 304, 0
	case n < 11:
		v.status, v.size = 301, 0
	case n < 17:
		v.status, v.size = 404, 0
		v.uri = "/" + word(g.random) + "-" + v.etag[:6] + ".php"
	case n < 18:
		v.status, v.size = 500, 0
	}
}

// header is a name and a value, as JSON has it between quotes.
type header struct{ name, value string }

// appendCaddy appends a line as Caddy 2.11 writes it: headers are in no order.
func appendCaddy(dst []byte, v *logVisit, r *rand.Rand) []byte {
	ts := strconv.FormatFloat(float64(v.at.UnixNano())/1e9, 'f', -1, 64)
	dst = fmt.Appendf(dst, `{"level":"info","ts":%s,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"%s","remote_port":"%d","client_ip":"%s","proto":"HTTP/2.0","method":"%s","host":"%s","uri":"%s","headers":`,
		ts, v.client, 1024+r.IntN(60_000), v.client, v.method, v.host, v.uri)
	dst = appendHeaders(dst, r, v.requestHeaders(r))
	dst = fmt.Appendf(dst, `,"tls":{"resumed":%t,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"%s","ech":false}},"bytes_read":0,"user_id":"","duration":%.9f,"size":%d,"status":%d,"resp_headers":`,
		r.IntN(2) == 0, v.host, r.Float64()/10, v.size, v.status)
	dst = appendHeaders(dst, r, v.responseHeaders())
	return append(dst, '}')
}

func (v *logVisit) requestHeaders(r *rand.Rand) []header {
	if v.isRobot {
		return []header{{"User-Agent", v.agent}, {"Accept", "*/*"}, {"Accept-Encoding", "gzip, deflate, br"}, {"From", "robot(at)example.org"}}
	}
	destination, mode := "document", "navigate"
	accept := "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	if v.isAsset {
		destination, mode, accept = "script", "no-cors", "*/*"
	}
	headers := []header{
		{"User-Agent", v.agent}, {"Accept", accept}, {"Accept-Encoding", "gzip, deflate, br, zstd"}, {"Accept-Language", "en-GB,en;q=0.9"}, {"Referer", v.referer},
	}
	if v.isChromium {
		headers = append(headers, header{"Sec-Fetch-Dest", destination}, header{"Sec-Fetch-Mode", mode}, header{"Sec-Fetch-Site", "same-origin"}, header{"Sec-Ch-Ua", `\"Chromium\";v=\"132\", \"Not A(Brand\";v=\"99\"`}, header{"Sec-Ch-Ua-Mobile", "?0"}, header{"Sec-Ch-Ua-Platform", `\"Windows\"`})
	}
	if r.IntN(4) == 0 {
		headers = append(headers, header{"Cookie", "REDACTED"})
	}
	return headers
}

func (v *logVisit) responseHeaders() []header {
	headers := []header{{"Server", "Caddy"}, {"Alt-Svc", `h3=\":443\"; ma=2592000`}}
	if v.status != 200 && v.status != 304 {
		return headers
	}
	headers = append(headers, header{"Etag", `\"` + v.etag + `\"`}, header{"Vary", "Accept-Encoding"})
	if v.status == 304 {
		return headers
	}
	return append(headers, header{"Content-Type", v.contentType}, header{"Last-Modified", v.modified.Format("Mon, 02 Jan 2006 15:04:05 GMT")}, header{"Content-Length", strconv.Itoa(v.size)})
}

func appendHeaders(dst []byte, r *rand.Rand, headers []header) []byte {
	r.Shuffle(len(headers), func(i, j int) { headers[i], headers[j] = headers[j], headers[i] })
	dst = append(dst, '{')
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(append(append(dst, '"'), h.name...), `":["`...), h.value...), `"]`...)
	}
	return append(dst, '}')
}

func appendCombined(dst []byte, v *logVisit, _ *rand.Rand) []byte {
	return fmt.Appendf(dst, `%s - - [%s] "%s %s HTTP/2.0" %d %d "%s" "%s"`,
		v.client, v.at.Format("02/Jan/2006:15:04:05 -0700"), v.method, v.uri, v.status, v.size, v.referer, v.agent)
}
