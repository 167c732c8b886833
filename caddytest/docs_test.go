package caddytest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// shown is a fenced block of a page of documentation.
type shown struct{ page, language, text string }

// documentation are the pages for users, their fenced blocks, and the examples in the comments of the package.
func documentation(t *testing.T) (pages map[string]string, blocks []shown) {
	t.Helper()
	names, err := filepath.Glob("../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	pages = make(map[string]string)
	for _, name := range append(names, "../README.md", "../CONTRIBUTING.md") {
		pages[filepath.Base(name)] = read(t, name)
		var block *shown
		for line := range strings.Lines(read(t, name)) {
			switch language, isFence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
			case isFence && block == nil:
				block = &shown{page: filepath.Base(name), language: language}
			case isFence:
				blocks, block = append(blocks, *block), nil
			case block != nil:
				block.text += line
			}
		}
	}
	names, _ = filepath.Glob("../*.go")
	examples := regexp.MustCompile(`(?m)(?:^//\t.*\n)+`)
	for _, name := range names {
		for _, text := range examples.FindAllString(read(t, name), -1) {
			if text = strings.ReplaceAll(text, "//\t", ""); strings.Contains(text, `": `) {
				blocks = append(blocks, shown{filepath.Base(name), "json", text})
			} else if strings.Contains(text, "sitemap {\n") {
				blocks = append(blocks, shown{filepath.Base(name), "caddyfile", text})
			}
		}
	}
	return pages, blocks
}

// tried are the shell commands of the documentation, and what tries them.
var tried = map[string]string{
	"go run ./bench":                 "by hand: figures need a quiet machine",
	"go run ./bench -only freshness": "by hand: it takes half an hour",
	"xcaddy build --with github.com/seed3295b519/caddy-sitemap":       ".ci/run, of the checkout",
	"docker compose up --build":                                       "nothing: it takes a container engine",
	"go build ./cmd/caddy":                                            ".ci/run, by vetting",
	"go run ./cmd/caddy run --config examples/quickstart/Caddyfile":   "TestExamples",
	"go run ./cmd/caddy sitemap check --fetch http://localhost:8080/": "TestCheckOwn",
	"go test ./...":        ".ci/run",
	"go test -short ./...": ".ci/run",
	"go test -race ./...":  ".ci/run",
	"GOARCH=386 CGO_ENABLED=0 go test ./internal/...": ".ci/run",
	".ci/run":      "itself",
	".ci/layers":   ".ci/run",
	"gofmt -l .":   ".ci/run",
	"go vet ./...": ".ci/run",
	"go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...": ".ci/run",
}

// TestDocs loads every configuration that the documentation shows, and runs every command.
func TestDocs(t *testing.T) {
	_, blocks := documentation(t)
	s := startQuickstart(t)
	count := make(map[string]int)
	for _, b := range blocks {
		count[b.language]++
		t.Run(fmt.Sprintf("%s %s %d", b.page, b.language, count[b.language]), func(t *testing.T) {
			switch b.language {
			case "caddyfile":
				validCaddyfile(t, b.text)
			case "json":
				validJSON(t, b.text)
			case "console":
				for _, command := range strings.Split("\n"+b.text, "\n$ ")[1:] {
					line, want, _ := strings.Cut(command, "\n")
					if got := s.shows(t, line); settled(got) != settled(want) {
						t.Errorf("'%s' prints\n%s\nnot\n%s", line, got, want)
					}
				}
			case "sh":
				for line := range strings.Lines(b.text) {
					line, _, _ = strings.Cut(line, "#")
					if tried[strings.TrimSpace(line)] == "" {
						t.Errorf("'%s' is not in the table", line)
					}
				}
			case "xml", "text", "yaml", "go":
			default:
				t.Errorf("a block in %q", b.language)
			}
		})
	}
	if count["caddyfile"] < 20 || count["console"] < 2 || count["json"] < 9 {
		t.Errorf("got %v", count)
	}
}

// validCaddyfile has Caddy validate a Caddyfile, or the options of a directive.
func validCaddyfile(t *testing.T, text string) {
	t.Helper()
	if strings.HasPrefix(text, "sitemap") {
		text = "http://localhost {\n" + text + "\nfile_server\n}"
	}
	// Validating opens the log, which takes privileges in its usual folder.
	text = strings.ReplaceAll(text, "output file /var/log/", "output file ")
	dir := t.TempDir()
	write(t, dir, map[string]string{"Caddyfile": text})
	run(t, dir, "validate", "--config", "Caddyfile", "--adapter", "caddyfile").want(t, 0, []string{"Valid configuration"}, []string{""})
}

// validJSON has Caddy validate a handler, or a whole configuration.
func validJSON(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, `"handler"`) {
		text = `{"apps":{"http":{"servers":{"one":{"listen":[":80"],"routes":[{"handle":[` + text + `]}]}}}}}`
	}
	if !json.Valid([]byte(text)) {
		t.Fatalf("no JSON: %s", text)
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"caddy.json": text})
	run(t, dir, "validate", "--config", "caddy.json").want(t, 0, []string{"Valid configuration"}, []string{""})
}

