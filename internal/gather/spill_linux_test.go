package gather

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestSpillDiskFull spills to a device that is always full, which other systems lack.
func TestSpillDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := collector{pages: stubborn(pathsOf("/c", "/b", "/a")), spill: spill{file: full, removed: true}}
	defer c.spill.close()
	c.table.init(40)
	c.run(t.Context())
	if !errors.Is(c.err, syscall.ENOSPC) || !strings.HasPrefix(c.err.Error(), "spilling pages: ") {
		t.Errorf("got %v", c.err)
	}
	runs := c.runs(func(err error) { t.Error(err) })
	if got := runs[len(runs)-1](); len(runs) != 1 || paths(got) != "/b /c" {
		t.Errorf("got %d runs, %v: what was in memory counts", len(runs), got)
	}
}
