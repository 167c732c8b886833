package sitemap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// fullDisk is a storage that cannot be written, for a reason.
type fullDisk struct {
	store.Storage
	reason error
}

func (d fullDisk) Store(context.Context, string, []byte) error { // with the name of a temporary file
	return &fs.PathError{Op: "write", Path: "/state/" + rand.Text(), Err: d.reason}
}

// stuckDisk is a storage where a file cannot be replaced.
type stuckDisk struct{ store.Storage }

func (stuckDisk) Store(context.Context, string, []byte) error {
	return &os.LinkError{Op: "rename", Old: "/state/" + rand.Text(), New: "/state/manifest.json", Err: fs.ErrPermission}
}

// closedDisk is a storage that cannot be read.
type closedDisk struct{ store.Storage }

func (closedDisk) Load(context.Context, string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: "/state/manifest.json", Err: fs.ErrPermission}
}

// TestUnwritableState: that a state cannot be read or written is one warning, with the folder, the cause and the fix.
func TestUnwritableState(t *testing.T) {
	const permit = "let the user that runs Caddy read and write the folder, or name another one in the global option 'state'"
	memory := store.NewMemory()
	for name, test := range map[string]struct {
		disk          store.Storage // nil: that of a folder below a file
		cause, remedy string
	}{
		"not permitted":          {fullDisk{memory, fs.ErrPermission}, "write /state: permission denied", permit},
		"nothing is replaced":    {stuckDisk{memory}, "rename /state: permission denied", permit},
		"not readable":           {closedDisk{memory}, "open /state: permission denied", permit},
		"full":                   {fullDisk{memory, syscall.ENOSPC}, "write /state: " + syscall.ENOSPC.Error(), "free space on the disk"},
		"a read-only disk":       {fullDisk{memory, syscall.EROFS}, "write /state: " + syscall.EROFS.Error(), "mount it for writing, add the folder to ReadWritePaths of the systemd unit, or name another one in the global option 'state'"},
		"no folder, but a file":  {nil, syscall.ENOTDIR.Error(), "name a folder that can be written in the global option 'state'"},
		"the disk does not work": {fullDisk{memory, errors.New("input/output error")}, "write /state: input/output error", "check the disk, or name another folder in the global option 'state'"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.lists("/")
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			b.app.folder = filepath.Join(file, "state")
			s := b.site("named.example")
			if test.disk != nil {
				s.state.records = persist.NewSite(test.disk, "site")
			}
			b.refresh(s)
			b.refresh(s)
			warnings := b.logs.FilterMessage("cannot store the records: pages are fetched again after a restart").All()
			if len(warnings) != 1 {
				t.Fatalf("got %d warnings, want one", len(warnings))
			}
			fields := warnings[0].ContextMap()
			if fields["folder"] != b.app.folder {
				t.Errorf("got the folder %v, want %s", fields["folder"], b.app.folder)
			}
			if got := fmt.Sprint(fields["error"]); !strings.HasSuffix(got, test.cause) {
				t.Errorf("got the cause %s, want %s", got, test.cause)
			}
			if fields["remedy"] != test.remedy {
				t.Errorf("got the remedy %v, want %s", fields["remedy"], test.remedy)
			}
			if fields["uid"] == nil {
				t.Error("got no uid")
			}
		})
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
		got, err := stateFolder(test.state)
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.state, got, test.want)
		}
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasSuffix(err.Error(), test.err)) {
			t.Errorf("%q: got %v, want %q", test.state, err, test.err)
		}
	}
}