var exampleFolder = regexp.MustCompile(`examples/\S+`)

// exampleCaddyfile is that of an example, for a free port. It names copies of the examples' files, in a folder whose path has
// spaces. They were written an hour ago: those of a fresh checkout would be dated two minutes after it, amid a test.
func exampleCaddyfile(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "with spaces")
	examples := filepath.Join(folder, "examples")
	harness.Must(t, os.CopyFS(examples, os.DirFS("../examples")))
	at := time.Now().Add(-time.Hour)
	harness.Must(t, filepath.WalkDir(examples, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(name, at, at)
	}))
	text := read(t, examples, name, "Caddyfile")
	text = strings.ReplaceAll(text, ":8080", ":{port}")
	return exampleFolder.ReplaceAllStringFunc(text, func(name string) string {
		return strconv.Quote(filepath.ToSlash(filepath.Join(folder, name)))
	})
}

// startQuickstart runs the example of the README.
func startQuickstart(t *testing.T) *server {
	t.Helper()
	s := startWithAdmin(t, exampleCaddyfile(t, "quickstart"), nil)
	s.Crawled() // a busy machine may list some pages first
	s.refresh()
	logged := slices.DeleteFunc(s.LogLines(`sitemap","msg"`), func(line string) bool { return strings.Contains(line, `"level":"debug"`) })
	if len(logged) == 0 || len(logged) > 3 || !strings.Contains(strings.Join(logged, ""), `"msg":"sitemap refreshed",`) || strings.Contains(strings.Join(logged, ""), "nothing changed") {
		t.Errorf("a first run and a refresh in which nothing changed log\n%s\nwant at most three lines", logged)
	}
	return s
}

// shows is what a command prints: for the server of the README, or in a folder with a site
// and a sitemap.
func (s *server) shows(t *testing.T, line string) string {
	t.Helper()
	line = strings.ReplaceAll(line, ":8080", ":"+s.Port)
	args := strings.Fields(strings.ReplaceAll(line, "'", ""))
	var out ran
	switch {
	case args[0] == "curl":
		r := s.Do(http.MethodGet, "http://"+strings.TrimPrefix(strings.Replace(args[1], ":2019", ":{admin}", 1), "http://"))
		out.stdout = r.Text
	case slices.Contains([]string{"build", "check"}, args[2]):
		dir := t.TempDir()
		for from, to := range map[string]string{"../examples/quickstart/site": "site", "../testdata/check": "."} {
			harness.Must(t, os.CopyFS(filepath.Join(dir, to), os.DirFS(from)))
		}
		out = run(t, dir, args[1:]...)
	default:
		out = s.command(args[2:]...)
	}
	repository, err := filepath.Abs("..")
	harness.Must(t, err)
	return strings.NewReplacer(":"+s.Port, ":8080", repository, "/src/caddy-sitemap").Replace(out.stdout + out.stderr)
}

var varies = regexp.MustCompile(`20\d\d-\d\d-\d\dT[\d:]+Z|(seconds"?:? *|bytes"?:? *|times"?:? *)[\d.]+`)

// settled is output without what differs from one run to the next.
func settled(output string) string {
	return strings.TrimSpace(varies.ReplaceAllString(output, "$1…"))
}

// TestFlagsDocs: the documentation has a row for each flag of the commands, and none besides.
func TestFlagsDocs(t *testing.T) {
	pages, _ := documentation(t)
	row := regexp.MustCompile(`(?m)^\| .*?\|`)
	flag := regexp.MustCompile("--[a-z-]+")
	var documented, known []string
	for _, line := range row.FindAllString(pages["cli.md"], -1) {
		documented = append(documented, flag.FindAllString(line, -1)...)
	}
	for _, command := range []string{"build", "check", "status", "refresh", "explain"} {
		_, flags, _ := strings.Cut(run(t, t.TempDir(), "sitemap", command, "--help").stdout, "\nFlags:\n")
		for line := range strings.Lines(flags) {
			if name := flag.FindString(line); name != "" && name != "--help" {
				known = append(known, name)
			}
		}
	}
	for _, names := range []*[]string{&documented, &known} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	if !slices.Equal(documented, known) {
		t.Errorf("the documentation has %q, the commands %q", documented, known)
	}
}

// TestLinksDocs: every link between the pages leads to a heading that there is.
func TestLinksDocs(t *testing.T) {
	pages, _ := documentation(t)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	punctuation := regexp.MustCompile(`[^\w -]`)
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			folder := "../docs"
			if page == "README.md" || page == "CONTRIBUTING.md" {
				folder = ".."
			}
			target := filepath.Join(folder, to)
			if to == "" {
				target = filepath.Join(folder, page)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			} else if anchor != "" {
				var anchors []string
				for _, h := range heading.FindAllStringSubmatch(read(t, target), -1) {
					anchors = append(anchors, strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
				}
				if !slices.Contains(anchors, anchor) {
					t.Errorf("%s: link to %s: the page has %q", page, m[1], anchors)
				}
			}
		}
	}
}
