package main

import (
	"bytes"
	"context"

	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// longestStart is how long a server may take to its first answer, and longestStop
// how long to its end.
const (
	longestStart = 30 * time.Minute
	longestStop  = 10 * time.Second
)

// server is a running Caddy.
type server struct {
	cmd    *exec.Cmd
	begun  time.Time
	exited chan struct{}
	output string // the file that has what it wrote
}

// freeAddr is an address of the loopback interface that no one listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// launch starts a Caddy. Its configuration is a Caddyfile, or JSON where its name
// says so, and is written to the work folder before the clock starts.
func (b *bench) launch(binary, name, config string, env ...string) (*server, error) {
	file := b.path(name)
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	args := []string{"run", "--config", file}
	if filepath.Ext(name) != ".json" {
		args = append(args, "--adapter", "caddyfile")
	}
	s := &server{cmd: exec.Command(binary, args...), exited: make(chan struct{}), output: file + ".log"}
	output, err := os.Create(s.output)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	s.cmd.Stdout, s.cmd.Stderr = output, output
	s.cmd.Dir = b.work
	s.cmd.Env = append(os.Environ(), "HOME="+b.path("home"), "XDG_CONFIG_HOME="+b.path("home", "config"), "XDG_DATA_HOME="+b.path("home", "data"))
	s.cmd.Env = append(s.cmd.Env, env...)
	s.begun = time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	return s, nil
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// stop ends the server and waits for it.
func (s *server) stop() {
	if s.cmd.Process.Signal(os.Interrupt) != nil {
		_ = s.cmd.Process.Kill()
	}
	select {
	case <-s.exited:
	case <-time.After(longestStop):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// died is an error with the last of what the server wrote.
func (s *server) died(why string) error {
	written, _ := os.ReadFile(s.output)
	lines := bytes.Split(bytes.TrimSpace(written), []byte("\n"))
	last := bytes.Join(lines[max(0, len(lines)-8):], []byte("\n"))
	return fmt.Errorf("%s; the server wrote:\n%s", why, last)
}

// client asks over connections that it keeps, and sees bodies as they are sent.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4}}

// first asks for a URL until the server answers with 200 and returns how long that
// took from its start. It connects as soon as someone listens; it is then the server
// that waits until it has something to say.
func (s *server) first(ctx context.Context, url string) (time.Duration, error) {
	defer client.CloseIdleConnections()
	for time.Since(s.begun) < longestStart {
		status, _, err := get(ctx, url)
		took := time.Since(s.begun)
		pause := time.Millisecond
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case err == nil && status == http.StatusOK:
			return took, nil
		case err == nil && status != http.StatusServiceUnavailable:
			return 0, s.died(fmt.Sprintf("%s answers %d", url, status))
		case err == nil:
			pause = 10 * time.Millisecond
		}
		select {
		case <-s.exited:
			return 0, s.died("the server ended")
		case <-time.After(pause):
		}
	}
	return 0, s.died(fmt.Sprintf("no answer in %s", longestStart))
}

// get asks for a URL as a client that takes gzip.
func get(ctx context.Context, url string) (int, []byte, error) {
	status, _, body, err := ask(ctx, url)
	return status, body, err
}

func ask(ctx context.Context, url string) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, err
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	status, body, err := get(ctx, url)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s answers %d", url, status)
	}
	return body, err
}
