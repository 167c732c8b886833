package discovery

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestDiscoverForbiddenLog is a log that may not be read until its owner allows it. Since
// root may read all, it is another user's process that reads it then.
func TestDiscoverForbiddenLog(t *testing.T) {
	s := prepare(t, map[string]string{"logs/": "", "state/": ""})
	app := startApplication(t)
	name := filepath.Join(s.Dir, "logs", "access.log")
	if err := os.WriteFile(name, []byte(s.visitAt(time.Now(), "203.0.113.9", "/about")), 0); err != nil {
		t.Fatal(err)
	}
	caddyfile := "{\n sitemap {\n state {dir}/state\n }\n" + app.in(discovering("access_log {dir}/logs/access.log"))[2:]
	if os.Getuid() == 0 {
		s.asNobody(caddyfile)
	} else if err := s.Load(caddyfile); err != nil {
		t.Fatal(err)
	}
	s.Eventually(func() bool {
		_, err := os.Stat(s.Log)
		return err == nil && len(s.LogLines("a log cannot be read", "permission denied", name)) > 0
	}, func() string { return "nothing is said of it" })
	s.wantPages("/")
	if r := s.Get(harness.Local + "/about"); r.StatusCode != http.StatusOK {
		t.Errorf("status %d", r.StatusCode)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	s.wantPages("/", "/about")
}

// asNobody runs a Caddyfile in a process of a user that owns nothing.
func (s *server) asNobody(caddyfile string) {
	s.T.Helper()
	const nobody = 65534
	program := filepath.Join(s.Dir, "caddytest")
	binary, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, binary, 0o755)
	}
	for _, folder := range []string{filepath.Dir(s.Log), filepath.Join(s.Dir, "state"), os.Getenv("XDG_DATA_HOME")} {
		if err == nil {
			err = os.Chmod(folder, 0o777)
		}
	}
	if err == nil {
		err = os.Chmod(filepath.Dir(s.Dir), 0o755)
	}
	var config []byte
	if err == nil {
		config, err = s.Adapt(caddyfile)
	}
	file := filepath.Join(s.Dir, "child.json")
	if err == nil {
		err = os.WriteFile(file, config, 0o644)
	}
	if err != nil {
		s.T.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir = s.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	s.RunAsChild(cmd, file)
}
