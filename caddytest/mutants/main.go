// Command mutants tests the tests. It breaks the product at random places, one at a time,
// and looks whether the tests of the package that is broken notice:
//
//	go run ./caddytest/mutants [-seed 1] [-n 200] [-short] [-jobs 2] [-at page.go:31] [package...]
//
// The mutants are shared out over the root and all packages of internal by their size. With
// packages, only their share of the mutants is run. The same seed has the same mutants, as
// long as a package is the same; -at tries all mutants of some lines. No file is changed: the
// compiler is given others (-overlay).
//
// It prints what became of each mutant. One that survives shows that a test is missing, that
// the code is superfluous, or that the mutant does the same as the code. It fails if more
// than a twentieth survives.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"hash/fnv"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// longest is how long a program may run. Tests end by a timeout of their own, unless the mutant
// hangs before they begin.
const longest = 25 * time.Minute

var errHangs = errors.New("it hangs")

// fewest is how many mutants the smallest package has.
const fewest = 3

// aPackage is one whose tests are tested.
type aPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	TestGoFiles     []string
	XTestGoFiles    []string

	name    string   // as go test takes it, such as ./internal/page
	hasLong bool     // tests that -short spares
	leftOut []string // tests that fail without a mutant
	mutants []mutant
	tokens  int
	share   int // of the mutants that are asked for
}

// fates are what becomes of a mutant, with how many of a package.
type fates struct {
	killed, survived, timeout, invalid int
}

// trial is one run of the program.
type trial struct {
	seed  uint64
	short bool
	jobs  int
	work  string // a folder for what the tests and this program write
}

func main() {
	log.SetFlags(0)
	var t trial
	var n int
	flag.Uint64Var(&t.seed, "seed", 1, "which mutants are chosen")
	flag.IntVar(&n, "n", 200, "number of mutants of all packages")
	flag.BoolVar(&t.short, "short", false, "run the short tests only")
	flag.IntVar(&t.jobs, "jobs", 2, "mutants that are tested at once")
	at := flag.String("at", "", "try all mutants at these places, with commas between them, instead of a choice")
	flag.Parse()

	packages, err := list()
	if err != nil {
		log.Fatal(err)
	}
	shareOut(packages, n)
	if flag.NArg() > 0 {
		packages = slices.DeleteFunc(packages, func(p *aPackage) bool { return !slices.Contains(flag.Args(), p.name) })
	}
	if *at != "" {
		for _, p := range packages {
			p.keep(strings.Split(*at, ","))
		}
	}
	t.work, err = os.MkdirTemp("", "mutants")
	if err == nil {
		err = os.Chmod(t.work, 0o755) // as /tmp is: a test may change to a user without privileges
	}
	if err != nil {
		log.Fatal(err)
	}
	all, err := t.run(packages)
	_ = os.RemoveAll(t.work)
	if err != nil {
		log.Fatal(err)
	}
	if all.survived*20 > all.killed+all.timeout+all.survived {
		log.Fatal("too many mutants survive")
	}
}

// list returns the packages of the product, with all their mutants.
func list() ([]*aPackage, error) {
	// It leaves out the files of other systems, whose mutants would not be compiled.
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles", ".", "./internal/...").Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	var packages []*aPackage
	var module string
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(aPackage)
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		if module == "" {
			module = p.ImportPath
		}
		p.name = "." + strings.TrimPrefix(p.ImportPath, module)
		if err := p.read(); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

func (p *aPackage) read() error {
	for _, file := range p.GoFiles {
		path := filepath.Join(p.Dir, file)
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mutants, err := find(path, source)
		if err != nil {
			return err
		}
		p.mutants = append(p.mutants, mutants...)
		p.tokens += tokens(source)
	}
	for _, file := range append(p.TestGoFiles, p.XTestGoFiles...) {
		source, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return err
		}
		p.hasLong = p.hasLong || bytes.Contains(source, []byte("testing.Short()"))
	}
	return nil
}

func tokens(source []byte) (count int) {
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", -1, len(source)), source, nil, 0)
	for {
		if _, kind, _ := s.Scan(); kind == token.EOF {
			return count
		}
		count++
	}
}

// shareOut sets how many of n mutants each package has: in proportion to its tokens, with a
// few for the smallest.
func shareOut(packages []*aPackage, n int) {
	for _, p := range packages {
		p.share = fewest
	}
	for range n - fewest*len(packages) {
		next := slices.MaxFunc(packages, func(a, b *aPackage) int { return a.tokens*b.share - b.tokens*a.share })
		next.share++
	}
}

// keep keeps the mutants at some places, and has all of them tried.
func (p *aPackage) keep(places []string) {
	p.mutants = slices.DeleteFunc(p.mutants, func(m mutant) bool { return !slices.Contains(places, m.place()) })
	p.share = len(p.mutants)
}

