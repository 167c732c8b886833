//go:build unix

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// deploy puts a page into the node's own root.
func (n *node) deploy(path string) {
	n.t.Helper()
	n.files.Put(n.root()+path, harness.Whole("", "page "+path), time.Now())
}

// remove removes a page from it.
func (n *node) remove(path string) {
	n.t.Helper()
	harness.Must(n.t, os.Remove(filepath.Join(n.dir, n.root(), path)))
}

// numbered are the paths of pages from one number to another.
func numbered(from, to int) (paths []string) {
	for i := from; i < to; i++ {
		paths = append(paths, fmt.Sprintf("/%02d/%04d.html", i%40, i))
	}
	return paths
}

// storageStatus is what a node says of its storage.
type storageStatus struct {
	Leads         bool
	Leader, Error string
}

// admin returns a client of the node's admin endpoint.
func (n *node) admin() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.dir, n.name+".sock"))
	}
	return &http.Client{Timeout: harness.Patience, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// refresh has the node refresh the site, as 'caddy sitemap refresh' does.
func (n *node) refresh() {
	n.t.Helper()
	resp, err := n.admin().Post("http://localhost/sitemap/refresh", "", nil)
	harness.Must(n.t, err)
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		n.t.Fatalf("%s refreshes the site with status %d", n.name, resp.StatusCode)
	}
}

// status asks the node what it says of its storage.
func (n *node) status() (s storageStatus) {
	resp, err := n.admin().Get("http://localhost/sitemap/sites")
	if err != nil {
		return s
	}
	defer resp.Body.Close()
	var all struct {
		Sites []struct{ Storage storageStatus }
	}
	if json.NewDecoder(resp.Body).Decode(&all) == nil && len(all.Sites) > 0 {
		s = all.Sites[0].Storage
	}
	return s
}

var locPattern = regexp.MustCompile("<loc>([^<]*)</loc>")

// listed are the paths that a node lists, in one document; nil: it has none.
func (n *node) listed() map[string]bool {
	r := n.get("/sitemap.xml")
	if r.status != http.StatusOK {
		return nil
	}
	all := make(map[string]bool)
	for _, match := range locPattern.FindAllStringSubmatch(r.body, -1) {
		all[n.local(match[1])] = true
	}
	return all
}

// flaps watches the pages that nodes list until stop is called, which returns those that came back, or went again.
func (f *fleet) flaps() (stop func() []string) {
	done := make(chan struct{})
	var group sync.WaitGroup
	var mu sync.Mutex
	var found []string
	for _, n := range f.nodes {
		group.Go(func() {
			before := n.listed()
			changes := make(map[string]int)
			for {
				select {
				case <-done:
					return
				case <-time.After(breath):
				}
				now := n.listed()
				if now == nil {
					continue
				}
				for _, path := range differing(before, now) {
					changes[path]++
					if changes[path] > 1 {
						mu.Lock()
						found = append(found, n.name+" "+path)
						mu.Unlock()
					}
				}
				before = now
			}
		})
	}
	return func() []string {
		close(done)
		group.Wait()
		return found[:min(len(found), 10)]
	}
}

// differing are the paths that only one of two sets has.
func differing(a, b map[string]bool) (paths []string) {
	for path := range a {
		if !b[path] {
			paths = append(paths, path)
		}
	}
	for path := range b {
		if !a[path] {
			paths = append(paths, path)
		}
	}
	return paths
}

// TestSharedRelease has nodes that get a release one after the other: all list it once the one that leads has it, no page comes and
// goes, and each change is announced once. Where another one is asked to refresh the site, its release is listed.
func TestSharedRelease(t *testing.T) {
	const all, released = 420, 432
	e := newEngine()
	defer e.Close()
	f := prepare(t, setup{nodes: 3, roots: true, site: fmt.Sprintf(announcing, e.URL)})
	changes := make(map[string]int)
	for _, path := range append(numbered(0, released-all), numbered(all, released)...) {
		changes["http://"+f.host+path] = 1
	}
	for _, n := range f.nodes {
		for _, path := range numbered(0, all) {
			n.deploy(path)
		}
	}
	f.run()
	f.eventually(patience, func() bool { return len(f.nodes[0].listed()) == all })
	f.agree(patience)
	leads := f.nodes[f.leader()]
	f.nodes = slices.DeleteFunc(f.nodes, func(n *node) bool { return n == leads })
	f.nodes = append(f.nodes, leads) // which gets the release last
	hasRelease := func() bool {
		return !slices.ContainsFunc(f.nodes, func(n *node) bool {
			now := n.listed()
			return len(now) != all || now["/00/0000.html"]
		})
	}
	stop := f.flaps()
	for i, n := range f.nodes {
		for _, path := range numbered(all, released) {
			n.deploy(path)
		}
		for _, path := range numbered(0, released-all) {
			n.remove(path)
		}
		if i == 0 { // a deployment's script says so
			n.refresh()
			f.eventually(patience, hasRelease)
		}
		time.Sleep(length(2*interval, time.Minute))
	}
	f.agree(patience)
	if found := stop(); len(found) > 0 {
		t.Errorf("pages that came and went: %q\n%s", found, f.logs())
	}
	told := released - all
	if *long { // removed pages are announced three minutes later
		told = len(changes)
	}
	f.eventually(settling, func() bool { return e.count() >= told })
	if again := e.again(changes); len(again) > 0 {
		t.Errorf("announced more than once, or though they did not change: %q\n%s", again[:min(len(again), 10)], f.logs())
	}
}
