package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of times in /proc, which for programs is the same on every
// kernel that Go runs on.
const clockTick = time.Second / 100

// processorTime is what a process has used so far, in its own code and for it in
// the kernel.
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the program may hold spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("reading /proc/%d/stat: too short", pid)
	}
	u, err := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	return time.Duration(u+s) * clockTick, errors.Join(err, err2)
}

// peakMemory is the most memory that a process had resident so far, in bytes.
func peakMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("reading /proc/%d/status: it has no VmHWM", pid)
}

// peakOf is the most memory that a process that has ended had resident, in bytes.
func peakOf(ended *os.ProcessState) int64 {
	usage, _ := ended.SysUsage().(*syscall.Rusage)
	if usage == nil {
		return 0
	}
	return usage.Maxrss << 10
}

// load says how busy the machine is, for whoever reads the figures.
func load() string {
	average, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load unknown"
	}
	one, _, _ := strings.Cut(string(average), " ")
	return "load " + one
}
