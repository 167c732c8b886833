package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Logged waits for a log line that holds all the words, and returns it.
func (s *Server) Logged(words ...string) string {
	s.T.Helper()
	var line string
	s.Eventually(func() bool {
		lines := s.LogLines(words...)
		if len(lines) == 0 {
			return false
		}
		line = lines[0]
		return true
	}, func() string { return fmt.Sprintf("no log line with %q:\n%s", words, s.SitemapLog()) })
	return line
}

// LogLines are the log lines so far that hold all the words.
func (s *Server) LogLines(words ...string) []string {
	s.T.Helper()
	data, err := os.ReadFile(s.Log)
	Must(s.T, err)
	var found []string
	for line := range strings.Lines(string(data)) {
		// The last line may still be being written.
		if strings.HasSuffix(line, "\n") && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, s.Expand(word)) }) {
			found = append(found, line)
		}
	}
	return found
}

// SitemapLog is the last of what the project itself has logged, for a failure's
// message.
func (s *Server) SitemapLog() string {
	lines := s.LogLines(`"logger":"http.handlers.sitemap`)
	return strings.Join(lines[max(len(lines)-20, 0):], "")
}

// RefreshedAgain waits until sites were refreshed once more from what there is now, when they
// are due: where nobody asks for a refresh, some changes are held back.
func (s *Server) RefreshedAgain(origins ...string) {
	s.T.Helper()
	ended := func(origin string) int {
		return len(s.LogLines(Refreshed, `"site":"`+origin+`"`))
	}
	before := make(map[string]int)
	for _, origin := range origins {
		before[origin] = ended(origin)
	}
	for _, origin := range origins {
		s.Eventually(func() bool { return ended(origin) >= before[origin]+2 }, s.SitemapLog)
	}
}

// RefreshLine is a log line of a refresh.
type RefreshLine struct {
	Pages   int
	LeftOut map[string]int `json:"left_out"`
}

// RefreshLines are those of the refreshes that have ended so far, but for those held back.
func (s *Server) RefreshLines() []RefreshLine {
	s.T.Helper()
	var lines []RefreshLine
	for _, line := range s.LogLines(Refreshed) {
		var r RefreshLine
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.T.Fatal(err)
		}
		lines = append(lines, r)
	}
	return lines
}

// WantLeftOut waits until the last refresh has left out just these.
func (s *Server) WantLeftOut(want map[string]int) {
	s.T.Helper()
	var got map[string]int
	s.Eventually(func() bool {
		lines := s.RefreshLines()
		if len(lines) > 0 {
			got = lines[len(lines)-1].LeftOut
		}
		return maps.Equal(got, want)
	}, func() string { return fmt.Sprintf("left out are %v, want %v\n%s", got, want, s.SitemapLog()) })
}

// Quietly refreshes all sites until so many more refreshes have changed nothing.
func (s *Server) Quietly(more int) {
	s.T.Helper()
	count := func() int { return len(s.LogLines(Unchanged)) }
	from := count()
	s.Eventually(func() bool {
		s.Refreshes(1)
		return count() >= from+more
	}, func() string { return "it goes on changing\n" + s.SitemapLog() })
}

// Crawled waits until all sites list what their first crawls find, and their refreshes have ended: what takes over a second
// is published in parts.
func (s *Server) Crawled() {
	s.T.Helper()
	s.Eventually(func() bool {
		status := s.Refreshes(1)
		return !strings.Contains(status, `"partial":true`) && !strings.Contains(status, `"pending":`)
	}, s.SitemapLog)
}

// Refreshes refreshes all sites so many times, each time after the one before, and returns their status in JSON: by the
// admin endpoint if there is one, which may be a child's, else by its handler in this process.
func (s *Server) Refreshes(n int) (status string) {
	s.T.Helper()
	module, err := caddy.GetModule("admin.api.sitemap")
	Must(s.T, err)
	for range n {
		if s.Admin != "" {
			r := s.Do(http.MethodPost, "http://localhost:{admin}/sitemap/refresh")
			if status = r.Text; r.StatusCode != http.StatusOK {
				s.T.Fatalf("refreshing: status %d, %s\n%s", r.StatusCode, status, s.SitemapLog())
			}
			continue
		}
		for _, route := range module.New().(caddy.AdminRouter).Routes() {
			if route.Pattern != "POST /sitemap/refresh" {
				continue
			}
			ctx, cancel := context.WithTimeout(s.T.Context(), Patience)
			w := httptest.NewRecorder()
			err := route.Handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil))
			cancel()
			if err != nil {
				s.T.Fatalf("refreshing: %v\n%s", err, s.SitemapLog())
			}
			status = w.Body.String()
		}
	}
	return status
}
