package harness

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Of the environment: the file of the configuration that a process runs instead of
// tests, whether it is to have no home, for how many seconds files are quiet until a deployment is over, and what divides
// its patience.
const (
	childVar    = "CADDYTEST_CHILD"
	homelessVar = "CADDYTEST_HOMELESS"
	quietVar    = "CADDYTEST_QUIET"
	hasteVar    = "CADDYTEST_HASTE"
)

// Quiet is what a [Child] has in its environment so that dates of files wait for the end of a deployment, as they do for
// users, though not as long.
func Quiet(d time.Duration) string { return fmt.Sprintf("%s=%d", quietVar, d/time.Second) }

// Haste is what a [Child] has in its environment so that slow responses and sources, and requests that wait for them, have a
// fraction of the time that users give them.
func Haste(divisor int) string { return fmt.Sprintf("%s=%d", hasteVar, divisor) }

// runChild is what runs in another process: a Caddy with a configuration of JSON,
// until its input ends.
func runChild(file string) error {
	config, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if os.Getenv(homelessVar) != "" {
		for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HomePath", "AppData"} {
			_ = os.Unsetenv(name)
		}
	}
	if seconds := os.Getenv(quietVar); seconds != "" {
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			return err
		}
		indexing.Minute = n / 2 // a deployment is over after two minutes
	}
	if divisor := os.Getenv(hasteVar); divisor != "" {
		n, err := strconv.Atoi(divisor)
		if err != nil {
			return err
		}
		wait.Haste = time.Duration(n)
	}
	if err := caddy.Load(config, false); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return caddy.Stop()
}

// Child is a Caddy in a process of its own.
type Child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	output bytes.Buffer
	once   sync.Once
}

// Child runs a Caddyfile in another process, with more in its environment: with
// CADDYTEST_HOMELESS=1 it has no home folder. It ends with the test at the latest.
func (s *Server) Child(caddyfile string, env ...string) *Child {
	s.T.Helper()
	config, err := s.Adapt(caddyfile)
	file := filepath.Join(s.Dir, "child.json")
	if err == nil {
		err = os.WriteFile(file, config, 0o600)
	}
	Must(s.T, err)
	temp := filepath.Join(s.Dir, "tmp")
	if err := os.MkdirAll(temp, 0o755); err != nil {
		s.T.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Dir = temp
	cmd.Env = append(append(os.Environ(), "TMPDIR="+temp, childVar+"="+file), env...)
	c := &Child{cmd: cmd}
	cmd.Stdout, cmd.Stderr = &c.output, &c.output
	if c.stdin, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	Must(s.T, err)
	s.T.Cleanup(c.Kill)
	return c
}

// Pid is the number of the process.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Kill ends the process as kill -9 does.
func (c *Child) Kill() {
	c.once.Do(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		_ = c.stdin.Close()
	})
}

// Stop ends the process as a service manager does, and waits for its end.
func (c *Child) Stop() (err error) {
	c.once.Do(func() {
		_ = c.stdin.Close() // see runChild
		err = c.cmd.Wait()
	})
	return err
}

// Output kills the process, and returns what it has written.
func (c *Child) Output() string {
	c.Kill()
	return c.output.String()
}

// First waits for a child's first answer for the sitemap.
func (s *Server) First(c *Child) Response {
	s.T.Helper()
	var r Response
	s.Eventually(func() bool {
		var err error
		r, err = s.Try(http.MethodGet, Local+"/sitemap.xml")
		return err == nil
	}, func() string { return "no answer\n" + c.Output() + s.SitemapLog() })
	return r
}
