package sitemap

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
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
	values := make(map[key]float64)
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

// Reading says how often a document of a site was requested with User-Agents of one class,
// and with which result. A HEAD counts as a GET, and each form and encoding of a document
// as the document.
type Reading struct {
	Crawler  string    `json:"crawler"`  // the class of the User-Agent, which is not verified
	Document string    `json:"document"` // index, sitemap, shard or robots
	Result   string    `json:"result"`   // served, not_modified, redirected, missing, unavailable or refused
	Times    uint64    `json:"times"`
	Last     time.Time `json:"last"` // to the second
}

// Documents that are requested, and how requests end.
const (
	readIndex   = "index"   // or where it would be
	readSitemap = "sitemap" // the only urlset
	readShard   = "shard"
	readRobots  = "robots"

	readServed      = "served"
	readNotModified = "not_modified"
	readRedirected  = "redirected"  // to the site whose documents stand for this one's
	readMissing     = "missing"     // there is none, or no line for robots.txt: the next handler responded
	readUnavailable = "unavailable" // 503, or another error of the server
	readRefused     = "refused"     // the method, a range, a condition, or the client
)

// readResultOf is the result of a status.
func readResultOf(status int) string {
	switch {
	case status < 300:
		return readServed
	case status == http.StatusNotModified:
		return readNotModified
	case status < 400:
		return readRedirected
	case status == http.StatusNotFound || status == http.StatusGone:
		return readMissing
	case status < 500:
		return readRefused
	}
	return readUnavailable
}

// readDocumentOf is what is requested of a site with a snapshot; nil: there is none.
func readDocumentOf(want wanted, snapshot *publish.Snapshot) string {
	switch {
	case want.suffix != "":
		return readShard
	case snapshot != nil && !snapshot.Index.Index:
		return readSitemap
	}
	return readIndex
}

// readers counts who requests a site's documents. It keeps no User-Agent, and a bounded
// number of counters. The zero value is ready; it is safe for concurrent use.
type readers struct {
	mu       sync.Mutex
	readings map[[3]string]Reading
}

// Destruct lets readers be a value of a [caddy.UsagePool].
func (*readers) Destruct() error { return nil }

// count counts a request by its User-Agent.
func (r *readers) count(header http.Header, document, result string, now func() time.Time) {
	r.sum(Reading{accesslog.ClassOf(header.Get("User-Agent")), document, result, 1, now().UTC().Truncate(time.Second)})
}

func (r *readers) sum(more Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readings == nil {
		r.readings = make(map[[3]string]Reading)
	}
	of := [...]string{more.Crawler, more.Document, more.Result}
	so := r.readings[of]
	more.Times += so.Times
	if so.Last.After(more.Last) {
		more.Last = so.Last
	}
	r.readings[of] = more
}

// add adds the counts of others; nil: there are none.
func (r *readers) add(others *readers) {
	if others != nil {
		for _, reading := range others.list() {
			r.sum(reading)
		}
	}
}

// list are the readings, the latest first.
func (r *readers) list() []Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.readings), func(a, b Reading) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.Times, a.Times), strings.Compare(a.Crawler, b.Crawler), strings.Compare(a.Document, b.Document), strings.Compare(a.Result, b.Result))
	})
}
