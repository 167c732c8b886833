package sitemap

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are all caddy_sitemap_….
const (
	metricsNamespace = "caddy"
	metricsSubsystem = "sitemap"
)

// visitorsLabel is the site label of all sites on demand: there may be any number of them.
const visitorsLabel = "visitors"

// counts counts what happens, for metrics.
type counts struct {
	refreshes *prometheus.HistogramVec
	fetches   *prometheus.CounterVec
	lines     *prometheus.CounterVec
}

func newCounts() counts {
	return counts{
		refreshes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "refresh_duration_seconds",
			Help:    "Duration of refreshes, by their outcome.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10), // 1 ms to 4 min
		}, []string{"result"}),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "fetches_total",
			Help: "Pages fetched in memory, by whether an upstream responded, and by the class of the status.",
		}, []string{"answered_by", "result"}),
		lines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "log_lines_total",
			Help: "Lines of access logs, by what became of them.",
		}, []string{"result"}),
	}
}

// register registers the metrics with Caddy's registry, of which there is one for each
// configuration.
func (c *counts) register(registry *prometheus.Registry, sites prometheus.Collector) error {
	for _, outcome := range refreshOutcomes {
		c.refreshes.WithLabelValues(outcome) // 0, before it is 1
	}
	var errs []error
	for _, one := range []prometheus.Collector{c.refreshes, c.fetches, c.lines, sites} {
		errs = append(errs, registry.Register(one))
	}
	return errors.Join(errs...)
}

// refreshed counts a refresh.
func (c *counts) refreshed(outcome string, took time.Duration) {
	c.refreshes.WithLabelValues(outcome).Observe(took.Seconds())
}

// statusClasses are the results of fetches, by the first digit of their status.
var statusClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// fetched counts a fetch; nil: there was no response.
func (c *counts) fetched(res *response) {
	by, class := "server", statusClasses[0]
	if res != nil {
		if res.Proxied {
			by = "upstream"
		}
		if n := res.Status / 100; n < len(statusClasses) && !res.unhandled {
			class = statusClasses[n]
		}
	}
	c.fetches.WithLabelValues(by, class).Inc()
}

// Descriptions of what is collected from the sites when metrics are requested.
var (
	pagesDesc    = describe("pages", "Pages listed.", "site")
	pendingDesc  = describe("pending_pages", "Pages that are still to be fetched.", "site")
	shardsDesc   = describe("shards", "Documents that list pages.", "site")
	bytesDesc    = describe("documents_bytes", "Memory that the finished documents take.", "site")
	ageDesc      = describe("snapshot_age_seconds", "Time since the last refresh began that confirmed what is served; of several sites, the longest.", "site")
	leftOutDesc  = describe("left_out_pages", "Pages left out at the last refresh, by reason.", "site", "reason")
	sitesDesc    = describe("sites", "Sites, by what named them: the configuration, or visitors.", "named_by")
	requestsDesc = describe("requests_total", "Requests for documents and robots.txt, by class of User-Agent (not verified), document and result.", "crawler", "document", "result")
	lastDesc     = describe("last_request_timestamp_seconds", "When a document was last requested, by class of User-Agent (not verified).", "crawler", "document")
	droppedDesc  = describe("visits_dropped_total", "Visits that came faster than they could be processed.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, metricsSubsystem, name), help, labels, nil)
}

// collector collects metrics from the sites of a configuration.
type collector struct{ app *App }

// Describe implements prometheus.Collector.
func (collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{pagesDesc, pendingDesc, shardsDesc, bytesDesc, ageDesc, leftOutDesc, sitesDesc, requestsDesc, lastDesc, droppedDesc} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	sums, named, onDemand := sumsOf(c.app.allSites(), c.app.now())
	gauge(sitesDesc, float64(named), namedByConfiguration)
	gauge(sitesDesc, float64(onDemand), namedByVisitors)
	for label, sum := range sums {
		gauge(pagesDesc, float64(sum.pages), label)
		gauge(pendingDesc, float64(sum.pending), label)
		gauge(shardsDesc, float64(sum.shards), label)
		gauge(bytesDesc, float64(sum.bytes), label)
		if sum.pages > 0 {
			gauge(ageDesc, sum.age.Seconds(), label)
		}
		for reason, n := range sum.leftOut {
			gauge(leftOutDesc, float64(n), label, reason)
		}
	}
	read := allReaders(c.app)
	for reading := range read.all() {
		metrics <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(reading.Times), reading.Crawler, reading.Document, reading.Result)
	}
	for of, at := range read.latest() {
		gauge(lastDesc, float64(at.Unix()), of.crawler, of.document)
	}
	metrics <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(c.app.droppedVisits.Load()))
}

// sum is what sites of one label have together.
type sum struct {
	pages, pending, shards int
	bytes                  int64
	age                    time.Duration
	leftOut                map[string]int
}

// sumsOf adds up what sites have, by label, and counts them.
func sumsOf(sites []*site, now time.Time) (sums map[string]*sum, named, onDemand int) {
	sums = make(map[string]*sum)
	for _, s := range sites {
		if s.onDemand {
			onDemand++
		} else {
			named++
		}
		if s.main.Load() != nil {
			continue // that one is counted
		}
		label := s.label()
		if sums[label] == nil {
			sums[label] = &sum{leftOut: make(map[string]int)}
		}
		sums[label].add(s, now)
	}
	return sums, named, onDemand
}

func (sum *sum) add(s *site, now time.Time) {
	if snapshot := s.state.Index.Load(); snapshot != nil {
		sum.pages += snapshot.Pages
		sum.shards += len(documentsOf(snapshot))
		sum.bytes += snapshot.Bytes
	}
	r := s.lastReport()
	if r == nil {
		return
	}
	sum.pending += r.pending
	for reason, n := range r.leftOut {
		// A guest module's reason may be any string, and a label must be UTF-8.
		sum.leftOut[strings.ToValidUTF8(reason, "\uFFFD")] += n
	}
	if !r.confirmed.IsZero() {
		sum.age = max(sum.age, now.Sub(r.confirmed))
	}
}

// label is the site in metrics: host, port and prefix.
func (i *identity) label() string {
	if i.onDemand {
		return visitorsLabel
	}
	_, label, _ := strings.Cut(i.url(), "://")
	return label
}
