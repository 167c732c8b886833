package caddytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
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
	"caddy_sitemap_fetches_total":                 {"answered_by", "result"},
	"caddy_sitemap_pages":                         {"site"},
	"caddy_sitemap_pending_pages":                 {"site"},
	"caddy_sitemap_last_refresh_duration_seconds": {"site"},
	"caddy_sitemap_snapshot_age_seconds":          {"site"},
	"caddy_sitemap_left_out_pages":                {"reason", "site"},
	"caddy_sitemap_sites":                         {"named_by", "result"},
	"caddy_sitemap_announced_urls_total":          {"protocol", "result"},
	"caddy_sitemap_leads":                         {"site"},
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

const measured = `{
	metrics
}

http://localhost:{port} {
	root * {dir}/a
	sitemap {
		refresh 1h
		feed
		html
		llms
		section blog /one.html
		section none /none/*
		files
		access_log {dir}/access.log
	}
	file_server
	metrics /metrics
}
`

const logLine = `{"ts":1795000000,"logger":"http.log.access","request":{"method":"GET","host":"localhost","uri":"/one.html","remote_ip":"192.0.2.7","headers":{"User-Agent":["Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"]}},"status":200,"resp_headers":{"Content-Type":["text/html"]}}` + "\n"

func TestMetrics(t *testing.T) {
	s := startOne(t, measured)
	s.Write(map[string]string{
		"a/private.html": harness.Whole(`<meta name="robots" content="noindex">`, "x"),
		"access.log":     logLine + "no line of a log\n" + logLine,
	})
	s.refresh()
	got := s.families(api + "/metrics")
	site := s.Expand("site=localhost:{port}")
	for _, want := range []struct {
		least, most float64
		name        string
		labels      []string
	}{
		{4, 4, "pages", []string{site}},
		{0, 0, "pending_pages", []string{site}},
		{0, harness.Patience.Seconds(), "snapshot_age_seconds", []string{site}},
		{1, 1, "left_out_pages", []string{site, "reason=noindex"}},
		{1, 1, "left_out_pages", []string{site}},
		{1, 1, "sites", []string{"named_by=configuration"}},
		{0, 0, "sites", []string{"named_by=visitors"}},
		{4, 1000, "fetches_total", []string{"answered_by=server", "result=2xx"}},
	} {
		value := valueOf(got, want.name, want.labels...)
		if value < want.least || value > want.most {
			t.Errorf("%s%q: got %v, want %v to %v", want.name, want.labels, value, want.least, want.most)
		}
	}
	s.Eventually(func() bool { return strings.Contains(s.command("status").stdout, "visits") }, s.SitemapLog)
	s.command("status").want(t, 0, nil, nil, `logs\n +log +.*access\.log\n +lines\n(.*\n)* +visits +2\n`)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(metricLabels)), func(name string) bool { // nothing is announced here, or shared
		return name == "caddy_sitemap_announced_urls_total" || name == "caddy_sitemap_leads"
	})
	if byHandler := s.families(harness.Local + "/metrics"); !slices.Equal(slices.Sorted(maps.Keys(got)), names) || !slices.Equal(slices.Sorted(maps.Keys(byHandler)), names) {
		t.Errorf("got metrics\n%q, by the handler\n%q, want\n%q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(byHandler)), names)
	}
	for name, family := range got { // no label is a URL or a path
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
				if strings.Contains(l.GetValue(), "://") || strings.HasPrefix(l.GetValue(), "/") || strings.Contains(l.GetValue(), ".html") {
					t.Errorf("%s has the label %s=%q", name, l.GetName(), l.GetValue())
				}
			}
			if !slices.Equal(labels, metricLabels[name]) {
				t.Errorf("%s has the labels %q, want %q", name, labels, metricLabels[name])
			}
		}
	}
	if problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(got))).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// TestMetricsLeads: of a site that processes share, a metric says whether this one leads.
func TestMetricsLeads(t *testing.T) {
	shared := "storage file_system {dir}/shared\n\tsitemap {\n\t\tstorage caddy\n\t}\n}"
	s := startOne(t, strings.Replace(measured, "}", shared, 1))
	s.Eventually(func() bool {
		return valueOf(s.families(api+"/metrics"), "leads", s.Expand("site=localhost:{port}")) == 1
	}, s.SitemapLog)
}

// TestMetricsAcrossReloads: metrics are registered anew, and show the sites there are.
func TestMetricsAcrossReloads(t *testing.T) {
	s := startOne(t, measured)
	for i := range 3 {
		s.WantStatus(harness.Local+"/sitemap.xml", http.StatusOK)
		if pages := valueOf(s.families(api+"/metrics"), "pages"); pages != 4 {
			t.Errorf("after %d reloads: got %v pages", i, pages)
		}
		s.Reload(measured)
	}
	// Two handlers of sites, and a site that is no more.
	s.Load(strings.Replace(twoSites, "localhost", "other.localhost", 1))
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
	s := startWithAdmin(t, "http://:{port} {\n\troot * {dir}/a\n\tsitemap \n\tfile_server\n}", harness.TwoRoots)
	for _, host := range []string{"one.example", "two.example", "three.example"} {
		s.Get(harness.Local+"/sitemap.xml", "Host: "+host)
	}
	s.Refreshes(1)
	got := s.families(api + "/metrics")
	if sites, pages := valueOf(got, "sites", "named_by=visitors"), valueOf(got, "pages", "site=visitors"); sites != 3 || pages != 12 || len(got["caddy_sitemap_pages"].GetMetric()) != 1 {
		t.Errorf("got %v sites, %v pages: %v", sites, pages, got["caddy_sitemap_pages"])
	}
}

// TestDashboard: every metric that the dashboard names is there, and it names each.
func TestDashboard(t *testing.T) {
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	harness.Must(t, json.Unmarshal([]byte(read(t, "../examples/grafana/dashboard.json")), &d))
	used := make(map[string]bool)
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`caddy_sitemap_[a-z_]+`).FindAllString(target.Expr, -1) {
				used[name] = true
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(metricLabels)); !slices.Equal(got, want) {
		t.Errorf("the dashboard shows\n%q, want\n%q", got, want)
	}
}

// TestPending: status and metrics say how many pages are still to be fetched, and nothing
// of verified ones, as all that are listed are. While upstreams are left alone, nothing is
// done again and again, and a refresh that is asked for does not wait for them.
func TestPending(t *testing.T) {
	s := prepareWithAdmin(t, nil)
	s.LoadApp("{\n metrics\n}\n"+harness.Local+" {\n sitemap {\n refresh 1h\n crawl {\n rate 100/s\n }\n urls {\n/a\n/b\n/c\n}\n }\n reverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sitemap") || r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path == "/b" || r.URL.Path == "/c" {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>x</title>", r.URL.Path)
	})
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/a")
	var said string
	s.Eventually(func() bool {
		said = s.Get(api + "/sitemap/sites").Text
		return strings.Contains(said, `"pages":1,"pending":1`)
	}, func() string { return said })
	if strings.Contains(said, "verified") {
		t.Errorf("got %s", said)
	}
	if n := valueOf(s.families(api+"/metrics"), "pending_pages"); n != 1 {
		t.Errorf("%v pages are pending, want 1", n)
	}
	s.command("status").want(t, 0, nil, nil, `pages +1\n`, `pending +1\n`)
	for range 2 {
		if st := s.refresh(); st.Pages != 1 {
			t.Errorf("got %+v", st)
		}
	}
	s.Passed(time.Second)
	if lines := s.LogLines(harness.Refreshed); len(lines) > 20 {
		t.Errorf("there were %d publications", len(lines))
	}
}
