package visits

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWrites: which lines of a log tell that somebody who is signed in may have saved something.
func TestWrites(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	line := func(at time.Time, method, headers string, status int) string {
		return fmt.Sprintf(`{"ts":%d.25,"request":{"method":%q,"host":"named.example","uri":"/admin?x","headers":{%s}},`+
			`"status":%d,"resp_headers":{"Location":["/a"]}}`, at.Unix(), method, headers, status)
	}
	common := func(user, method string) string {
		return `192.0.2.1 - ` + user + ` [30/Nov/2026:11:59:00 +0000] "` + method + ` /admin?x HTTP/1.1" 302 0 "-" "-"`
	}
	const cookie = `"Cookie":["REDACTED"]`
	ago := now.Add(-time.Minute)
	for name, test := range map[string]struct{ line, want string }{
		"a cookie":          {line(ago, "POST", cookie, 302), "POST /admin?x 302 /a"},
		"credentials":       {line(ago, "PUT", `"Authorization":["REDACTED"]`, 200), "PUT /admin?x 200 /a"},
		"another method":    {line(ago, "POST", cookie+`,"X-Http-Method-Override":["DELETE"]`, 200), "DELETE /admin?x 200 /a"},
		"it reads":          {line(ago, "POST", cookie+`,"X-Http-Method-Override":["GET"]`, 200), ""},
		"nobody":            {line(ago, "POST", `"Accept":["*/*"]`, 302), ""},
		"a page":            {line(ago, "GET", cookie, 302), ""},
		"it fails":          {line(ago, "POST", cookie, 403), ""},
		"no response":       {line(ago, "POST", cookie, 0), ""},
		"long ago":          {line(now.Add(-11*time.Minute), "POST", cookie, 302), ""},
		"a user":            {common("editor", "POST"), "POST /admin?x 302 "},
		"nobody, as common": {common("-", "POST"), ""},
	} {
		r := newReading(t, &site{host: "named.example"})
		r.clock = now
		r.add(test.line)
		r.poll()
		want := ""
		if test.want != "" {
			want = fmt.Sprint(test.want, " ", ago.Unix()+1)
		}
		if got := strings.Join(r.sites[0].writes, ", "); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
