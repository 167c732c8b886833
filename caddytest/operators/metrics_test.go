package operators

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// metricLabels are all metrics there are, with their labels.
var metricLabels = map[string][]string{
	"caddy_sitemap_fetches_total":                  {"answered_by", "result"},
	"caddy_sitemap_log_lines_total":                {"result"},
	"caddy_sitemap_pages":                          {"site"},
	"caddy_sitemap_pending_pages":                  {"site"},
	"caddy_sitemap_shards":                         {"site"},
	"caddy_sitemap_documents_bytes":                {"site"},
	"caddy_sitemap_last_refresh_duration_seconds":  {"site"},
	"caddy_sitemap_snapshot_age_seconds":           {"site"},
	"caddy_sitemap_left_out_pages":                 {"reason", "site"},
	"caddy_sitemap_sites":                          {"named_by", "result"},
	"caddy_sitemap_requests_total":                 {"crawler", "document", "result"},
	"caddy_sitemap_last_request_timestamp_seconds": {"crawler", "document"},
}

// families are the metrics of the module that an admin endpoint, or a handler, shows.
func (s *server) families(url string) map[string]*dto.MetricFamily {
	s.T.Helper()
	r := s.Get(url)
	if r.StatusCode != http.StatusOK {
		s.T.Fatalf("%s: status %d: %s", url, r.StatusCode, r.Text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(r.Text))
	if err != nil {
		s.T.Fatalf("%s: %v", url, err)
	}
	maps.DeleteFunc(all, func(name string, _ *dto.MetricFamily) bool { return !strings.HasPrefix(name, "caddy_sitemap_") })
	return all
}

// valueOf is a metric's value: of a histogram, how much was counted. Labels are pairs
// "name=value"; what several metrics have is added up.
func valueOf(families map[string]*dto.MetricFamily, name string, labels ...string) (value float64) {
	for _, m := range families["caddy_sitemap_"+name].GetMetric() {
		has := make(map[string]bool)
		for _, l := range m.GetLabel() {
			has[l.GetName()+"="+l.GetValue()] = true
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !has[l] }) {
			continue
		}
		value += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return value
}

// countersOf are all values that may only grow.
func countersOf(families map[string]*dto.MetricFamily) map[string]float64 {
	counters := make(map[string]float64)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				counters[key] = m.GetCounter().GetValue()
			case dto.MetricType_HISTOGRAM:
				counters[key] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return counters
}

func (s *server) wantGrown(before, after map[string]float64) {
	s.T.Helper()
	for name, value := range before {
		if after[name] < value {
			s.T.Errorf("%s: got %v after %v", name, after[name], value)
		}
	}
}

const measured = `{
	metrics
}

http://localhost:{port} {
	root * {dir}/a
	sitemap {
		refresh 1h
		files
		access_log {dir}/access.log
	}
	file_server
	metrics /metrics
}
`

const (
	googlebot = "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	logLine   = `{"ts":1795000000,"logger":"http.log.access","request":{"method":"GET","host":"localhost","uri":"/one.html","remote_ip":"192.0.2.7","headers":{"User-Agent":["Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"]}},"status":200,"resp_headers":{"Content-Type":["text/html"]}}` + "\n"
)

func TestMetrics(t *testing.T) {
	s := startOne(t, measured)
	s.Write(map[string]string{
		"a/private.html": harness.Whole(`<meta name="robots" content="noindex">`, "x"),
		"access.log":     logLine + "no line of a log\n" + logLine,
	})
	s.refresh()
	first := s.Get(harness.Local+"/sitemap.xml", googlebot)
	s.Get(harness.Local+"/sitemap.xml", googlebot, "If-None-Match: "+first.Header.Get("ETag"))
	s.Get(harness.Local+"/robots.txt", googlebot)
	s.Do(http.MethodDelete, harness.Local+"/sitemap.xml", googlebot)

	got := s.families(api + "/metrics")
	label := s.Expand("site=localhost:{port}")
	s.Eventually(func() bool {
		got = s.families(api + "/metrics")
		return valueOf(got, "log_lines_total") >= 3
	}, s.SitemapLog)
	for _, want := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"pages", []string{label}, 4},
		{"pending_pages", []string{label}, 0},
		{"shards", []string{label}, 1},
		{"left_out_pages", []string{label, "reason=noindex"}, 1},
		{"left_out_pages", []string{label}, 1},
		{"sites", []string{"named_by=configuration"}, 1},
		{"sites", []string{"named_by=visitors"}, 0},
		{"requests_total", []string{"crawler=Googlebot", "document=sitemap", "result=served"}, 1},
		{"requests_total", []string{"crawler=Googlebot", "document=sitemap", "result=not_modified"}, 1},
		{"requests_total", []string{"crawler=Googlebot", "document=sitemap", "result=refused"}, 1},
		{"requests_total", []string{"crawler=Googlebot", "document=robots", "result=served"}, 1},
		{"requests_total", []string{"crawler=Googlebot"}, 4},
		{"log_lines_total", nil, 3},
	} {
		if value := valueOf(got, want.name, want.labels...); value != want.value {
			t.Errorf("%s%q: got %v, want %v", want.name, want.labels, value, want.value)
		}
	}
	for _, atLeast := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"fetches_total", []string{"answered_by=server", "result=2xx"}, 4},
		{"documents_bytes", []string{label}, 100},
		{"last_request_timestamp_seconds", []string{"crawler=Googlebot", "document=sitemap"}, 1_700_000_000},
		{"snapshot_age_seconds", []string{label}, 0},
	} {
		if value := valueOf(got, atLeast.name, atLeast.labels...); value < atLeast.value {
			t.Errorf("%s%q: got %v, want %v at least", atLeast.name, atLeast.labels, value, atLeast.value)
		}
	}
	if age := valueOf(got, "snapshot_age_seconds"); age > harness.Patience.Seconds() {
		t.Errorf("the snapshot is %v seconds old", age)
	}
	checkLabels(t, got)

	before := countersOf(got)
	s.refresh()
	s.Get(harness.Local+"/sitemap.xml", googlebot)
	again := s.families(api + "/metrics")
	s.wantGrown(before, countersOf(again))
	if n := valueOf(again, "requests_total", "crawler=Googlebot"); n != 5 {
		t.Errorf("Googlebot fetched %v times, want 5", n)
	}
	if byHandler := s.families(harness.Local + "/metrics"); !slices.Equal(slices.Sorted(maps.Keys(byHandler)), slices.Sorted(maps.Keys(again))) {
		t.Errorf("the handler shows %v, the endpoint %v", slices.Sorted(maps.Keys(byHandler)), slices.Sorted(maps.Keys(again)))
	}
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(again))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// checkLabels wants just the metrics that there are, each with its labels, none of which
// is a URL or a path.
func checkLabels(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	if got, want := slices.Sorted(maps.Keys(families)), slices.Sorted(maps.Keys(metricLabels)); !slices.Equal(got, want) {
		t.Errorf("got metrics\n%q, want\n%q", got, want)
	}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var names []string
			for _, l := range m.GetLabel() {
				names = append(names, l.GetName())
				if strings.Contains(l.GetValue(), "://") || strings.HasPrefix(l.GetValue(), "/") || strings.Contains(l.GetValue(), ".html") {
					t.Errorf("%s has the label %s=%q", name, l.GetName(), l.GetValue())
				}
			}
			if slices.Sort(names); !slices.Equal(names, metricLabels[name]) {
				t.Errorf("%s has the labels %q, want %q", name, names, metricLabels[name])
			}
		}
	}
}

