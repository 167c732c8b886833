//go:build unix

// Package fleet tries several Caddys that serve one site behind a load balancer, with a storage that they share.
package fleet

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	sitemap "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/storages"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

// announcing is the option by which a site tells an endpoint what changed.
const announcing = "indexnow {\nendpoint %s\n}"

var long = flag.Bool("long", false, "the full length of the tests: five minutes of chaos, two of a stopped storage, 200,000 pages")

// commandVar, in the environment, makes of the test's program Caddy's, with the storages of tests. Its value is not empty.
const commandVar = "CADDYTEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVar) != "" {
		indexing.Minute = 0 // as in the other tests: see harness.Main
		indexing.AddedFor = 2 * interval
		sitemap.AnnounceAfter = 4 * poll // by then, another one that led knows that it does not lead any more
		caddycmd.Main()
		return
	}
	_ = flag.Set("test.parallel", "5") // of those that wait most of the time
	harness.Main(m, "Shared(NewNode|BadInput|StorageStops|Release|Chaos)", "Shared.*", "Apart")
}

const (
	interval = time.Second      // of refreshes
	poll     = time.Second      // of nodes that do not refresh
	breath   = time.Second / 10 // between two looks whether something has happened
	patience = time.Minute      // with what takes seconds, on a busy machine
	settling = 2 * time.Minute  // after faults and kills
)

// setup says what a fleet is to be.
type setup struct {
	nodes int
	files bool   // the storage is a folder, not Redis
	apart bool   // each node has a storage of its own
	roots bool   // each node has a root of its own, of its name
	site  string // options of the site
	sites string // options of all sites
}

// fleet is some nodes behind a load balancer.
type fleet struct {
	t        *testing.T
	dir      string
	host     string          // with port, as clients know it: each node listens on another address
	files    *harness.Server // for what lies in dir, such as root, the site's
	control  string          // see [storages.SetFaults]
	redis    *storages.Server
	nodes    []*node
	balancer *node
	kills    int
}

// node is a process.
type node struct {
	*fleet
	name    string
	address string
	started time.Time
	cmd     *exec.Cmd
}

// nodeFile is the Caddyfile of a node, whose admin endpoint is a Unix socket. Its path is hidden by a pattern, as otherwise
// file_server hides it by its name, which differs: nodes with other routes request all pages again when they take over. Of a
// page that is changed meanwhile, they may read the new text after they have seen the old time of its file, and then list the
// day on which they found it: where dates do not wait, as in these tests, that is for good.
const nodeFile = `{
	admin unix/{dir}/{name}.sock
	auto_https off
	persist_config off
	grace_period 1s
	{global}
	sitemap {
		state {dir}/{name}
		storage caddy
		{sites}
	}
}
http://{host} {
	bind {address}
	root * {dir}/{root}
	sitemap {
		refresh {interval}
		{site}
	}
	file_server {
		hide *.caddyfile
	}
}
`

// balancerFile is that of the load balancer, which tries another node where one does not respond.
const balancerFile = `{
	admin off
	auto_https off
	persist_config off
}
http://{host} {
	bind 127.0.0.1
	reverse_proxy {upstreams} {
		lb_policy round_robin
		lb_retries 5
		lb_try_interval 50ms
		fail_duration 1s
		health_uri /sitemap.xml
		health_interval 200ms
		health_timeout 5s
		health_headers {
			Host {host}
		}
	}
}
`

// prepare makes the files of a fleet, which nobody runs yet.
func prepare(t *testing.T, s setup) (f *fleet) {
	t.Helper()
	if l, err := net.Listen("tcp", "127.0.0.2:0"); err == nil {
		_ = l.Close()
	} else {
		t.Skip("NOT RUN: this machine has no loopback address but 127.0.0.1")
	}
	dir, err := os.MkdirTemp("", "fleet") // a socket's path is short
	harness.Must(t, err)
	t.Cleanup(func() {
		if bad := f.logged(" DATA RACE", "panic"); bad != "" {
			t.Error(bad)
		}
		_ = os.RemoveAll(dir)
	})
	f = &fleet{t: t, dir: dir, host: "www.example.com:" + harness.FreePort(t), files: &harness.Server{T: t, Dir: dir}, control: filepath.Join(dir, "control")}
	harness.Must(t, os.Mkdir(filepath.Join(dir, "root"), 0o755))
	storage := "file_system " + filepath.Join(dir, "storage")
	if !s.files && !s.apart {
		f.redis = storages.StartServer(t)
		storage = "redis_test " + f.redis.Socket
	}
	all := strings.NewReplacer("{dir}", dir, "{host}", f.host, "{interval}", interval.String())
	global := "storage faulty " + f.control + " " + storage
	write := func(n *node, text string, pairs ...string) {
		text = all.Replace(strings.NewReplacer(pairs...).Replace(text))
		harness.Must(t, os.WriteFile(filepath.Join(dir, n.name+".caddyfile"), []byte(text), 0o644))
	}
	var upstreams []string
	for i := range s.nodes {
		n := &node{fleet: f, name: fmt.Sprint("node", i+1), address: fmt.Sprint("127.0.0.", i+2)}
		site, end := s.site, ""
		if s.apart {
			end = "/" + n.name
		}
		root := "root"
		if s.roots {
			root = n.root()
		}
		write(n, nodeFile, "{name}", n.name, "{address}", n.address, "{site}", site, "{global}", global+end, "{sites}", s.sites, "{root}", root)
		f.nodes = append(f.nodes, n)
		upstreams = append(upstreams, n.address+":"+f.port())
	}
	f.balancer = &node{fleet: f, name: "balancer", address: "127.0.0.1"}
	write(f.balancer, balancerFile, "{upstreams}", strings.Join(upstreams, " "))
	return f
}

