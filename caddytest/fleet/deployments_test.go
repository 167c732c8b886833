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
	"strings"
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
	Node, Name, Writer, Vote, Error string
	Nodes                           []struct {
		Node     string
		SameView bool `json:"same_view"`
	}
}

// status asks the node's admin endpoint.
func (n *node) status() (s storageStatus) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.dir, n.name+".sock"))
	}
	client := &http.Client{Timeout: harness.Patience, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	resp, err := client.Get("http://localhost/sitemap/sites")
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

// warnings are the lines of all nodes about views, with the field that names nodes.
func (f *fleet) warnings() (lines []string) {
	for _, line := range strings.Split(f.logged("nodes see other files"), "\n") {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
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

// TestSharedStaleNode has a node with an old root that was alone for a while: the others do not serve its pages, and one of
// them names it, until it has the same.
func TestSharedStaleNode(t *testing.T) {
	const old, all = 400, 420
	f := prepare(t, setup{nodes: 3, roots: true})
	for i, n := range f.nodes {
		count := all
		if i == 0 {
			count = old
		}
		for _, path := range numbered(0, count) {
			n.deploy(path)
		}
	}
	stale := f.nodes[0]
	stale.start()
	stale.first()
	f.eventually(patience, func() bool { return len(stale.listed()) == old })
	time.Sleep(length(interval, time.Minute))
	for _, n := range f.nodes[1:] {
		n.start()
	}
	begun := time.Now()
	f.eventually(patience, func() bool {
		for _, n := range f.nodes {
			if len(n.listed()) != all {
				return false
			}
		}
		return true
	})
	t.Logf("all list %d pages %s after the others have started", all, time.Since(begun))
	f.agree(patience)
	// On a busy machine, a node may not hear of the others for some seconds. As long as the stale node is the writer, it may warn
	// of itself.
	settled := func() {
		for _, n := range f.nodes {
			isStale := n == stale
			f.eventually(patience, func() bool {
				st := n.status()
				return len(st.Nodes) == 2 && st.Writer != stale.status().Node && (st.Vote == "outvoted") == isStale
			})
		}
	}
	settled()
	before := f.warnings()
	naming := `"nodes":["` + stale.status().Name + `"]`
	namesIt := func(warning string) bool { return strings.Contains(warning, naming) }
	f.eventually(patience, func() bool { return slices.ContainsFunc(f.warnings(), namesIt) })
	t.Logf("warned within %s after the others have started", time.Since(begun))
	time.Sleep(6 * interval) // three views of each node
	settled()
	for _, warning := range f.warnings() {
		if !namesIt(warning) && !slices.Contains(before, warning) {
			t.Errorf("warning: %q, want one with %s", warning, naming)
		}
	}
	if len(stale.listed()) != all {
		t.Errorf("later, %d pages are listed", len(stale.listed()))
	}

	for _, path := range numbered(old, all) {
		stale.deploy(path)
	}
	f.eventually(patience, stale.agrees)
}

// agrees reports whether the node knows that the two others see what it sees.
func (n *node) agrees() bool {
	st := n.status()
	return st.Vote == "" && len(st.Nodes) == 2 && st.Nodes[0].SameView && st.Nodes[1].SameView
}

// TestSharedRelease has nodes that get a release one after the other: no page comes and goes, and each change is announced once.
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
	for _, n := range f.nodes {
		f.eventually(patience, n.agrees) // a node that knows of no other publishes what it sees
	}
	time.Sleep(6 * interval) // three views of each node: on a machine that starts other fleets, one may not hear of the others in time
	for _, n := range f.nodes {
		f.eventually(patience, n.agrees)
	}
	stop := f.flaps()
	for i, n := range f.nodes {
		for _, path := range numbered(all, released) {
			n.deploy(path)
		}
		for _, path := range numbered(0, released-all) {
			n.remove(path)
		}
		deployed := time.Now()
		if i == 1 {
			f.eventually(patience, func() bool {
				for _, n := range f.nodes {
					if now := n.listed(); len(now) != all || now["/00/0000.html"] {
						return false
					}
				}
				return true
			})
			t.Logf("all list the release %s after most nodes have it", time.Since(deployed))
		}
		time.Sleep(length(4*interval, time.Minute))
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
