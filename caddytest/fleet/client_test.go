//go:build unix

package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

// response is one of a node, or of the load balancer.
type response struct {
	status int
	header http.Header
	body   string
	err    error
}

var client = &http.Client{Timeout: harness.Patience, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 20}}

// get requests a path of the site from a node. header may be nil.
func (n *node) get(path string, header ...string) (r response) {
	request, err := http.NewRequest(http.MethodGet, "http://"+n.address+":"+n.port()+path, nil)
	if err != nil {
		return response{err: err}
	}
	request.Host = n.host
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Set(name, value)
	}
	resp, err := client.Do(request)
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(body), err}
}

// find is get, again if a busy node has not found a new shard: it looks for it for four seconds.
func (n *node) find(path string) (r response) {
	for range 3 {
		begun := time.Now()
		r = n.get(path)
		isMissing := r.status == http.StatusNotFound || r.status == http.StatusServiceUnavailable
		if !isMissing || time.Since(begun) < 3*time.Second {
			break
		}
	}
	return r
}

// local returns the path of a URL of the site.
func (f *fleet) local(url string) string { return strings.TrimPrefix(url, "http://"+f.host) }

// differences lists in what the nodes' documents differ, in both encodings.
func (f *fleet) differences() (found []string) {
	paths := []string{"/sitemap.xml", "/robots.txt"}
	if d, err := sitemaps.Parse([]byte(f.nodes[0].get("/sitemap.xml").body)); err == nil {
		for _, child := range d.Children {
			paths = append(paths, f.local(child.Loc))
		}
	}
	for _, path := range paths {
		for _, encoding := range []string{"identity", "gzip"} {
			var all [4][]string
			for _, n := range f.nodes {
				r := n.get(path, "Accept-Encoding: "+encoding)
				for i, value := range []string{fmt.Sprint(r.status, r.err), r.header.Get("ETag"), r.header.Get("Last-Modified"), fmt.Sprintf("%d bytes %x", len(r.body), sha256.Sum256([]byte(r.body)))} {
					all[i] = append(all[i], value)
				}
			}
			for i, what := range []string{"status", "ETag", "Last-Modified", "body"} {
				if len(slices.Compact(slices.Clone(all[i]))) > 1 || all[0][0] != "200 <nil>" {
					found = append(found, fmt.Sprintf("%s, %s: %s: %q", path, encoding, what, all[i]))
				}
			}
		}
	}
	return found
}

// agree waits until all nodes have the same documents, and returns how long that took.
func (f *fleet) agree(within time.Duration) time.Duration {
	f.t.Helper()
	begun := time.Now()
	for {
		found := f.differences()
		took := time.Since(begun)
		if len(found) == 0 {
			return took
		}
		if took > within {
			f.t.Fatalf("the nodes differ after %s:\n%s\n%s", within, strings.Join(found, "\n"), f.logs())
		}
		time.Sleep(breath)
	}
}

// lists reports whether a node's sitemap lists a page, with a date if one is given.
func (n *node) lists(path, date string) bool {
	want := "<loc>http://" + n.host + path + "</loc>"
	if date != "" {
		want += "<lastmod>" + date + "</lastmod>"
	}
	index := n.get("/sitemap.xml").body
	if d, err := sitemaps.Parse([]byte(index)); err == nil {
		for _, child := range d.Children {
			index += n.get(n.local(child.Loc)).body
		}
	}
	return strings.Contains(index, want)
}

// entryOf says for people how a node's sitemap lists a page, or why it does not.
func (n *node) entryOf(path string) string {
	documents := []string{"/sitemap.xml"}
	for i := 0; i < len(documents); i++ {
		r := n.get(documents[i])
		d, err := sitemaps.Parse([]byte(r.body))
		if r.err != nil || r.status != http.StatusOK || err != nil {
			return fmt.Sprintf("%s has the status %d: %v", documents[i], r.status, cmp.Or(r.err, err))
		}
		for _, p := range d.Pages {
			if n.local(p.Loc) == path {
				return fmt.Sprintf("%s has it with the date %q", documents[i], p.LastMod)
			}
		}
		for _, child := range d.Children {
			documents = append(documents, n.local(child.Loc))
		}
	}
	return fmt.Sprintf("none of %q has it", documents)
}

// asker asks a node, or the load balancer, for all documents over and over, and keeps what is wrong.
type asker struct {
	*node
	clients int
	grace   time.Duration // for which a date that was replaced may still be seen

	stop   chan struct{}
	group  sync.WaitGroup
	mu     sync.Mutex
	parsed map[string]parsed // the last one by path: most do not change
	dates  map[string]seen   // the latest by URL
	faults map[string]string // the first one by kind
	rounds int
	cut    int // responses that ended early
}

type parsed struct {
	text string
	d    sitemaps.Document
}

type seen struct {
	date  string
	since time.Time
}

// dateGone is the kind of fault of a page that has no date any more.
const dateGone = "a date is gone"

// pause is between two rounds of a client.
const pause = 200 * time.Millisecond

