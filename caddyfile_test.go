package sitemap

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func init() {
	caddy.RegisterModule(testList{})
	caddy.RegisterModule(testMute{})
}

// testList is a source as another module may bring it: with words of its own.
type testList struct {
	Names []string `json:"names,omitempty"`
}

func (testList) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: sourceNamespace + ".test_list", New: func() caddy.Module { return new(testList) }}
}

func (l *testList) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	l.Names = d.RemainingArgs()
	for d.NextBlock(0) {
		l.Names = append(l.Names, d.Val())
	}
	return nil
}

func (*testList) Pages(context.Context, *Refresh, func(Page) error) error { return nil }

// testMute is a source that only JSON can set up.
type testMute struct{}

func (testMute) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: sourceNamespace + ".test_mute", New: func() caddy.Module { return new(testMute) }}
}

func (*testMute) Pages(context.Context, *Refresh, func(Page) error) error { return nil }

var update = flag.Bool("update", false, "write what is adapted into the fixtures of caddytest/adapt")

// leastFixtures fails the tests when fixtures get lost, or are not found at all.
const leastFixtures = 398

const dashes = "----------"

// fixture is a Caddyfile and what it becomes: JSON, or the text of an error.
type fixture struct {
	file      string
	caddyfile string
	want      string
}

func (f fixture) isError() bool { return !strings.HasPrefix(f.want, "{") }

func readFixtures(t *testing.T) []fixture {
	t.Helper()
	names, err := filepath.Glob("caddytest/adapt/*.caddyfiletest")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < leastFixtures {
		t.Fatalf("got %d fixtures, want at least %d", len(names), leastFixtures)
	}
	var fixtures []fixture
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(raw), "\r\n", "\n")
		source, want, ok := strings.Cut(text, dashes+"\n")
		if !ok && !*update {
			t.Fatalf("%s has no line of dashes", name)
		}
		fixtures = append(fixtures, fixture{name, source, strings.TrimSuffix(want, "\n")})
	}
	return fixtures
}

func (f fixture) name() string {
	return strings.TrimSuffix(filepath.Base(f.file), ".caddyfiletest")
}

// adapt returns what caddy adapt --pretty prints, on standard output or as its
// error.
func (f fixture) adapt(t *testing.T) string {
	t.Helper()
	raw, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(f.caddyfile), nil)
	if err != nil {
		return err.Error()
	}
	for _, w := range warnings {
		t.Errorf("got warning %s", w)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "\t"); err != nil {
		t.Fatal(err)
	}
	// file_server hides the Caddyfile by its path on this system.
	own, err := json.Marshal("." + string(filepath.Separator) + "Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(pretty.String(), string(own), `"./Caddyfile"`)
}

func TestAdapt(t *testing.T) {
	for _, f := range readFixtures(t) {
		t.Run(f.name(), func(t *testing.T) {
			got := f.adapt(t)
			if *update {
				if err := os.WriteFile(f.file, []byte(f.caddyfile+dashes+"\n"+got+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != f.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, f.want)
			}
		})
	}
}

func TestAdaptedIsValid(t *testing.T) {
	t.Setenv("SITEMAP_BASE", "https://example.com")
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	for _, f := range readFixtures(t) {
		if f.isError() {
			continue
		}
		t.Run(f.name(), func(t *testing.T) {
			var cfg caddy.Config
			if err := caddy.StrictUnmarshalJSON([]byte(f.want), &cfg); err != nil {
				t.Fatal(err)
			}
			storage := caddyconfig.JSONModuleObject(map[string]string{"root": t.TempDir()}, "module", "file_system", nil)
			cfg.StorageRaw = storage
			cfg.Admin = &caddy.AdminConfig{Disabled: true}
			cfg.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {
				BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)},
			}}}
			if err := caddy.Validate(&cfg); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	handler := append([]string{"files", "urls", "access_log"}, handlerWords...)
	for _, test := range []struct {
		word  string
		known []string
		want  string
	}{
		{"refesh", handler, "refresh"},
		{"refrehs", handler, "refresh"},
		{"Refresh", handler, "refresh"},
		{"refresh_interval", handler, "refresh"},
		{"pth", handler, "path"},
		{"apth", handler, "path"},
		{"paths", handler, "path"},
		{"base", handler, "base_url"},
		{"baseurl", handler, "base_url"},
		{"base-url", handler, "base_url"},
		{"url", handler, "urls"},
		{"file", handler, "files"},
		{"fil", handler, "files"},
		{"rules", handler, "rule"},
		{"sources", handler, "source"},
		{"robots", handler, "robots_txt"},
		{"robots.txt", handler, "robots_txt"},
		{"log", handler, "access_log"},
		{"unlink", discoveryWords, "unlinked"},
		{"max", linksWords, "max_paths"},
		{"exlude", handler, "exclude"},
		{"exclude", filesWords, "exclude"},
		{"includes", filesWords, "include"},
		{"clean", filesWords, "clean_urls"},
		{"crawling", handler, "crawl"},
		{"extension", handler, "extensions"},
		{"concurrent", crawlWords, "concurrency"},
		{"freq", ruleWords, "changefreq"},
		{"prio", ruleWords, "priority"},
		{"no", []string{"on", "off"}, ""},
		{"of", []string{"on", "off"}, "off"},
		{"ON", []string{"on", "off"}, "on"},
		{"0.48", []string{"0.9", "0.84"}, "0.84"},

		{"", handler, ""},
		{"x", handler, ""},
		{"gzip", handler, ""},
		{"encode", handler, ""},
		{"{", handler, ""},
		{"xy", filesWords, ""},
		{"maybe", []string{"on", "off"}, ""},
		{"10", []string{"0.9", "0.84"}, ""},
		{strings.Repeat("x", 1000), handler, ""},
		{"refresh", nil, ""},
	} {
		if got := nearest(test.word, test.known); got != test.want {
			t.Errorf("nearest(%.20q): got %q, want %q", test.word, got, test.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "abc", 0},
		{"abc", "ac", 1},
		{"abc", "abdc", 1},
		{"abc", "abd", 1},
		{"abc", "acb", 1},
		{"ca", "abc", 3}, // alignment: a transposed pair is not edited again
		{"kitten", "sitting", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance(%q, %q): got %d, want %d", test.a, test.b, got, test.want)
		}
		if got := distance(test.b, test.a); got != test.want {
			t.Errorf("distance(%q, %q): got %d, want %d", test.b, test.a, got, test.want)
		}
	}
}
