package sitemap

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
)

// TestIsDataFolder: Caddy's own folder is on one machine, so nothing is shared there.
func TestIsDataFolder(t *testing.T) {
	for name, test := range map[string]struct {
		storage certmagic.Storage
		want    bool
	}{
		"no path":         {new(certmagic.FileStorage), true},
		"the data folder": {&certmagic.FileStorage{Path: caddy.DefaultStorage.Path + "/"}, true},
		"another folder":  {&certmagic.FileStorage{Path: t.TempDir()}, false},
		"no folder":       {nil, false},
	} {
		if got := isDataFolder(test.storage); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestSharing: what the setting may be, and which storages no other machine has.
func TestSharing(t *testing.T) {
	const ofCaddy = "the sitemap is not shared: Caddy's storage is the data folder of this machine: set the global option 'storage'"
	const ofModule = "the sitemap is not shared: its storage is the data folder of this machine: name a folder that all nodes have"
	fileSystem := func(root string) string { return `{"module": "file_system", "root": ` + strconv.Quote(root) + `}` }
	apart := fileSystem(t.TempDir())
	for name, test := range map[string]struct {
		global, own  string // the storage of Caddy; the setting
		err, warning string // "": none
	}{
		"none":                  {"", "", "", ""},
		"the state folder":      {"", `"local"`, "", ""},
		"Caddy's":               {"", `"caddy"`, "", ofCaddy},
		"Caddy's is another":    {apart, `"caddy"`, "", ""},
		"another":               {"", apart, "", ""},
		"Caddy's folder":        {"", fileSystem(caddy.DefaultStorage.Path), "", ofModule},
		"Caddy's, spelled out":  {"", fileSystem(caddy.DefaultStorage.Path + "/x/.."), "", ofModule},
		"no folder":             {"", `{"module": "file_system"}`, "", ofModule},
		"another word":          {"", `"redis"`, "use local, caddy", ""},
		"no module":             {"", `{"root": "/mnt"}`, "use local, caddy", ""},
		"a number":              {"", `1`, "use local, caddy", ""},
		"a module that is null": {"", `{"module":null}`, "use local, caddy", ""},
		"an unknown module":     {"", `{"module": "nothing"}`, "caddy.storage.nothing", ""},
		"an unknown field":      {"", `{"module": "file_system", "roots": "/mnt"}`, "roots", ""},
	} {
		cfg := quiet(t, new(caddy.Config))
		cfg.StorageRaw = nil
		if test.global != "" {
			cfg.StorageRaw = json.RawMessage(test.global)
		}
		ctx, err := caddy.ProvisionContext(cfg)
		if err != nil {
			t.Fatal(err)
		}
		setting, err := loadSharing(ctx, &App{StorageRaw: json.RawMessage(test.own)})
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got error %v, want %q", name, err, test.err)
		}
		if err != nil {
			continue
		}
		isShared := test.own != "" && test.own != `"local"`
		isApart := isShared && test.own != `"caddy"`
		if setting.isOn() != isShared || (setting.key() != storageSetting{}.key()) != isApart {
			t.Errorf("%s: it is shared: %t, in %s", name, setting.isOn(), setting.key())
		}
		if got := setting.warning(); got != test.warning {
			t.Errorf("%s: got %q, want %q", name, got, test.warning)
		}
	}
}
