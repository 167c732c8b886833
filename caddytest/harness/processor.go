package harness

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// ProcessorTime is how much of it a process has taken, in the kernel, too; false: this system does not say it. See proc(5).
func ProcessorTime(pid int) (took time.Duration, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	const user, system = 11, 12                                     // after the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before may have spaces
	if len(fields) <= system {
		return 0, false
	}
	const ticks = 100 // a second, on all systems that have the file
	for _, field := range [][]byte{fields[user], fields[system]} {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, false
		}
		took += time.Duration(n) * time.Second / ticks
	}
	return took, true
}