// ask begins to ask a node with so many clients.
func (n *node) ask(clients int, grace time.Duration) *asker {
	a := &asker{node: n, clients: clients, grace: grace, stop: make(chan struct{}), parsed: make(map[string]parsed), dates: make(map[string]seen), faults: make(map[string]string)}
	for range clients {
		a.group.Go(func() {
			for {
				select {
				case <-a.stop:
					return
				case <-time.After(pause):
					a.round()
				}
			}
		})
	}
	return a
}

// end stops asking, and returns what was wrong, by kind.
func (a *asker) end() map[string]string {
	close(a.stop)
	a.group.Wait()
	a.t.Logf("%s: asked %d times for all documents; %d responses ended early", a.name, a.rounds, a.cut)
	if a.cut > a.clients*a.kills { // one that is cut off by a kill is no fault of the node's
		a.fault("cut off", "%d responses, with %d kills", a.cut, a.kills)
	}
	return a.faults
}

// quiet stops asking, and fails the test if anything was wrong.
func (a *asker) quiet() {
	a.t.Helper()
	for kind, example := range a.end() {
		a.t.Errorf("%s: %s: %s", a.name, kind, example)
	}
	if a.rounds == 0 {
		a.t.Errorf("%s: nothing was asked", a.name)
	}
}

// round asks for the index and all that it names.
func (a *asker) round() {
	index, ok := a.document("/sitemap.xml")
	for _, child := range index.Children {
		_, one := a.document(a.local(child.Loc))
		ok = ok && one
	}
	if r := a.get("/robots.txt"); ok && r.err == nil && !strings.Contains(r.body, "\nSitemap: http://"+a.host+"/sitemap.xml\n") {
		a.fault("robots.txt without the line", "%d %q", r.status, r.body)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if ok {
		a.rounds++
	}
}

// document asks for one, and says what is wrong with it.
func (a *asker) document(path string) (d sitemaps.Document, ok bool) {
	begun, balanced := time.Now(), a.name == "balancer"
	r := a.find(path)
	if r.err != nil && balanced {
		a.mu.Lock()
		a.cut++
		a.mu.Unlock()
		r = a.get(path)
	}
	switch {
	case r.err != nil && !balanced: // a node that is down
		return d, false
	case r.err != nil:
		return d, a.fault("no response", "%s: %v", path, r.err)
	case r.status != http.StatusOK:
		return d, a.fault(fmt.Sprint("status ", r.status), "%s: %q", path, r.body)
	case !strings.HasSuffix(r.body, "</urlset>\n") && !strings.HasSuffix(r.body, "</sitemapindex>\n"):
		return d, a.fault("torn", "%s ends in %q", path, r.body[max(len(r.body)-60, 0):])
	}
	a.mu.Lock()
	last := a.parsed[path]
	a.mu.Unlock()
	if d = last.d; last.text != r.body {
		var err error
		if d, err = sitemaps.Parse([]byte(r.body)); err != nil {
			return d, a.fault("not well-formed", "%s: %v", path, err)
		}
	}
	a.mu.Lock()
	a.parsed[path] = parsed{r.body, d}
	back := make(map[string]string)
	for _, p := range d.Pages {
		switch last := a.dates[p.Loc]; {
		case p.LastMod > last.date:
			a.dates[p.Loc] = seen{p.LastMod, time.Now()}
		case p.LastMod < last.date && begun.Sub(last.since) > a.grace:
			kind := "a date goes back"
			if p.LastMod == "" {
				kind = dateGone
			}
			back[kind] = fmt.Sprintf("%s: %q %s after %q", p.Loc, p.LastMod, begun.Sub(last.since), last.date)
		}
	}
	a.mu.Unlock()
	for kind, example := range back {
		a.fault(kind, "%s", example)
	}
	return d, len(back) == 0
}

// fault keeps what is wrong, if it is the first of its kind, and returns false.
func (a *asker) fault(kind, format string, args ...any) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faults[kind] == "" {
		a.faults[kind] = time.Now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	}
	return false
}

// engine is a search engine's endpoint of IndexNow, which keeps what it got.
type engine struct {
	*httptest.Server
	mu       sync.Mutex
	told     map[string]int      // times by URL
	when     map[string][]string // the same, for people
	batches  map[string]bool
	repeated int // batches that it got again, as after a kill, not counted in told
}

func newEngine() *engine {
	e := &engine{told: make(map[string]int), when: make(map[string][]string), batches: make(map[string]bool)}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var batch struct {
			Host, Key string
			URLList   []string
		}
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || batch.Host == "" || batch.Key == "" {
			http.Error(w, "not IndexNow", http.StatusBadRequest)
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		slices.Sort(batch.URLList)
		whole := strings.Join(batch.URLList, " ")
		if e.batches[whole] {
			e.repeated++
			return
		}
		e.batches[whole] = true
		at := fmt.Sprintf("%s with %d others", time.Now().UTC().Format("15:04:05.000"), len(batch.URLList)-1)
		for _, url := range batch.URLList {
			e.told[url]++
			e.when[url] = append(e.when[url], at)
		}
	}))
	return e
}

// count is how many URLs were announced.
func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.told)
}

// again lists the URLs that were announced more often than they changed.
func (e *engine) again(changes map[string]int) (urls []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, url := range slices.Sorted(maps.Keys(e.told)) {
		if e.told[url] > changes[url] {
			urls = append(urls, url)
		}
	}
	return urls
}
