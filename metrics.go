package sitemap

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// counts are the counters among the metrics.
type counts struct{ fetches, announced *prometheus.CounterVec }

// newCounts registers the counters with a registry; nil: with none.
func newCounts(registry prometheus.Registerer) counts {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		opts := prometheus.CounterOpts{Name: metricPrefix + name, Help: help}
		return promauto.With(registry).NewCounterVec(opts, labels)
	}
	return counts{
		fetches: vec("fetches_total",
			"Pages fetched in memory, by whether an upstream responded, and by the class of the status.",
			"answered_by", "result"),
		announced: vec("announced_urls_total",
			"URLs in requests to search engines and hubs, by result.",
			"protocol", "result"),
	}
}

// fetched counts a fetch; nil: there was no response.
func (c *counts) fetched(res *crawl.Response) {
	by := "server"
	class := "none"
	if res != nil && res.Proxied {
		by = "upstream"
	}
	if res != nil {
		class = fmt.Sprintf("%dxx", res.Status/100)
	}
	c.fetches.WithLabelValues(by, class).Inc()
}

const metricPrefix = "caddy_sitemap_"

// collected are the metrics made from the status of sites. For sites with the same labels, seconds are
// the maximum, and other values the sum.
var collected = map[string]struct {
	help   string
	labels []string
}{
	"pages":                         {"Pages listed.", []string{"site"}},
	"pending_pages":                 {"Pages that are still to be fetched.", []string{"site"}},
	"snapshot_age_seconds":          {"Time since the last refresh began that confirmed what is served.", []string{"site"}},
	"last_refresh_duration_seconds": {"Duration of the last refresh.", []string{"site"}},
	"left_out_pages":                {"Pages left out at the last refresh, by reason.", []string{"site", "reason"}},
	"leads":                         {"Whether this process refreshes a shared site for all, 1, or another one does.", []string{"site"}},
	"sites":                         {"Sites, by what named them, and the result of the last refresh.", []string{"named_by", "result"}},
}

// collector collects metrics from the sites of a configuration.
type collector struct{ app *App }

// Describe implements prometheus.Collector: which metrics there are depends on the sites.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	values := make(map[[3]string]float64) // by name and labels
	add := func(value float64, nameAndLabels ...string) {
		var key [3]string
		copy(key[:], nameAndLabels)
		if strings.HasSuffix(key[0], "_seconds") {
			values[key] = max(values[key], value)
		} else {
			values[key] += value
		}
	}
	c.app.mu.RLock()
	sites := maps.Clone(c.app.sites)
	c.app.mu.RUnlock()
	for _, s := range sites {
		st := s.status()
		s.measure(&st, add)
	}
	for key, value := range values {
		m := collected[key[0]]
		desc := prometheus.NewDesc(metricPrefix+key[0], m.help, m.labels, nil)
		labels := key[1 : 1+len(m.labels)]
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
}

// measure adds the metrics of a site with a status.
func (s *site) measure(st *siteStatus, add func(value float64, nameAndLabels ...string)) {
	if st.ServedBy != "" {
		add(1, "sites", st.NamedBy, string(outcome.Alias))
		return
	}
	// Visitors can name any number of hosts: together, these have one label.
	_, site, _ := strings.Cut(st.Site, "://")
	if s.onDemand {
		site = st.NamedBy
	}
	rep := cmp.Or(st.LastRefresh, new(report.Report))
	add(1, "sites", st.NamedBy, string(rep.Result))
	add(float64(st.Pages), "pages", site)
	add(float64(rep.Pending), "pending_pages", site)
	add(rep.Seconds, "last_refresh_duration_seconds", site)
	if st.Pages > 0 && !rep.Confirmed.IsZero() {
		age := s.app.now().Sub(rep.Confirmed)
		add(age.Seconds(), "snapshot_age_seconds", site)
	}
	if st.Storage != nil {
		leads := 0.0
		if st.Storage.Leads {
			leads = 1
		}
		add(leads, "leads", site)
	}
	// The reasons of guest modules may be any bytes, and labels are UTF-8.
	for reason, n := range rep.LeftOut {
		add(float64(n), "left_out_pages", site, strings.ToValidUTF8(reason, "\uFFFD"))
	}
}