// firstPage is the page that tests of small sites change.
const firstPage = "/page.html"

// start runs a fleet whose site has so many pages besides firstPage, and waits until all nodes agree.
func start(t *testing.T, s setup, count int) *fleet {
	t.Helper()
	f := prepare(t, s)
	f.begin(count)
	return f
}

// begin is start for a fleet that is prepared.
func (f *fleet) begin(count int) {
	f.t.Helper()
	f.makePages(count)
	f.put(firstPage, "first", harness.DayOf(1))
	f.run()
	f.settle(firstPage, harness.DayOf(1))
}

// run starts all nodes, and waits until they have a sitemap.
func (f *fleet) run() {
	f.t.Helper()
	for _, n := range f.nodes {
		n.start()
	}
	for _, n := range f.nodes {
		n.first()
	}
}

// balance runs the load balancer.
func (f *fleet) balance() {
	f.t.Helper()
	f.balancer.start()
	f.eventually(patience, func() bool { return f.balancer.get("/sitemap.xml").status == http.StatusOK })
}

func (f *fleet) port() string {
	_, port, _ := net.SplitHostPort(f.host)
	return port
}

// put makes or changes a page at once. Its file has a time of its own.
func (f *fleet) put(path, text string, when time.Time) {
	f.t.Helper()
	f.files.Put("root/"+path, harness.Whole("", text), when)
}

// root is the folder of the node's own files, below dir.
func (n *node) root() string { return "root-" + n.name }

// makePages makes so many of them, each of another day.
func (f *fleet) makePages(count int) {
	for i := range count {
		f.put(fmt.Sprintf("%02d/%04d.html", i%40, i), fmt.Sprint("page ", i), harness.DayOf(i))
	}
}

// list writes a list of so many pages, for the option urls.
func (f *fleet) list(count int, when time.Time) {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "/%03d/%06d lastmod=%s\n", i%500, i, when.UTC().Format(time.RFC3339))
	}
	f.files.Put("pages.txt", text.String(), time.Now())
}

func (f *fleet) eventually(within time.Duration, condition func() bool) {
	f.t.Helper()
	for until := time.Now().Add(within); !condition(); time.Sleep(breath) {
		if time.Now().After(until) {
			f.t.Fatalf("not within %s\n%s", within, f.logs())
		}
	}
}

// logged are the last lines of each node's log that have one of some words.
func (f *fleet) logged(words ...string) (found string) { return f.lines(10, words...) }

// lines are so many of the last lines of each node's log that have one of some words.
func (f *fleet) lines(most int, words ...string) (found string) {
	for _, n := range f.nodes {
		data, _ := os.ReadFile(filepath.Join(f.dir, n.name+".log"))
		lines := slices.DeleteFunc(strings.SplitAfter(string(data), "\n"), func(line string) bool {
			return !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) })
		})
		for _, line := range lines[max(len(lines)-most, 0):] {
			found += n.name + ": " + line
		}
	}
	return found
}

// logs are the last errors, and lines of the project itself.
func (f *fleet) logs() string {
	return f.logged(`"level":"error"`, `"logger":"sitemap`, `"logger":"http.handlers.sitemap`)
}

// start runs the node's process, which ends with the test at the latest.
func (n *node) start() {
	n.t.Helper()
	n.cmd = exec.Command(os.Args[0], "run", "--adapter", "caddyfile", "--config", filepath.Join(n.dir, n.name+".caddyfile"))
	n.cmd.Dir = n.dir
	n.cmd.Env = append(os.Environ(), commandVar+"=yes", "HOME="+n.dir, "XDG_DATA_HOME="+filepath.Join(n.dir, n.name+".data"))
	output, err := os.OpenFile(filepath.Join(n.dir, n.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	harness.Must(n.t, err)
	defer output.Close()
	n.cmd.Stdout, n.cmd.Stderr = output, output
	n.started = time.Now()
	harness.Must(n.t, n.cmd.Start())
	n.t.Cleanup(n.kill)
}

// kill ends it as kill -9 does.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	n.kills++
}

// forget kills the node, and deletes what it has.
func (n *node) forget() {
	n.t.Helper()
	n.kill()
	harness.Must(n.t, os.RemoveAll(filepath.Join(n.dir, n.name)))
}

// first waits for the first sitemap, and returns how long that took.
func (n *node) first() time.Duration {
	n.t.Helper()
	n.eventually(patience, func() bool { return n.get("/sitemap.xml").status == http.StatusOK })
	return time.Since(n.started)
}

// kills is the time from the kill of one node to that of the next.
const kills = 2 * time.Second

// chaos kills a random node now and again and starts it at once, while change is called ten times a second. The next one
// is killed when the last one is up again: else none may be left.
func (f *fleet) chaos(d time.Duration, change func(i int)) {
	f.t.Helper()
	last, isDown := time.Now(), new(atomic.Bool)
	for i := range int(d / (100 * time.Millisecond)) {
		change(i)
		if time.Since(last) >= kills && !isDown.Load() {
			n := f.nodes[rand.IntN(len(f.nodes))]
			n.kill()
			n.start()
			last = time.Now()
			isDown.Store(true)
			go func() {
				for n.get("/sitemap.xml").status != http.StatusOK && time.Since(last) < patience {
					time.Sleep(breath)
				}
				isDown.Store(false)
			}()
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, n := range f.nodes {
		n.first()
	}
}
