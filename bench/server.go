package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	patience  = 30 * time.Minute // with what a server is to come to
	stopGrace = 10 * time.Second
	clockTick = 0.01 // seconds, of times in /proc
)

// server is a running Caddy. Its admin endpoint, log and state are its own.
type server struct {
	cmd                    *exec.Cmd
	begun                  time.Time
	exited                 chan struct{}
	addr, admin, log, said string
	config                 string
	state                  string
	seen                   int // lines of its log
}

// site is the Caddyfile of a site with these directives, at a port of its own.
func site(addr string, directives ...string) string {
	return fmt.Sprintf("http://%s {\nbind 127.0.0.1\n%s\n}\n", addr, strings.Join(directives, "\n"))
}

// serve starts Caddy for a site with these directives, with nothing to remember.
func (b *bench) serve(name string, directives []string) *server {
	addr := freeAddr()
	check(os.RemoveAll(b.path(name)))
	return b.start(name, addr, site(addr, directives...))
}

// start starts Caddy with the sites of a Caddyfile, the first of which is at addr. What it
// writes, and remembers of an earlier start, is in the folder of that name.
func (b *bench) start(name, addr, sites string) *server {
	program := must(os.Executable())
	dir := b.path(name)
	s := &server{
		config: filepath.Join(dir, "Caddyfile"), addr: addr, admin: freeAddr(), exited: make(chan struct{}),
		log: filepath.Join(dir, "refreshes"), said: filepath.Join(dir, "output"), state: filepath.Join(dir, "state"),
	}
	check(os.MkdirAll(dir, 0o755), os.RemoveAll(s.log), s.configure(sites))
	output := must(os.Create(s.said))
	defer output.Close()
	s.cmd = exec.Command(program, "run", "--config", s.config, "--adapter", "caddyfile")
	s.cmd.Stdout = output
	s.cmd.Stderr = output
	s.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	s.begun = time.Now()
	check(s.cmd.Start())
	b.servers = append(b.servers, s)
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	return s
}

// configure writes its Caddyfile.
func (s *server) configure(sites string) error {
	return os.WriteFile(s.config, fmt.Appendf(nil, `{
admin %s
persist_config off
log refreshes {
output file %q
format json
level DEBUG
include http.handlers.sitemap
}
sitemap {
state %q
}
}
%s`, s.admin, s.log, s.state, sites), 0o644)
}

// stop ends the server and waits for it.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.exited:
	case <-time.After(stopGrace):
		s.kill()
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// base is what the URLs of the site begin with, and sitemap that of its sitemap.
func (s *server) base() string    { return "http://" + s.addr }
func (s *server) sitemap() string { return s.base() + "/sitemap.xml" }

// until tries something over and over until it is done, has failed, or takes too long.
func (s *server) until(ctx context.Context, what string, try func() (done bool, err error)) error {
	for deadline := time.Now().Add(patience); ; {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.exited:
			said, _ := os.ReadFile(s.said)
			return fmt.Errorf("the server ended before %s; it wrote:\n%s", what, said)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s in %s", what, patience)
		}
	}
}

// first waits for the first 200 to a URL, and returns the seconds since the start.
func (s *server) first(ctx context.Context, url string) (took float64, err error) {
	err = s.until(ctx, "200 of "+url, func() (bool, error) {
		status, _, err := get(ctx, url)
		took = time.Since(s.begun).Seconds()
		if err == nil && status != http.StatusOK && status != http.StatusServiceUnavailable {
			return false, fmt.Errorf("%s returns %d", url, status)
		}
		return err == nil && status == http.StatusOK, nil
	})
	return took, err
}

// report is what the log says of a refresh.
type report struct {
	Message string  `json:"msg"`
	At      float64 `json:"ts"` // Unix seconds
	Pages   int     `json:"pages"`
	Pending int     `json:"pending"`
}

// refreshed waits for a refresh that fulfils a condition, and returns how many refreshes
// were logged since the last call.
func (s *server) refreshed(ctx context.Context, fulfils func(report) bool) (last report, n int, err error) {
	err = s.until(ctx, "refresh as it was to be", func() (bool, error) {
		log, err := os.ReadFile(s.log)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		lines := strings.SplitAfter(string(log), "\n")
		for _, line := range lines[min(s.seen, len(lines)-1) : len(lines)-1] {
			s.seen++
			var r report
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return false, err
			}
			if !strings.HasPrefix(r.Message, "sitemap refreshed") {
				continue
			}
			if n, last = n+1, r; fulfils(r) {
				return true, nil
			}
		}
		return false, nil
	})
	return last, n, err
}

// listed waits until all of so many pages are listed and none is to be fetched, and returns
// the seconds since the start.
func (s *server) listed(ctx context.Context, pages int) (float64, error) {
	r, _, err := s.refreshed(ctx, func(r report) bool { return r.Pages >= pages && r.Pending == 0 })
	if err == nil && r.Pages != pages {
		err = fmt.Errorf("%d pages are listed, not %d", r.Pages, pages)
	}
	return r.At - float64(s.begun.UnixNano())/1e9, err
}

// refresh has the site refreshed through the admin endpoint, and returns the processor
// seconds of a refresh, and whether it changed something.
func (s *server) refresh(ctx context.Context) (uses float64, changed bool, err error) {
	before, err := s.processor()
	if err != nil {
		return 0, false, err
	}
	if _, _, err = do(ctx, http.MethodPost, "http://"+s.admin+"/sitemap/refresh"); err != nil {
		return 0, false, err
	}
	r, n, err := s.refreshed(ctx, func(report) bool { return true })
	if err != nil {
		return 0, false, err
	}
	after, err := s.processor()
	return (after - before) / float64(n), !strings.HasSuffix(r.Message, "nothing changed"), err
}

// settle refreshes until nothing changes any more.
func (s *server) settle(ctx context.Context) error {
	for range 20 {
		if _, changed, err := s.refresh(ctx); err != nil || !changed {
			return err
		}
	}
	return errors.New("refreshes go on changing something")
}

// processor is the processor seconds that the server has used, in the kernel too.
func (s *server) processor() (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name before may have spaces
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return float64(user+system) * clockTick, errors.Join(err, err2)
}

// memory is the bytes of the heap that live on after a collection, or two, since what lies
// in a pool survives the first, and the most that the server had resident before that.
func (s *server) memory(ctx context.Context) (heap, peak float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &peak); err != nil {
		return 0, 0, err
	}
	for range 2 {
		_, profile, err := get(ctx, "http://"+s.admin+"/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return 0, 0, err
		}
		_, rest, _ := strings.Cut(string(profile), "# HeapAlloc =")
		if _, err := fmt.Sscan(rest, &heap); err != nil {
			return 0, 0, err
		}
	}
	return heap, peak * 1024, nil
}

// stored is the bytes of all files of the server's state.
func (s *server) stored() (size float64, err error) {
	err = filepath.WalkDir(s.state, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += float64(info.Size())
		}
		return err
	})
	return size, err
}

// run runs a command.
func run(ctx context.Context, name string, args ...string) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		check(fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out))
	}
}

// freeAddr is an address of the loopback interface at which nobody listens.
func freeAddr() string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func get(ctx context.Context, url string) (status int, body []byte, err error) {
	return do(ctx, http.MethodGet, url)
}

// do makes a request, and returns the body as it was sent.
func do(ctx context.Context, method, url string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
