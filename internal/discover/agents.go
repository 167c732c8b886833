package discover

import (
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/crawler"
)

// isRobot remembers what [isAgentRobot] says. A User-Agent of "" is one that the log
// does not tell: the Common format has none, and what writes JSON may leave out headers,
// all or those that a request did not have. So it is anybody's. "-" is how a log tells
// that there was none, and always so in the Combined format: all browsers send one.
func (f *Filter) isRobot(agent string) bool {
	switch agent {
	case "":
		return false
	case "-":
		return true
	}
	if robot, ok := f.agents[agent]; ok {
		return robot
	}
	if len(agent) > maxAgent {
		return isAgentRobot(agent)
	}
	robot := isAgentRobot(agent)
	if f.agents == nil || len(f.agents) >= maxAgents {
		f.agents = make(map[string]bool)
	}
	f.agents[strings.Clone(agent)] = robot
	return robot
}

// isAgentRobot reports whether a User-Agent is that of no browser: of a crawler, of
// what shows previews of links, watches over sites or reads feeds, or of a library for
// HTTP.
func isAgentRobot(agent string) bool { return crawler.Of(agent).IsRobot() }
