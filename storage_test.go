package sitemap

import (
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
)

// TestIsDataFolder: Caddy's own folder is on one machine, so nothing is shared there.
func TestIsDataFolder(t *testing.T) {
	for name, test := range map[string]struct {
		storage fleet.Shared
		want    bool
	}{
		"no path":         {new(certmagic.FileStorage), true},
		"the data folder": {&certmagic.FileStorage{Path: caddy.DefaultStorage.Path + "/"}, true},
		"another folder":  {&certmagic.FileStorage{Path: t.TempDir()}, false},
		"no folder":       {watched{}, false},
	} {
		if got := isDataFolder(test.storage); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestStorageWarning: operators are told of a storage that other machines do not have.
func TestStorageWarning(t *testing.T) {
	const fix = ": name a folder that all nodes have"
	data := &certmagic.FileStorage{Path: caddy.DefaultStorage.Path}
	for name, test := range map[string]struct {
		setting storageSetting
		want    string
	}{
		"nothing is shared":          {storageSetting{own: data}, ""},
		"a storage of its own":       {storageSetting{kind: inOwn, own: &certmagic.FileStorage{Path: t.TempDir()}}, ""},
		"the data folder as its own": {storageSetting{kind: inOwn, own: data}, "the sitemap is not shared: its storage is the data folder of this machine" + fix},
	} {
		if got := test.setting.warning(emptyContext(t)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
