package sitemap

import (
	"context"
	"crypto/rand"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// TestStateOfSites: sites of the same URL have states of their own, and those that only
// visitors named are kept in memory.
func TestStateOfSites(t *testing.T) {
	b := newBench(t, nil)
	b.app.folder = t.TempDir()
	b.lists("/")
	named := b.site("named.example")
	b.wantPages(named, 1)
	b.wantPages(b.site("visited.example"), 1)
	b.app.mu.Lock()
	defer b.app.mu.Unlock()
	other := acquireState(b.app, &named.identity)
	defer func() { _, _ = states.Delete(other.key) }()
	records, err := other.records.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := records.Open(t.Context(), new(meta), nil, nil); err != nil || records.Write(nil, meta{}) != nil {
		t.Errorf("got %v", err)
	}
	var found []string
	for deadline := time.Now().Add(time.Minute); len(found) < 2 && err == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) { // the disk may be slow
		found, err = filepath.Glob(filepath.Join(b.app.folder, "sites", "named.example-*", "store", "manifest.json"))
	}
	all, _ := filepath.Glob(filepath.Join(b.app.folder, "sites", "*"))
	if err != nil || len(found) != 2 || len(all) != 2 {
		t.Errorf("got %q of %q, %v", found, all, err)
	}
}

// fullDisk is a storage that cannot be written.
type fullDisk struct{ store.Storage }

func (fullDisk) Store(context.Context, string, []byte) error { // with the name of a temporary file
	return &fs.PathError{Op: "write", Path: "/state/" + rand.Text(), Err: fs.ErrPermission}
}

// closedDisk is a storage that cannot be read.
type closedDisk struct{ store.Storage }

func (closedDisk) Load(context.Context, string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: "/state/manifest.json", Err: fs.ErrPermission}
}

// TestUnwritableState: that a state cannot be read or written is one warning.
func TestUnwritableState(t *testing.T) {
	for _, disk := range []store.Storage{fullDisk{store.NewMemory()}, closedDisk{store.NewMemory()}} {
		b := newBench(t, nil)
		b.lists("/")
		s := b.site("named.example")
		s.state.records = persist.NewSite(disk, "site")
		b.refresh(s)
		b.refresh(s)
		if got := b.logged("cannot store the records: pages are fetched again after a restart"); got != 1 {
			t.Errorf("%T: %d warnings", disk, got)
		}
	}
}

// TestStateFolder reads the state setting.
func TestStateFolder(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("SITEMAP_STATE", folder)
	t.Setenv("SITEMAP_OFF", "off")
	t.Setenv("SITEMAP_NONE", "")
	t.Setenv("XDG_DATA_HOME", folder)
	below, err := filepath.Abs("below")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ state, want, err string }{
		{"", filepath.Join(folder, "caddy", "sitemap"), ""},
		{"off", "", ""},
		{folder, folder, ""},
		{"./below/", below, ""},
		{"{env.SITEMAP_STATE}", folder, ""},
		{"{env.SITEMAP_STATE}/a/../b", filepath.Join(folder, "b"), ""},
		{"{env.SITEMAP_OFF}", "", ""},
		{"{env.SITEMAP_NONE}/sitemap", "", "evaluated placeholder {env.SITEMAP_NONE} is empty"},
		{"/var/{no.such}", "", "unrecognized placeholder {no.such}"},
		{"/var/{http.request.host}", "", "unrecognized placeholder {http.request.host}"},
		{"Off", "", "use a folder such as /var/lib/caddy/sitemap, or off"},
		{"below", "", "use a folder such as /var/lib/caddy/sitemap, or off"},
	} {
		got, err := stateFolder(test.state, caddy.NewReplacer())
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.state, got, test.want)
		}
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasSuffix(err.Error(), test.err)) {
			t.Errorf("%q: got %v, want %q", test.state, err, test.err)
		}
	}
}
