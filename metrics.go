package sitemap

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are all caddy_sitemap_….
const (
	metricsNamespace = "caddy"
	metricsSubsystem = "sitemap"
)

// visitorsLabel stands for all sites that only visitors named, in the place of a site: there
// may be any number of them.
const visitorsLabel = "visitors"

// counts counts what happens, for metrics.
type counts struct {
	refreshes *prometheus.HistogramVec
	asks      *prometheus.CounterVec
	lines     *prometheus.CounterVec
}

func newCounts() counts {
	return counts{
		refreshes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "refresh_duration_seconds",
			Help:    "Time that refreshes took, by what they came to.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10), // 1 ms to 4 min
		}, []string{"result"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "asks_total",
			Help: "Requests made in memory to verify pages, by whether an upstream answered, and with which class of status.",
		}, []string{"answered_by", "result"}),
		lines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "log_lines_total",
			Help: "Lines of access logs, by what became of them.",
		}, []string{"result"}),
	}
}

// registerMetrics makes the metrics known to Caddy's registry, which each configuration
// has one of.
func (a *App) registerMetrics() error {
	a.counts = newCounts()
	for _, result := range refreshResults {
		a.counts.refreshes.WithLabelValues(result) // 0, before it is 1
	}
	var errs []error
	for _, c := range []prometheus.Collector{a.counts.refreshes, a.counts.asks, a.counts.lines, collector{a}} {
		errs = append(errs, a.ctx.GetMetricsRegistry().Register(c))
	}
	return errors.Join(errs...)
}

// refreshed counts a refresh.
func (c *counts) refreshed(result string, took time.Duration) {
	c.refreshes.WithLabelValues(result).Observe(took.Seconds())
}

// statusClasses are the results of asks, by the first digit of their status.
var statusClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// asked counts an ask for a page; nil: it was not answered.
func (c *counts) asked(answer *Answer) {
	by, class := "server", statusClasses[0]
	if answer != nil {
		if answer.Proxied {
			by = "upstream"
		}
		if n := answer.Status / 100; n < len(statusClasses) {
			class = statusClasses[n]
		}
		if answer.Unhandled && answer.Status == http.StatusOK {
			class = statusClasses[0]
		}
	}
	c.asks.WithLabelValues(by, class).Inc()
}

// Descriptions of what is read off the sites when it is asked for.
var (
	pagesDesc    = describe("pages", "Pages listed.", "site")
	verifiedDesc = describe("verified_pages", "Pages listed that have answered 200 to a stranger.", "site")
	shardsDesc   = describe("shards", "Documents that list pages.", "site")
	bytesDesc    = describe("documents_bytes", "Memory that the finished documents take.", "site")
	ageDesc      = describe("snapshot_age_seconds", "Time since the beginning of the last refresh that what is served stands for; of several sites, of the oldest.", "site")
	leftOutDesc  = describe("left_out_pages", "Pages left out at the last refresh, by reason.", "site", "reason")
	sitesDesc    = describe("sites", "Sites, by who named them.", "named_by")
	requestsDesc = describe("requests_total", "Requests for documents and robots.txt, by what the User-Agent says, unverified, by document and result.", "crawler", "document", "result")
	lastDesc     = describe("last_request_timestamp_seconds", "When a document was last fetched, by what the User-Agent says, unverified.", "crawler", "document")
	droppedDesc  = describe("visits_dropped_total", "Visits that came faster than they could be looked at.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, metricsSubsystem, name), help, labels, nil)
}

// collector reads off the sites of a configuration what there is to know.
type collector struct{ app *App }

// Describe implements prometheus.Collector.
func (collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{pagesDesc, verifiedDesc, shardsDesc, bytesDesc, ageDesc, leftOutDesc, sitesDesc, requestsDesc, lastDesc, droppedDesc} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	sums, named, visitors := c.app.sums()
	gauge(sitesDesc, float64(named), namedByConfiguration)
	gauge(sitesDesc, float64(visitors), namedByVisitors)
	for label, sum := range sums {
		gauge(pagesDesc, float64(sum.pages), label)
		gauge(verifiedDesc, float64(sum.verified), label)
		gauge(shardsDesc, float64(sum.shards), label)
		gauge(bytesDesc, float64(sum.bytes), label)
		if sum.pages > 0 {
			gauge(ageDesc, sum.age.Seconds(), label)
		}
		for reason, n := range sum.leftOut {
			gauge(leftOutDesc, float64(n), label, reason)
		}
	}
	read := c.app.allReaders()
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
	pages, verified, shards int
	bytes                   int64
	age                     time.Duration
	leftOut                 map[string]int
}

// sums adds up what the sites have, by label, and counts them.
func (a *App) sums() (sums map[string]*sum, named, visitors int) {
	sums = make(map[string]*sum)
	now := a.now()
	for _, s := range a.allSites() {
		label := s.label()
		if s.visitors {
			visitors++
		} else {
			named++
		}
		if s.main.Load() != nil {
			continue // that one is counted
		}
		if sums[label] == nil {
			sums[label] = &sum{leftOut: make(map[string]int)}
		}
		sums[label].add(s, now)
	}
	return sums, named, visitors
}

func (sum *sum) add(s *site, now time.Time) {
	if snapshot := s.current(); snapshot != nil {
		sum.pages += snapshot.pages
		sum.shards += len(snapshot.urlsets())
		sum.bytes += snapshot.bytes
	}
	r := s.told()
	if r == nil {
		return
	}
	sum.verified += r.verified
	for reason, n := range r.leftOut {
		sum.leftOut[reason] += n
	}
	if !r.confirmed.IsZero() {
		sum.age = max(sum.age, now.Sub(r.confirmed))
	}
}

// label is what a site is called in metrics: host, port and folder.
func (s *site) label() string {
	if s.visitors {
		return visitorsLabel
	}
	_, label, _ := strings.Cut(s.base+s.at, "://")
	return label
}
