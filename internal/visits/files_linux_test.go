package visits

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFolderThatIsNotListed: a log that is named is read where its folder may be entered, but not read.
func TestFolderThatIsNotListed(t *testing.T) {
	d := newFolder(t, "logs/a.log", "logs/*.txt")
	d.write("logs/a.log", "1\n")
	d.check(os.Chmod(d.at("logs"), 0o111))
	t.Cleanup(func() { d.check(os.Chmod(d.at("logs"), 0o755)) })
	if os.Geteuid() == 0 {
		d.check(os.Chmod(filepath.Dir(d.path), 0o755))
		// Permissions do not hold for root, but for a thread that is nobody's to file systems.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_, err := unix.SetfsuidRetUid(65534)
		d.check(err)
		defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	}
	d.want("1")
	if len(d.errs) != 1 || !strings.Contains(d.errs["logs/*.txt"], "permission denied") {
		t.Errorf("got %v", d.errs)
	}
}
