package sitemap

import (
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
)

// TestFieldNames: the Caddyfile knows the fields that there are.
func TestFieldNames(t *testing.T) {
	_, err := accesslog.NewParser(accesslog.Options{Fields: map[string]string{"no such field": "x"}})
	if want := strings.Join(fieldNames, ", "); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want the fields %s", err, want)
	}
}
