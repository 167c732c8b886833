package sitemap

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// counts counts what happens, for metrics.
type counts struct {
	fetches *prometheus.CounterVec
	lines   *prometheus.CounterVec
}

// newCounts registers the counters with Caddy's registry, of which there is one for each
// configuration.
func newCounts(registry prometheus.Registerer) counts {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(registry).NewCounterVec(prometheus.CounterOpts{Namespace: "caddy", Subsystem: "sitemap", Name: name, Help: help}, labels)
	}
	return counts{
		fetches: vec("fetches_total", "Pages fetched in memory, by whether an upstream responded, and by the class of the status.", "answered_by", "result"),
		lines:   vec("log_lines_total", "Lines of access logs, by what became of them.", "result"),
	}
}

// fetched counts a fetch; nil: there was no response.
func (c *counts) fetched(res *response) {
	by, class := "server", "none"
	if res != nil && res.Proxied {
		by = "upstream"
	}
	if res != nil && !res.unhandled {
		class = fmt.Sprintf("%dxx", res.Status/100)
	}
	c.fetches.WithLabelValues(by, class).Inc()
}

// metric is what is collected from the reports on sites.
type metric struct {
	*prometheus.Desc
	kind   prometheus.ValueType
	add    func(x, y float64) float64 // makes one value of those of sites with the same labels
	labels int
}

func newMetric(kind prometheus.ValueType, add func(x, y float64) float64, name, help string, labels ...string) *metric {
	return &metric{prometheus.NewDesc("caddy_sitemap_"+name, help, labels, nil), kind, add, len(labels)}
}

func sum(x, y float64) float64     { return x + y }
func largest(x, y float64) float64 { return max(x, y) }

const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue

var (
	pagesMetric    = newMetric(gauge, sum, "pages", "Pages listed.", "site")
	pendingMetric  = newMetric(gauge, sum, "pending_pages", "Pages that are still to be fetched.", "site")
	shardsMetric   = newMetric(gauge, sum, "shards", "Documents that list pages.", "site")
	bytesMetric    = newMetric(gauge, sum, "documents_bytes", "Memory that the finished documents take.", "site")
	ageMetric      = newMetric(gauge, largest, "snapshot_age_seconds", "Time since the last refresh began that confirmed what is served; of several sites, the longest.", "site")
	durationMetric = newMetric(gauge, largest, "last_refresh_duration_seconds", "Duration of the last refresh; of several sites, the longest.", "site")
	leftOutMetric  = newMetric(gauge, sum, "left_out_pages", "Pages left out at the last refresh, by reason.", "site", "reason")
	sitesMetric    = newMetric(gauge, sum, "sites", "Sites, by what named them (the configuration, or visitors), and the result of the last refresh.", "named_by", "result")
	requestsMetric = newMetric(counter, sum, "requests_total", "Requests for documents and robots.txt, by class of User-Agent (not verified), document and result.", "crawler", "document", "result")
	lastMetric     = newMetric(gauge, largest, "last_request_timestamp_seconds", "When a document was last requested, by class of User-Agent (not verified).", "crawler", "document")
	droppedMetric  = newMetric(counter, sum, "visits_dropped_total", "Visits that came faster than they could be processed.")
)

// collector collects metrics from the status of the sites of a configuration.
type collector struct{ app *App }

// Describe implements prometheus.Collector: what is collected depends on the sites.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	type key struct {
		*metric
		labels [3]string
	}
	values := map[key]float64{{metric: droppedMetric}: float64(c.app.droppedVisits.Load())}
	add := func(m *metric, value float64, labels ...string) {
		k := key{metric: m}
		copy(k.labels[:], labels)
		values[k] = m.add(values[k], value)
	}
	readings := c.app.departed.list()
	for _, s := range c.app.allSites() {
		st := s.status()
		readings = append(readings, st.Readers...)
		if st.ServedBy != "" {
			add(sitesMetric, 1, st.NamedBy, refreshAlias)
			continue
		}
		_, site, _ := strings.Cut(st.Site, "://")
		if s.onDemand {
			site = namedByVisitors // there may be any number of them
		}
		rep := s.lastReport()
		add(sitesMetric, 1, st.NamedBy, rep.Result)
		add(pagesMetric, float64(st.Pages), site)
		add(shardsMetric, float64(st.Shards), site)
		add(bytesMetric, float64(st.Bytes), site)
		add(pendingMetric, float64(rep.Pending), site)
		add(durationMetric, rep.Seconds, site)
		if st.Pages > 0 && !rep.Confirmed.IsZero() {
			add(ageMetric, c.app.now().Sub(rep.Confirmed).Seconds(), site)
		}
		for reason, n := range rep.LeftOut {
			add(leftOutMetric, float64(n), site, strings.ToValidUTF8(reason, "\uFFFD")) // a guest module's may be any bytes
		}
	}
	for _, r := range readings {
		add(requestsMetric, float64(r.Times), r.Crawler, r.Document, r.Result)
		add(lastMetric, float64(r.Last.Unix()), r.Crawler, r.Document)
	}
	for k, value := range values {
		metrics <- prometheus.MustNewConstMetric(k.Desc, k.kind, value, k.labels[:k.metric.labels]...)
	}
}
