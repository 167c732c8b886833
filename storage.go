package sitemap

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
)

// storageKind says where the records, documents and announcements of sites are kept.
type storageKind uint8

const (
	inState  storageKind = iota // in the state folder, by each process for itself
	inCaddys                    // in Caddy's storage: the global option 'storage'
	inOwn                       // in a storage apart from it
)

// The words that a setting has in the place of a module.
const (
	wordLocal = "local"
	wordCaddy = "caddy"
)

// storageNamespace is where storages for Caddy are registered.
const storageNamespace = "caddy.storage"

// storageSetting is the setting 'storage': which storage, if any, processes share.
type storageSetting struct {
	kind   storageKind
	shared certmagic.Storage // nil: processes share none, or it is not loaded
	digest uint64            // of the module and its settings; 0: there is none
}

// sharingOf reads the setting. The module is not loaded.
func sharingOf(raw json.RawMessage) (storageSetting, error) {
	var word string
	var module map[string]any
	switch {
	case len(raw) == 0:
		return storageSetting{}, nil
	case json.Unmarshal(raw, &module) == nil && module["module"] != nil:
		sorted, _ := json.Marshal(module) // which was JSON
		return storageSetting{kind: inOwn, digest: digestOf(string(sorted))}, nil
	case json.Unmarshal(raw, &word) == nil && word == wordLocal:
		return storageSetting{}, nil
	case word == wordCaddy:
		return storageSetting{kind: inCaddys}, nil
	}
	return storageSetting{}, fmt.Errorf("storage %s: %s", raw, storageUsage)
}

// loadSharing reads the setting of an App, and loads its module.
func loadSharing(ctx caddy.Context, a *App) (storageSetting, error) {
	s, err := sharingOf(a.StorageRaw)
	if err != nil {
		return s, err
	}
	switch s.kind {
	case inCaddys:
		s.shared = ctx.Storage()
	case inOwn:
		err = s.load(ctx, a)
	}
	return s, err
}

// load loads the module of a storage apart from Caddy's.
func (s *storageSetting) load(ctx caddy.Context, a *App) error {
	module, err := ctx.LoadModule(a, "StorageRaw")
	if err != nil {
		return fmt.Errorf("loading the storage: %w", err)
	}
	converter, isStorage := module.(caddy.StorageConverter)
	if !isStorage {
		return fmt.Errorf("loading the storage: %T is none", module)
	}
	s.shared, err = converter.CertMagicStorage()
	if err != nil {
		return fmt.Errorf("opening the storage: %w", err)
	}
	return nil
}

// isOn reports whether processes share sites.
func (s storageSetting) isOn() bool { return s.kind != inState }

// key tells one storage from another.
func (s storageSetting) key() string {
	if s.kind == inOwn {
		return fmt.Sprintf(" in %016x", s.digest)
	}
	return ""
}

// warning says why nothing is shared although it should be; "": it may be.
func (s storageSetting) warning() string {
	if !s.isOn() || !isDataFolder(s.shared) {
		return ""
	}
	if s.kind == inOwn {
		return "the sitemap is not shared: its storage is the data folder of this machine: name a folder that all nodes have"
	}
	return "the sitemap is not shared: Caddy's storage is the data folder of this machine: set the global option 'storage'"
}

// isDataFolder reports whether a storage is Caddy's folder for data, which no other machine has.
func isDataFolder(s certmagic.Storage) bool {
	folder, isFolder := s.(*certmagic.FileStorage)
	return isFolder && (folder.Path == "" || filepath.Clean(folder.Path) == filepath.Clean(caddy.DefaultStorage.Path))
}

const storageUsage = "use local, caddy for that of the global option 'storage', " +
	"or a module such as file_system with its settings; to keep nothing on disk, write 'state off'"

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
	id := storageNamespace + "." + name
	_, err := caddy.GetModule(id)
	if err != nil {
		return d.Errf("storage '%s': there is no module %s in this Caddy: %s", name, id, storageUsage)
	}
	module, err := caddyfile.UnmarshalModule(d, id)
	if err != nil {
		return err
	}
	if _, isStorage := module.(caddy.StorageConverter); !isStorage {
		return d.Errf("module %s is not a caddy.StorageConverter", id)
	}
	a.StorageRaw = caddyconfig.JSONModuleObject(module, "module", name, nil)
	return nil
}
