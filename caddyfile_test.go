package sitemap

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

var update = flag.Bool("update", false, "write what is adapted into the fixtures of caddytest/adapt")

// TestAdapt: a fixture is a Caddyfile, a line of dashes, and what caddy adapt --pretty prints:
// JSON that is valid, or an error.
func TestAdapt(t *testing.T) {
	t.Setenv("SITEMAP_BASE", "https://example.com")
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	names, err := filepath.Glob("caddytest/adapt/*.caddyfiletest")
	if err != nil || len(names) < 420 {
		t.Fatalf("got %d fixtures, %v: some got lost", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".caddyfiletest"), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source, want, _ := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "----------\n")
			got := adapted(t, source) + "\n"
			if *update {
				if err := os.WriteFile(name, []byte(source+"----------\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if got[0] != '{' {
				return
			}
			var cfg caddy.Config
			if err := caddy.StrictUnmarshalJSON([]byte(got), &cfg); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(quiet(t, &cfg)); err != nil {
				t.Error(err)
			}
		})
	}
}

// adapted is what becomes of a Caddyfile: JSON, or the text of an error.
func adapted(t *testing.T, source string) string {
	t.Helper()
	raw, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(source), nil)
	if err != nil {
		return err.Error()
	}
	if len(warnings) > 0 {
		t.Errorf("got warnings %s", warnings)
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
