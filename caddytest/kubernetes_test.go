package caddytest

import (
	"regexp"
	"strings"
	"testing"
)

// caddyfileOf returns the Caddyfile of a ConfigMap in a manifest.
func caddyfileOf(t *testing.T, manifest string) string {
	t.Helper()
	_, rest, found := strings.Cut(manifest, "  Caddyfile: |\n")
	if !found {
		t.Fatal("the manifest has no Caddyfile")
	}
	var text strings.Builder
	for line := range strings.Lines(rest) {
		indented, isPart := strings.CutPrefix(line, "    ")
		if !isPart && strings.TrimSpace(line) != "" {
			break
		}
		text.WriteString(indented)
	}
	return text.String()
}

// TestKubernetes has Caddy validate the Caddyfile of the example, with a storage that is built in.
func TestKubernetes(t *testing.T) {
	text := caddyfileOf(t, read(t, "../examples/kubernetes/sitemap.yaml"))
	storage := regexp.MustCompile(`storage redis \{[^}]*\}`)
	if !storage.MatchString(text) || !strings.Contains(text, "storage caddy") || !strings.Contains(text, "/healthz") {
		t.Fatalf("got %q", text)
	}
	validCaddyfile(t, storage.ReplaceAllString(text, "storage file_system storage"))
}

// TestAlerts: the rules for Prometheus name no metric that does not exist.
func TestAlerts(t *testing.T) {
	pages, blocks := documentation(t)
	metric := regexp.MustCompile(`caddy_sitemap_(\w+)`)
	rules := 0
	for _, b := range blocks {
		if b.language != "yaml" {
			continue
		}
		for _, m := range metric.FindAllStringSubmatch(b.text, -1) {
			rules++
			if !strings.Contains(pages["operations.md"], "| `"+m[1]+"` |") {
				t.Errorf("%s: a rule has the metric %s, which is not documented", b.page, m[0])
			}
		}
	}
	if rules < 10 {
		t.Errorf("got %d metrics in rules", rules)
	}
}
