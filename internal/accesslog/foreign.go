package accesslog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

const (
	maxSamples = 8       // lines of a log that are kept while none could be read
	maxSample  = 1 << 10 // bytes of each
)

// isUnread reports whether the result of a line says that it shows no request.
func isUnread(result string) bool {
	return result == ErrSyntax.Error() || result == ErrNoRequest.Error()
}

// foreign are formats that are not read, by what a line of them has; the first that matches counts. For each, there is
// a format of the same program that is read, or the log of another one.
var foreign = []struct {
	name   string
	line   *regexp.Regexp
	remedy string
}{
	{
		"text in UTF-16", regexp.MustCompile(`^(\xff\xfe|\xfe\xff)|\x00`),
		"write it in UTF-8, as PowerShell does with 'Out-File -Encoding utf8'",
	},
	{
		// https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
		"a log of Amazon CloudFront", regexp.MustCompile(`\bx-edge-location\b|^\d{4}-\d\d-\d\d\t\d\d:\d\d:\d\d\t[A-Z]{3}\d`),
		"convert its lines to 'combined', or name the log of the server behind it",
	},
	{
		"a log of IIS", regexp.MustCompile(`^#Software: Microsoft`),
		"choose the format NCSA in the logging settings of the site in IIS",
	},
	{
		// https://www.w3.org/TR/WD-logfile
		"the W3C extended log format", regexp.MustCompile(`^#(Version|Fields|Software|Date|Start-Date|Remark):`),
		"let the server write 'common' or 'combined'",
	},
	{
		// https://docs.haproxy.org/3.2/configuration.html#8.2.3
		"a log of HAProxy", regexp.MustCompile(`\bhaproxy\[\d+\]: |^\S+:\d+ \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d+\] `),
		"set 'option httplog clf' and have syslog write the message alone, or name the log of the server behind it",
	},
	{
		// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
		"a log of an AWS load balancer", regexp.MustCompile(`^(([a-z]+[0-9]? )?\d{4}-\d\d-\d\dT[\d:.]+Z) \S+ \S+:\d+ (\S+:\d+|-) `),
		"name the log of the server behind it",
	},
	{
		// https://docs.docker.com/engine/logging/drivers/json-file/
		"a log of Docker", regexp.MustCompile(`"stream"\s*:\s*"std(out|err)"`),
		"let the server write its access log to a file",
	},
	{
		// https://kubernetes.io/docs/concepts/cluster-administration/logging/
		"a log of Kubernetes", regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ std(out|err) [FP] `),
		"let the server write its access log to a file",
	},
	{
		// RFC 3164 with and without its priority, RFC 5424, and rsyslog's RSYSLOG_FileFormat
		"lines of syslog", regexp.MustCompile(`^<\d{1,3}>|^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ \S+: |^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d) \S+ \S+: `),
		"let the server write the file itself, or have syslog write the message alone",
	},
	{
		// https://doc.traefik.io/traefik/observability/access-logs/
		"JSON of Traefik", regexp.MustCompile(`"(DownstreamStatus|RequestPath|ServiceAddr)"\s*:`),
		"set 'format: common' below 'accessLog'",
	},
	{
		// https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format
		"JSON of nginx", regexp.MustCompile(`^{.*"(remote_addr|time_local|time_iso8601|request_uri|body_bytes_sent|request_time|http_user_agent)"\s*:`),
		"add a second 'access_log' in the format 'combined' to nginx, and name that file",
	},
	{
		"Caddy's 'console' format", regexp.MustCompile(`^\S+(\t| )\S*(\t|INFO|ERROR).*http\.log\.access`),
		"set 'format json' in Caddy's log",
	},
}

// caddyJSON matches lines of any log of Caddy, also where its encoder renames a few of the keys.
var caddyJSON = regexp.MustCompile(`"logger"\s*:|"level"\s*:.*"msg"\s*:`)

// hint says what the lines look like of a log of which none could be read, and what to do; "": nothing is wrong
// with them as far as they tell. format is that of the [Parser] which has read them.
func hint(lines []string, format string) string {
	if len(lines) == 0 {
		return ""
	}
	for _, f := range foreign {
		if slices.ContainsFunc(lines, f.line.MatchString) {
			return fmt.Sprintf("it looks like %s: %s", f.name, f.remedy)
		}
	}
	for _, other := range formats {
		if other != format && other != "json" && reads(lines, other) { // auto reads json as well
			return fmt.Sprintf("its lines are not in the format that is set: set 'format %s'", other)
		}
	}
	isCaddys := func(line string) bool {
		return caddyJSON.MatchString(line) && new(Parser).Parse([]byte(line), new(visits.Visit)) == ErrNoRequest
	}
	if slices.ContainsFunc(lines, isCaddys) {
		return "" // another log of Caddy's, or no request has been logged yet
	}
	if strings.HasPrefix(lines[0], "{") {
		return "it is JSON, but not as Caddy writes it: let the server write 'common' or 'combined'"
	}
	return "it is in no format that can be read: these are Caddy's JSON, 'common' and 'combined'"
}

// enoughNameless is the number of visits without a User-Agent from which on agentHint judges.
const enoughNameless = 100

// agentHint is the hint on a log of which no line has a User-Agent, by its lines by result.
func agentHint(lines map[string]int) string {
	others := lines[visits.Robot] + lines[Counts] + lines[outside] + lines[tooOld]
	if lines[nameless] < enoughNameless || others > 0 {
		return ""
	}
	return "no line has a User-Agent: let the log's format have it, and no filter drop, replace or hash it"
}

// reads reports whether a line can be read in a format.
func reads(lines []string, format string) bool {
	p := Parser{format: format}
	return slices.ContainsFunc(lines, func(line string) bool {
		return p.Parse([]byte(line), new(visits.Visit)) == nil
	})
}
