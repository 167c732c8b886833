package visits

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

// TestForeign reads lines of other programs as their documentation shows them, and a few of ours: none is read as a
// visit, and the hint says what can be read.
func TestForeign(t *testing.T) {
	const inNone = "its lines are in no format that can be read"
	like := func(name string) string {
		return "its lines look like those of " + name + ", which cannot be read: see https://"
	}
	const common = `192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326`
	utf16 := func(order unicode.Endianness) string {
		s, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(common + "\r\n")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, test := range []struct{ name, format, lines, want string }{
		{"UTF-16", "", utf16(unicode.LittleEndian), like("UTF-16")},
		{"CloudFront", "", "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query\n" +
			"2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\t-\tMozilla/5.0%20(Windows%20NT%2010.0)\t-", like("the W3C extended format")},
		{"IIS", "", "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2019-12-04 17:42:15\n#Fields: date time c-ip cs-username s-ip s-port cs-method cs-uri-stem cs-uri-query sc-status cs(User-Agent)\n" +
			"2019-12-04 17:42:15 172.22.255.255 - 172.30.255.255 80 GET /images/picture.jpg - 200 Mozilla/4.0+(compatible;MSIE+5.5;+Windows+2000+Server)", like("IIS")},
		{"W3C extended", "", "#Version: 1.0\n#Date: 12-Jan-1996 00:00:00\n#Fields: time cs-method cs-uri\n00:34:23 GET /foo/bar.html", like("the W3C extended format")},
		{"HAProxy by syslog", "", `Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"`, like("HAProxy")},
		{"ALB", "", `http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - - arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`, like("a load balancer of AWS")},
		{"syslog", "", `Nov 21 10:00:00 web1 nginx: ` + common, like("syslog, or with another prefix")},
		{"Docker", "", `{"log":"Log line is here\n","stream":"stdout","time":"2019-01-01T11:11:11.111111111Z"}`, like("Docker")},
		{"Kubernetes", "", `2016-10-06T00:17:09.669794202Z stdout F ` + common, like("Kubernetes")},
		{"Traefik", "", `{"ClientAddr":"192.0.2.1:51234","ClientHost":"192.0.2.1","DownstreamContentSize":12,"DownstreamStatus":200,"Duration":312000,"RequestHost":"example.com","RequestMethod":"GET","RequestPath":"/a","RequestProtocol":"HTTP/2.0","StartUTC":"2024-05-07T00:00:16.574522Z","level":"info","msg":"","time":"2024-05-07T00:00:16Z"}`, like("JSON of Traefik")},
		{"nginx", "", `{"time_iso8601":"2024-05-07T00:00:16+00:00","remote_addr":"192.0.2.1","server_protocol":"HTTP/1.1","status": "200","request_method":"GET","request_uri":"/a","http_user_agent":"Mozilla/5.0","host":"example.com"}`, like("JSON of nginx")},
		{"other JSON", "", `{"authority":"example.com","method":"GET","path":"/a","response_code":200}`, like("JSON of another program")},
		{"Caddy's console", "", "2024/05/07 00:00:16.574\t\x1b[34mINFO\x1b[0m\thttp.log.access\thandled request\t" + `{"request": {"remote_ip": "192.0.2.1", "method": "GET", "uri": "/a"}, "status": 200}`, like("Caddy's console format")},
		{"another log of Caddy", "", `{"level":"info","ts":1,"logger":"tls","msg":"renewed"}`, ""},
		{"nothing", "", "", ""},
		{"prose", "", "hello\nworld", inNone},
		{"common as JSON", "json", common, "its lines are not in the format that is set: set 'format auto'"},
		{"JSON as common", "common", seenJSON(t), "its lines are not in the format that is set: set 'format auto'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newReading(t, &site{host: "example.com"})
			r.Format = test.format
			r.add(test.lines)
			var got Log // of an empty log, nothing is known
			for _, log := range r.poll() {
				got = log
			}
			for result := range got.Lines {
				if result != unread && result != noRequest {
					t.Errorf("got %q", result)
				}
			}
			if !strings.HasPrefix(got.Hint, test.want) || test.want == "" && got.Hint != "" {
				t.Errorf("got %q, want %q", got.Hint, test.want)
			}
			if encoded, err := json.Marshal(got); err != nil || strings.Contains(string(encoded), "192.0.2") {
				t.Errorf("it shows a visitor's address: %s, %v", encoded, err)
			}
			// From the first visit on, there is nothing to say.
			r.Format = ""
			r.add(seenAt(r.clock, "example.com", "/a"))
			if got := r.poll()[0]; got.Hint != "" {
				t.Errorf("with a visit: got %+v", got)
			}
		})
	}
}

// TestAgentHint: a hint says that no line has the User-Agent of a browser, once there are enough of them.
func TestAgentHint(t *testing.T) {
	for _, test := range []struct {
		lines map[string]int
		hints bool
	}{
		{map[string]int{robot: 100, otherHost: 5, "not HTML": 7}, true},
		{map[string]int{robot: 100 - 1}, false},
		{map[string]int{robot: 100, Counts: 1}, false},
		{map[string]int{robot: 100, tooOld: 1}, false},
	} {
		if got := agentHint(test.lines); (got != "") != test.hints {
			t.Errorf("%v: got %q", test.lines, got)
		}
	}
}

// seenJSON is a line of Caddy's own log.
func seenJSON(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/caddy.log")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
