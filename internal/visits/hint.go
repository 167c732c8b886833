package visits

import "strings"

// otherFormats has the page of what to do about them.
const otherFormats = "https://github.com/seed3295b519/caddy-sitemap/blob/main/docs/discovery.md#access-logs-and-traffic"

// foreign are formats that cannot be read, by what their lines have in them. The first that fits is the likeliest.
var foreign = []struct{ part, name string }{
	{"#Software: Microsoft", "IIS"},
	{"#Version:", "the W3C extended format"},
	{"\thttp.log.access", "Caddy's console format"},
	{`{"log":"`, "Docker"},
	{" stdout F ", "Kubernetes"},
	{`"RequestPath":`, "JSON of Traefik"},
	{`"remote_addr":`, "JSON of nginx"},
	{`{"`, "JSON of another program"},
	{"haproxy[", "HAProxy"},
	{" app/", "a load balancer of AWS"},
	{"\x00", "UTF-16"},
	{": ", "syslog, or with another prefix"},
}

// hint says what to do about a log whose first line that cannot be read is this one, while none of all shows a request.
func hint(line []byte) string {
	if _, problem := new(Reader).parse(line); problem == "" {
		return "its lines are not in the format that is set: set 'format auto'"
	}
	for _, f := range foreign {
		if strings.Contains(string(line), f.part) {
			return "its lines look like those of " + f.name + ", which cannot be read: see " + otherFormats
		}
	}
	return "its lines are in no format that can be read: see " + otherFormats
}

// agentHint is the hint on a log of which no line has the User-Agent of a browser, by its lines by result; "": there
// is one, or there are few visits.
func agentHint(lines map[string]int) string {
	if lines[robot] < 100 || lines[Counts]+lines[tooOld] > 0 {
		return ""
	}
	return "no line has the User-Agent of a browser: let the log's format have it, and no filter drop, replace or hash it: see " + otherFormats
}