// TestMetricsAcrossReloads: metrics are registered anew, and show the sites there are;
// who has fetched documents so far is counted on.
func TestMetricsAcrossReloads(t *testing.T) {
	s := startOne(t, measured)
	for i := range 3 {
		s.Get(harness.Local+"/sitemap.xml", googlebot)
		got := s.families(api + "/metrics")
		if pages, fetched := valueOf(got, "pages"), valueOf(got, "requests_total", "crawler=Googlebot"); pages != 4 || fetched != float64(i+1) {
			t.Errorf("after %d reloads: got %v pages, %v fetches", i, pages, fetched)
		}
		s.Reload(measured)
	}
	// Two handlers of sites, and a site that is no more.
	if err := s.Load(strings.Replace(twoSites, "localhost", "other.localhost", 1)); err != nil {
		t.Fatal(err)
	}
	s.refresh()
	got := s.families(api + "/metrics")
	if sites := valueOf(got, "sites"); sites != 2 {
		t.Errorf("got %v sites, want 2", sites)
	}
	for _, m := range got["caddy_sitemap_pages"].GetMetric() {
		if site := m.GetLabel()[0].GetValue(); site == s.Expand("localhost:{port}") {
			t.Errorf("the site %s is still there", site)
		}
	}
}

// TestMetricsOfVisitorsSites: sites that only visitors named share a label.
func TestMetricsOfVisitorsSites(t *testing.T) {
	s := start(t, "http://:{port} {\n\troot * {dir}/a\n\tsitemap\n\tfile_server\n}", harness.TwoRoots)
	for _, host := range []string{"one.example", "two.example", "three.example"} {
		s.Get(harness.Local+"/sitemap.xml", "Host: "+host)
	}
	got := s.families(api + "/metrics")
	if sites, pages := valueOf(got, "sites", "named_by=visitors"), valueOf(got, "pages", "site=visitors"); sites != 3 || pages != 12 || len(got["caddy_sitemap_pages"].GetMetric()) != 1 {
		t.Errorf("got %v sites, %v pages: %v", sites, pages, got["caddy_sitemap_pages"])
	}
}

