//go:build unix

package accesslog

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestNotRegular follows what would hold up who opens it.
func TestNotRegular(t *testing.T) {
	d := newFolder(t, "*.log", "fifo/access.log")
	d.check(syscall.Mkfifo(d.at("a.log"), 0o644))
	d.check(syscall.Mkfifo(d.at("fifo"), 0o644))
	d.check(os.Symlink("/dev/zero", d.at("b.log")))
	d.check(os.Symlink("e.log", d.at("e.log")))
	l, err := net.Listen("unix", d.at("c.log"))
	d.check(err)
	defer l.Close()
	d.write("d.log", "1\n")
	d.want("1")
	d.wantNothing()
	if s := d.Stats(); s.PassedOver[NotRegular] != 3 || s.PassedOver[Unreadable] != 1 || s.Errors[d.at("fifo")] == nil || s.Errors[d.at("e.log")] == nil {
		t.Errorf("got %+v", s)
	}
	if _, err := open(d.at("a.log"), id{}); err != errNotRegular {
		t.Errorf("got %v: it became a FIFO after it was examined", err)
	}
	d.remove("d.log")
	d.check(syscall.Mkfifo(d.at("d.log"), 0o644))
	d.want()
	d.wantNothing()
}

// TestUnreadableForAWhile: what could not be read is tried again with the next poll,
// although its folder has not changed.
func TestUnreadableForAWhile(t *testing.T) {
	d, elsewhere := newFolder(t, "a.log"), t.TempDir()
	target := filepath.Join(elsewhere, "a.log")
	d.check(os.Symlink(target, target))
	d.check(os.Symlink(target, d.at("a.log")))
	old := time.Now().Add(-time.Hour)
	d.check(os.Chtimes(d.path, old, old))
	for range 3 {
		d.want()
	}
	if s := d.Stats(); s.Errors[d.at("a.log")] == nil {
		t.Errorf("got %+v, want an error", s)
	}
	d.check(os.Remove(target))
	d.check(os.WriteFile(target, []byte("1\n"), 0o644))
	d.want("1")
}