func (t *trial) run(packages []*aPackage) (all fates, err error) {
	totals := make(map[*aPackage]fates)
	for _, p := range packages {
		if totals[p], err = t.try(p); err != nil {
			return all, err
		}
	}
	fmt.Printf("\n%-24s %8s %8s %8s %8s %8s\n", "", "tokens", "killed", "timeout", "survived", "invalid")
	for _, p := range packages {
		f := totals[p]
		fmt.Printf("%-24s %8d %8d %8d %8d %8d\n", p.name, p.tokens, f.killed, f.timeout, f.survived, f.invalid)
		all.killed += f.killed
		all.timeout += f.timeout
		all.survived += f.survived
		all.invalid += f.invalid
	}
	fmt.Printf("%-24s %8s %8d %8d %8d %8d\n", "all", "", all.killed, all.timeout, all.survived, all.invalid)
	return all, nil
}

// try runs the tests of a package on its share of the mutants, several at once.
func (t *trial) try(p *aPackage) (fates, error) {
	if len(p.mutants) == 0 {
		return fates{}, nil // measuring takes long
	}
	tests, err := t.measure(p)
	if err != nil {
		return fates{}, err
	}
	// The choice depends on the package alone, so that it can be repeated alone.
	name := fnv.New64()
	_, _ = name.Write([]byte(p.name))
	random := rand.New(rand.NewPCG(t.seed, name.Sum64()))
	random.Shuffle(len(p.mutants), func(i, j int) { p.mutants[i], p.mutants[j] = p.mutants[j], p.mutants[i] })

	var mu sync.Mutex // guards what follows
	var f fates
	next := 0
	underWay := 0
	take := func() (m mutant, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		// One that turns out to be invalid leaves its place to another.
		if f.killed+f.survived+f.timeout+underWay == p.share || next == len(p.mutants) {
			return m, false
		}
		m = p.mutants[next]
		next++
		underWay++
		return m, true
	}
	note := func(m mutant, fate, by string) {
		mu.Lock()
		defer mu.Unlock()
		underWay--
		switch fate {
		case "invalid":
			f.invalid++
			return
		case "killed":
			f.killed++
		case "survived":
			f.survived++
		case "timeout":
			f.timeout++
		}
		fmt.Printf("%-8s %s/%s: %s %s\n%s", fate, p.name, m.place(), m.kind, by, m.diff())
	}
	var failed error
	var running sync.WaitGroup
	for range t.jobs {
		running.Go(func() {
			for m, ok := take(); ok; m, ok = take() {
				fate, by, err := t.test(p, m, tests)
				if err != nil {
					fate = "invalid"
					mu.Lock()
					failed = err
					mu.Unlock()
				}
				note(m, fate, by)
			}
		})
	}
	running.Wait()
	return f, failed
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test says what became of a mutant, and which test found it.
func (t *trial) test(p *aPackage, m mutant, tests []measured) (fate, by string, err error) {
	folder, err := os.MkdirTemp(t.work, "mutant")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program := filepath.Join(folder, "mutant.test")
	overlay, err := writeOverlay(folder, m)
	if err != nil {
		return "", "", err
	}
	if t.command(p.Dir, "go", "test", "-c", "-ldflags=-w", "-overlay", overlay, "-o", program, ".") != nil {
		return "invalid", "", nil
	}
	var names []string
	// A machine that is busy with something else should kill no mutant.
	patience := 30 * time.Second
	for _, test := range reaching(tests, m) {
		names = append(names, test.name)
		patience += 3 * test.takes
	}
	var runs [][]string
	if len(names) > 0 {
		reach := "^(" + strings.Join(names, "|") + ")$"
		runs = append(runs, []string{"-test.short", "-test.timeout", patience.String(), "-test.run", reach})
	}
	if p.hasLong && !t.short {
		flags := []string{"-test.timeout", "20m"}
		if len(p.leftOut) > 0 {
			flags = append(flags, "-test.skip", "^("+strings.Join(p.leftOut, "|")+")$")
		}
		runs = append(runs, flags)
	}
	if len(runs) == 0 {
		return "survived", "no test reaches it", nil
	}
	for _, flags := range runs {
		if err := t.command(p.Dir, program, append(flags, "-test.failfast")...); err != nil {
			fate, by = cause(err)
			return fate, by, nil
		}
	}
	return "survived", "", nil
}

// cause says from what failing tests print what became of a mutant.
func cause(err error) (fate, by string) {
	text := err.Error()
	if errors.Is(err, errHangs) || strings.Contains(text, "panic: test timed out") {
		return "timeout", ""
	}
	if test := failed.FindStringSubmatch(text); test != nil {
		return "killed", "by " + test[1]
	}
	return "killed", "by a panic"
}

// writeOverlay writes a mutant into a folder, and what tells the compiler of it.
func writeOverlay(folder string, m mutant) (string, error) {
	file := filepath.Join(folder, "mutant.go")
	if err := os.WriteFile(file, m.mutated(), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {m.path: file}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// command runs a program. Its error has what was printed.
func (t *trial) command(folder, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = folder
	// A test that is stopped leaves its temporary folders, and a mutant may write where the
	// product keeps what it knows.
	command.Env = append(os.Environ(), "TMPDIR="+t.work, "XDG_DATA_HOME="+t.work)
	command.WaitDelay = 10 * time.Second // for what a test has started and not ended
	out, err := command.CombinedOutput()
	if ctx.Err() != nil {
		err = errHangs
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return nil
}
