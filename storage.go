package sitemap

import (
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
)

// The words that the setting 'storage' may have in the place of a module.
const (
	wordLocal = "local"
	wordCaddy = "caddy"
)

const storageUsage = "use local, caddy for that of the global option 'storage', " +
	"or a module such as file_system with its settings; to keep nothing on disk, write 'state off'"

// storageSetting is the setting 'storage': which storage, if any, processes share.
type storageSetting struct {
	shared certmagic.Storage // nil: they share none
	digest uint64            // of the module and its settings; 0: it is Caddy's own
}

// loadSharing reads the setting of an App, and loads its module.
func loadSharing(ctx caddy.Context, a *App) (s storageSetting, err error) {
	switch string(a.StorageRaw) {
	case "", `"` + wordLocal + `"`:
		return s, nil
	case `"` + wordCaddy + `"`:
		s.shared = ctx.Storage()
		return s, nil
	}
	s.digest = digestOf(string(a.StorageRaw))
	module, err := ctx.LoadModule(a, "StorageRaw")
	if err != nil {
		return s, fmt.Errorf("loading the storage: %w: %s", err, storageUsage)
	}
	converter, isStorage := module.(caddy.StorageConverter)
	if !isStorage {
		return s, fmt.Errorf("loading the storage: %T is none", module)
	}
	s.shared, err = converter.CertMagicStorage()
	if err != nil {
		return s, fmt.Errorf("opening the storage: %w", err)
	}
	return s, nil
}

// isOn reports whether processes share sites.
func (s storageSetting) isOn() bool { return s.shared != nil }

// key tells one storage from another.
func (s storageSetting) key() string { return fmt.Sprintf("%016x", s.digest) }

// warning says why nothing is shared although it should be; "": it may be.
func (s storageSetting) warning() string {
	if !isDataFolder(s.shared) {
		return ""
	}
	if s.digest != 0 {
		return "the sitemap is not shared: its storage is the data folder of this machine: name a folder that all nodes have"
	}
	return "the sitemap is not shared: Caddy's storage is the data folder of this machine: set the global option 'storage'"
}

// isDataFolder reports whether a storage is Caddy's folder for data, which no other machine has.
func isDataFolder(s certmagic.Storage) bool {
	folder, isFolder := s.(*certmagic.FileStorage)
	return isFolder && (folder.Path == "" || filepath.Clean(folder.Path) == filepath.Clean(caddy.DefaultStorage.Path))
}

// unmarshalStorage parses the option 'storage', which names a module as Caddy's own does.
func (a *App) unmarshalStorage(d *caddyfile.Dispenser) error {
	if len(a.StorageRaw) > 0 {
		return d.Err("storage is given twice")
	}
	if !d.NextArg() {
		return d.Err("wrong number of values: use 'storage local|caddy|<module> [<args...>]'")
	}
	name := d.Val()
	if name == wordLocal || name == wordCaddy {
		if d.NextArg() {
			return d.Errf("wrong number of values: use 'storage %s'", name)
		}
		a.StorageRaw = caddyconfig.JSON(name, nil)
		return nil
	}
	id := "caddy.storage." + name
	_, err := caddy.GetModule(id)
	if err != nil {
		return d.Errf("storage '%s': there is no module %s in this Caddy: %s", name, id, storageUsage)
	}
	module, err := caddyfile.UnmarshalModule(d, id)
	if err != nil {
		return err
	}
	a.StorageRaw = caddyconfig.JSONModuleObject(module, "module", name, nil)
	return nil
}
