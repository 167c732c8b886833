package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// atOnce is how many tests are measured at a time: most of them wait most of the time.
const atOnce = 4

// A block is a part of a file whose statements all run or none does.
type block struct {
	file                                   string // without its folder
	firstLine, firstCol, lastLine, lastCol int
	runs                                   bool
}

// A measured test is what is known of a test of a package without a mutant.
type measured struct {
	name   string
	blocks []block // all of the package
	takes  time.Duration
}

// measure runs each test of a package alone, to know which mutants it could find.
func (t *trial) measure(p *aPackage) ([]measured, error) {
	program := filepath.Join(t.work, "measured.test")
	defer func() { _ = os.Remove(program) }()
	if err := t.command(p.Dir, "go", "test", "-c", "-cover", "-o", program, "."); err != nil {
		return nil, err
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it has no tests
	}
	list := exec.Command(program, "-test.list", "^(Test|Fuzz|Example)")
	list.Dir = p.Dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s: %w", p.name, err)
	}
	names := strings.Fields(string(out))
	tests := make([]measured, len(names))
	var mu sync.Mutex // guards p.leftOut
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		running.Go(func() {
			var err error
			tests[i], err = t.measureTest(p, program, name)
			if err != nil {
				// It would seem to kill each mutant. Others may.
				fmt.Printf("left out: %v\n", err)
				mu.Lock()
				p.leftOut = append(p.leftOut, name)
				mu.Unlock()
			}
			<-slots
		})
	}
	running.Wait()
	return slices.DeleteFunc(tests, func(m measured) bool { return slices.Contains(p.leftOut, m.name) }), nil
}

func (t *trial) measureTest(p *aPackage, program, name string) (measured, error) {
	m := measured{name: name}
	profile := filepath.Join(t.work, name+".cover")
	defer func() { _ = os.Remove(profile) }()
	begin := time.Now()
	args := []string{"-test.run", "^" + name + "$", "-test.short", "-test.coverprofile", profile}
	if err := t.command(p.Dir, program, args...); err != nil {
		return m, err
	}
	m.takes = time.Since(begin)
	text, err := os.ReadFile(profile)
	if err != nil {
		return m, err
	}
	m.blocks = blocks(string(text))
	return m, nil
}

// blocks reads a profile as go test -coverprofile writes it.
func blocks(profile string) (all []block) {
	for line := range strings.Lines(profile) {
		name, rest, _ := strings.Cut(line, ":")
		b := block{file: path.Base(name)}
		var statements, runs int
		n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.firstLine, &b.firstCol, &b.lastLine, &b.lastCol, &statements, &runs)
		if n == 6 { // the first line says how runs are counted
			b.runs = runs > 0
			all = append(all, b)
		}
	}
	return all
}

// has reports whether a mutant is in the block.
func (b block) has(m mutant) bool {
	begins := b.firstLine < m.line || b.firstLine == m.line && b.firstCol <= m.column
	ends := m.line < b.lastLine || m.line == b.lastLine && m.column < b.lastCol
	return b.file == filepath.Base(m.path) && begins && ends
}

// isIn reports whether the block is in the function of a mutant.
func (b block) isIn(m mutant) bool {
	return b.file == filepath.Base(m.path) && m.function.first <= b.firstLine && b.lastLine <= m.function.last
}

// reaching returns the tests that run the code that a mutant changes.
func reaching(tests []measured, m mutant) []measured {
	if m.function == nil {
		return tests // its values are made for all tests
	}
	// The conditions of a switch, for instance, are in no block: then any in the function will do.
	isReached := block.isIn
	for _, test := range tests {
		for _, b := range test.blocks {
			if b.has(m) {
				isReached = block.has
			}
		}
	}
	var reach []measured
	for _, test := range tests {
		for _, b := range test.blocks {
			if b.runs && isReached(b, m) {
				reach = append(reach, test)
				break
			}
		}
	}
	return reach
}
