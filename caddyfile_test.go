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
const leastFixtures = 380

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

// TestUnrecognized: a word that is likely misspelt names what was meant, others all there are.
func TestUnrecognized(t *testing.T) {
	handler, files, onOff := new(Handler).options().names(), []string{"at", "include", "exclude", "clean_urls"}, []string{"on", "off"}
	for _, test := range []struct {
		word  string
		known []string
		want  string // "": all
	}{
		{"refesh", handler, "refresh"},
		{"refrehs", handler, "refresh"},
		{"Refresh", handler, "refresh"},
		{"apth", handler, "path"},
		{"paths", handler, "path"},
		{"base", handler, "base_url"},
		{"base-url", handler, "base_url"},
		{"url", handler, "urls"},
		{"fil", handler, "files"},
		{"sources", handler, "source"},
		{"robots.txt", handler, "robots_txt"},
		{"exlude", handler, "exclude"},
		{"includes", files, "include"},
		{"clean", files, "clean_urls"},
		{"crawling", handler, "crawl"},
		{"of", onOff, "off"},
		{"ON", onOff, "on"},

		{"no", onOff, ""},
		{"maybe", onOff, ""},
		{"gzip", handler, ""},
		{"encode", handler, ""},
		{"{", handler, ""},
		{strings.Repeat("x", 1000), handler, ""},
	} {
		want := "use " + strings.Join(test.known, ", ")
		if test.want != "" {
			want = "did you mean '" + test.want + "'?"
		}
		if got := unrecognized("option", test.word, test.known).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%.20q: got %q, want %q", test.word, got, want)
		}
	}
}
