//go:build unix

package storages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of a test.
type Server struct {
	Socket string // on which it listens
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
}

// StartServer starts redis-server, which ends with the test. Where there is none, the test is skipped.
func StartServer(t *testing.T) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("NOT RUN: redis-server is not installed")
	}
	dir, err := os.MkdirTemp("", "redis") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Socket: filepath.Join(dir, "redis.sock"), t: t, dir: dir}
	s.Start()
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	return s
}

// Start starts it again after Kill, with what it had.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.Socket, "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "no", "--logfile", "redis.log")
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	client := s.client()
	for until := time.Now().Add(time.Minute); client.Ping(context.Background()).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "redis.log"))
			s.t.Fatalf("redis-server does not respond: %s", log)
		}
	}
}

// Kill ends it at once.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Pause lets it accept connections, and respond to nothing; Resume ends that.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume is the end of Pause.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// Lose deletes all that it has.
func (s *Server) Lose() {
	s.t.Helper()
	if err := s.client().FlushAll(context.Background()).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// client returns a connection that is closed with the test.
func (s *Server) client() *redis.Client {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket, MaxRetries: -1})
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}
