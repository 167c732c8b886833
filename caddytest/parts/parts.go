// Package parts divides the tests of a package among processes: there is one Caddy in a process, for which a test waits most of
// the time.
package parts

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// partVar, in the environment, says that a process runs a part of a package's tests.
const partVar = "CADDYTEST_PART"

// processes is how many parts of a package's tests run at once.
const processes = 12

// IsWhole reports whether the tests of a package run as a whole: nobody has chosen some of them, or wants of this process
// something else than to know whether they pass. What -skip names is left out of each part.
func IsWhole() bool {
	if os.Getenv(partVar) != "" {
		return false
	}
	areAll := true
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "test.run", "test.list", "test.bench", "test.fuzz",
			"test.coverprofile", "test.cpuprofile", "test.memprofile", "test.trace":
			areAll = areAll && f.Value.String() == ""
		}
	})
	return areAll
}

// Run runs the tests of a package in several processes, and returns the exit code. slow are patterns of the names, without Test, of
// those that take seconds: each has a process of its own, or is left out with -short. Those that take longest come first.
func Run(slow []string) (code int) {
	list := exec.Command(os.Args[0], "-test.list=^Test")
	list.Env = append(os.Environ(), partVar+"=1")
	names, err := list.Output()
	if err != nil {
		fmt.Println("listing tests:", err)
		return 1
	}
	var running sync.WaitGroup
	var printing sync.Mutex
	slots := make(chan struct{}, processes)
	for _, tests := range partsOf(strings.Fields(string(names)), slow, testing.Short()) {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			output, err := runPart(tests)
			printing.Lock()
			defer printing.Unlock()
			if err != nil {
				code = 1
			}
			if err != nil || testing.Verbose() {
				_, _ = os.Stdout.Write(output)
			}
		})
	}
	running.Wait()
	return code
}

// partsOf divides tests: each slow one is a part of its own, in the order of the patterns, unless these are left out; the others are
// dealt out.
func partsOf(names, slow []string, isShort bool) (parts [][]string) {
	quick := slices.Clone(names)
	for _, pattern := range slow {
		isSlow := regexp.MustCompile(Pattern(pattern)).MatchString
		for _, name := range quick {
			if isSlow(name) && !isShort {
				parts = append(parts, []string{name})
			}
		}
		quick = slices.DeleteFunc(quick, isSlow)
	}
	dealt := make([][]string, min(processes, len(quick)))
	for i, name := range quick {
		dealt[i%processes] = append(dealt[i%processes], name)
	}
	return append(parts, dealt...)
}

// Pattern is that of the names of all slow tests, as for the flag -run.
func Pattern(slow ...string) string { return "^Test(" + strings.Join(slow, "|") + ")$" }

// runPart runs some tests in a process of their own, and returns what it has printed.
func runPart(tests []string) ([]byte, error) {
	// Each process would write the log of what it has read, by which go test knows whether an old result still holds. Without
	// that log, it runs the tests again.
	isLog := func(arg string) bool { return strings.HasPrefix(arg, "-test.testlogfile=") }
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), isLog)
	pattern := "^(" + strings.Join(tests, "|") + ")$"
	// Flags end where other arguments begin, so the choice of tests comes before all that go test has given.
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=" + pattern}, args...)...)
	cmd.Env = append(os.Environ(), partVar+"=1")
	var output bytes.Buffer
	cmd.Stdout = &output
	cmd.Stderr = &output
	err := cmd.Run()
	return output.Bytes(), err
}
