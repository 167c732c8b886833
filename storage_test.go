package sitemap

import (
	"encoding/json"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
)

// TestSharingOf: which storage a setting names.
func TestSharingOf(t *testing.T) {
	for raw, test := range map[string]struct {
		kind  storageKind
		isOwn bool // it has a digest
		fails bool
	}{
		``:                     {inState, false, false},
		`"local"`:              {inState, false, false},
		`"caddy"`:              {inCaddys, false, false},
		`{"module":"redis"}`:   {inOwn, true, false},
		`"other"`:              {inState, false, true},
		`{"module":null}`:      {inState, false, true},
		`{"root":"/srv/data"}`: {inState, false, true},
		`3`:                    {inState, false, true},
	} {
		got, err := sharingOf(json.RawMessage(raw))
		if got.kind != test.kind || (got.digest != 0) != test.isOwn || (err != nil) != test.fails {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
}

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
