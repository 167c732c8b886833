package accesslog

import (
	"fmt"
	"regexp"
	"slices"

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

// caddyJSON matches lines of any log of Caddy, also where its encoder renames a few of the keys.
var caddyJSON = regexp.MustCompile(`"logger"\s*:|"level"\s*:.*"ts"\s*:.*"msg"\s*:`)

// hint says what to do about the lines of a log of which none could be read; "": nothing is wrong with them. format is that of
// the [Parser] which has read them.
func hint(lines []string, format string) string {
	if len(lines) == 0 {
		return ""
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
	return "it is in no format that can be read: let the server write Caddy's JSON, 'common' or 'combined'"
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