// dashboard is what these tests want of the one for Grafana.
type dashboard struct {
	Inputs []struct {
		Name     string
		PluginID string `json:"pluginId"`
	} `json:"__inputs"`
	SchemaVersion int `json:"schemaVersion"`
	Templating    struct {
		List []struct{ Name, Definition string }
	}
	Panels []struct {
		ID          int
		Title, Type string
		Datasource  struct{ UID string }
		Targets     []struct{ Expr string }
	}
}

var metricName = regexp.MustCompile(`caddy_sitemap_[a-z_]+`)

// TestDashboard: every metric that the dashboard names is there, and it names each.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("../../examples/grafana/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Inputs) != 1 || d.Inputs[0].Name != "DS_PROMETHEUS" || d.Inputs[0].PluginID != "prometheus" || d.SchemaVersion < 39 {
		t.Errorf("got inputs %+v, schema version %d", d.Inputs, d.SchemaVersion)
	}
	if len(d.Templating.List) == 0 || d.Templating.List[0].Name != "site" || !strings.Contains(d.Templating.List[0].Definition, "caddy_sitemap_pages") {
		t.Errorf("got templating %+v", d.Templating)
	}
	used, ids := make(map[string]bool), make(map[int]bool)
	for _, panel := range d.Panels {
		if ids[panel.ID] || panel.Datasource.UID != "${DS_PROMETHEUS}" || len(panel.Targets) == 0 || panel.Title == "" {
			t.Errorf("panel %d %q: got %+v", panel.ID, panel.Title, panel)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
				if _, ok := metricLabels[name]; !ok {
					t.Errorf("panel %q asks for %s, which is no metric", panel.Title, name)
				}
				used[name] = true
			}
		}
	}
	for name := range metricLabels {
		if !used[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

const browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"

// TestPending: status and metrics say how many pages are still to be fetched, and nothing
// of verified ones, as all that are listed are. While upstreams are left alone, nothing is
// done again and again, and a refresh that is asked for does not wait for them.
func TestPending(t *testing.T) {
	s := prepare(t, nil)
	s.LoadApp("{\n metrics\n}\n"+harness.Local+" {\n sitemap {\n refresh 1h\n crawl {\n rate 1/m\n }\n urls {\n/a\n/b\n/c\n}\n }\n reverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sitemap") || r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>x</title>", r.URL.Path)
	})
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/a") // one fetch a minute
	var said string
	s.Eventually(func() bool {
		said = s.Get(api + "/sitemap/sites").Text
		return strings.Contains(said, `"pages":1,"pending":2`)
	}, func() string { return said })
	if strings.Contains(strings.ReplaceAll(said, "readers_unverified", ""), "verified") {
		t.Errorf("got %s", said)
	}
	if n := valueOf(s.families(api+"/metrics"), "pending_pages"); n != 2 {
		t.Errorf("%v pages are pending, want 2", n)
	}
	s.command("status").want(t, 0, nil, nil, `pages +1\n`, `pending +2\n`)
	for range 2 {
		if st := s.refresh(); st.Pages != 1 {
			t.Errorf("got %+v", st)
		}
	}
	s.Passed(time.Second)
	if lines := s.LogLines(`"msg":"sitemap refreshed`); len(lines) > 20 {
		t.Errorf("there were %d publications", len(lines))
	}
}

// TestVisitsThatDoNotCount: where nine tenths of the visits to pages do not count, status
// says why.
func TestVisitsThatDoNotCount(t *testing.T) {
	s := prepare(t, nil)
	s.LoadApp(harness.Local+" {\n sitemap {\n refresh 1s\n traffic\n }\n reverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Cache-Control", "private, no-store")
		fmt.Fprint(w, "<!doctype html><title>x</title>", r.URL.Path)
	})
	get := func(n int, headers ...string) {
		t.Helper()
		for range n {
			s.Get(harness.Local+"/a", headers...)
		}
	}
	get(12, browser)
	get(100, browser, "Authorization: Basic dTpw")
	get(8, "User-Agent: some-robot/1.0")
	// Of 120 visits 12 count, just a tenth, though their responses are private.
	s.Eventually(func() bool {
		said := s.Get(api + "/sitemap/sites").Text
		return strings.Contains(said, `"visits_ignored":{"robot":8,"signed in":100}`)
	}, func() string { return s.Get(api + "/sitemap/sites").Text })
	s.command("status").want(t, 0, nil, nil, `visits ignored +robot: 8\n +signed in: 100\n`)
	get(2, browser)
	s.Eventually(func() bool { return !strings.Contains(s.Get(api+"/sitemap/sites").Text, "visits_ignored") },
		func() string { return s.Get(api + "/sitemap/sites").Text })
}
