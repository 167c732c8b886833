package sitemap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

// TestStateOfSites: sites of the same URL have states of their own, and one that visitors named once is kept in memory.
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
	defer func() { _, _ = states.Delete(other.place.key) }()
	records, err := other.records.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := records.Open(t.Context(), new(meta), nil, nil); err != nil || records.Write((*document.Set)(nil), meta{}, false) != nil {
		t.Errorf("got %v", err)
	}
	var found []string
	for deadline := time.Now().Add(time.Minute); len(found) < 2 && err == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) { // the disk may be slow
		found, err = filepath.Glob(filepath.Join(b.app.folder, "sites", "named.example*", "store", "manifest.json"))
	}
	all, _ := filepath.Glob(filepath.Join(b.app.folder, "sites", "*"))
	if err != nil || len(found) != 2 || len(all) != 2 {
		t.Errorf("got %q of %q, %v", found, all, err)
	}
}

// TestVisitedRestart: a host that visitors named serves after a restart what it served before, at its first look, if it was requested
// again after its first pages were listed. One that was requested once is not stored.
func TestVisitedRestart(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.app.folder = t.TempDir()
		stored := func() int {
			found, _ := filepath.Glob(filepath.Join(b.app.folder, "sites", "visited-*", "store", "manifest.json"))
			return len(found)
		}
		b.lists("/", "/a")
		tenant := b.site("tenant.example")
		madeUp := b.site("made-up.example")
		for range 3 {
			tenant.noteRequest(time.Now())
			tenant.run()
			madeUp.run()
			time.Sleep(time.Minute)
		}
		if got := pagesOf(tenant.published().snapshot); got != 2 || stored() != 1 {
			t.Fatalf("%d pages, %d sites are stored", got, stored())
		}
		tenant.drop()
		madeUp.drop()

		next := newBench(t, nil)
		next.app.now = time.Now
		next.app.folder = b.app.folder
		next.names("/", "/a")
		next.pages = func(http.ResponseWriter, *http.Request) error { return errors.New("the upstream is down") }
		again := next.site("tenant.example")
		again.run()
		if got := pagesOf(again.published().snapshot); got != 2 || again.rank() != schedule.Known {
			t.Errorf("after a restart, %d pages, rank %d", got, again.rank())
		}
		next.app.mu.Lock()
		next.app.remove(again)
		next.app.mu.Unlock()
		time.Sleep(time.Second)
		if stored() != 0 {
			t.Error("a site is stored for which there is no room")
		}
	})
}

// TestPruneVisited: of sites that only visitors named, as many are stored as there may be, those that were written last.
func TestPruneVisited(t *testing.T) {
	b := newBench(t, nil)
	b.app.folder = filepath.Join(t.TempDir(), "[any]") // which is no pattern
	write := func(name string, at time.Time) {
		file := filepath.Join(b.app.folder, recordsOf(name), record.ManifestName)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("named.example", time.Unix(0, 0))
	for i := range maxOnDemandSites + 2 {
		write(fmt.Sprintf("%s%016x", visitedPrefix, i), time.Unix(int64(i), 0))
	}
	// The process was killed before it had written the first manifest.
	if err := os.MkdirAll(filepath.Join(b.app.folder, recordsOf(visitedPrefix+"killed")), 0o700); err != nil {
		t.Fatal(err)
	}
	b.app.pruneVisited()
	entries, err := os.ReadDir(filepath.Join(b.app.folder, "sites"))
	if err != nil || len(entries) != maxOnDemandSites+1 || entries[0].Name() != "named.example" || entries[1].Name() != "visited-0000000000000002" {
		t.Errorf("%v, %d sites are stored", err, len(entries))
	}
}

// TestStateName: on the disk of one process, a site is known by its host, whatever the scheme and the listener's port are.
func TestStateName(t *testing.T) {
	for name, test := range map[string]struct {
		listener, id address
		base         string
		want         string
	}{
		"http":             {address{scheme: "http"}, address{scheme: "http", host: "named.example"}, "", "named.example"},
		"https":            {address{scheme: "https"}, address{scheme: "https", host: "named.example"}, "", "named.example"},
		"listener's port":  {address{scheme: "http", port: "8080"}, address{scheme: "http", host: "named.example", port: "8080"}, "", "named.example"},
		"another port":     {address{scheme: "http", port: "8080"}, address{scheme: "http", host: "named.example", port: "81"}, "", "named.example%3A81"},
		"a part of one":    {address{scheme: "http", port: "80"}, address{scheme: "http", host: "named.example", port: "8080"}, "", "named.example%3A8080"},
		"www":              {address{scheme: "http"}, address{scheme: "http", host: "www.named.example"}, "", "named.example"},
		"a prefix":         {address{scheme: "http"}, address{scheme: "http", host: "named.example", prefix: "/Docs"}, "", "named.example%2Fdocs"},
		"an IPv6 address":  {address{scheme: "http"}, address{scheme: "http", host: "[::1]"}, "", "%5B%3A%3A1%5D"},
		"behind a proxy":   {address{scheme: "http", port: "8080"}, address{scheme: "http", host: "localhost", port: "8080"}, "https://named.example", "named.example"},
		"a proxy's port":   {address{scheme: "http", port: "8080"}, address{scheme: "http", host: "localhost"}, "https://named.example:444", "named.example%3A444"},
		"of one that lies": {address{scheme: "http", port: "8080"}, address{scheme: "http", host: "localhost"}, "https://named.example:8080", "named.example"},
	} {
		b := newBench(t, func(h *Handler) { h.listener, h.BaseURL = test.listener, test.base })
		i := newIdentity(siteID{b.handler, test.id}, false)
		if got := i.stateName(1); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestSitesOfOneHost: of several sites that have the same host, it is always the same one that has its name.
func TestSitesOfOneHost(t *testing.T) {
	handler := func(scheme, port string) *Handler {
		h := newBench(t, func(h *Handler) { h.listener = address{scheme: scheme, port: port} }).handler
		h.mounts = mounts{{hosts: []string{"named.example"}}}
		return h
	}
	for first := range 4 {
		b := newBench(t, nil)
		b.app.folder = t.TempDir()
		handlers := []*Handler{handler("http", "9090"), handler("http", ""), handler("https", ""), handler("http", "8080")}
		handlers = slices.Concat(handlers[first:], handlers[:first])
		for _, h := range handlers {
			h.app = b.app
			b.app.fetchers[h.server] = &serverFetcher{server: h.server}
		}
		b.app.handlers = handlers
		got := make(map[string]string)
		for _, s := range b.app.namedSites() {
			got[s.origin] = s.state.place.file
		}
		want := map[string]string{
			"https://named.example":     "named.example",
			"http://named.example":      "named.example+2",
			"http://named.example:8080": "named.example+3",
			"http://named.example:9090": "named.example+4",
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		_ = b.app.Cleanup()
	}
}

// TestAdopt: what 109c614 has stored of a site, by a name for its URL, is the site's, unless it has records of its own.
func TestAdopt(t *testing.T) {
	const former = "named.example-45d44e99d02928a3"
	for name, test := range map[string]struct {
		stored []string // the files that there are
		want   []string // the site's afterwards, with what is in them
	}{
		"nothing":        {nil, []string{"", ""}},
		"records":        {[]string{"sites/" + former + "/store/manifest.json"}, []string{"sites/" + former + "/store/manifest.json", ""}},
		"both":           {[]string{"sites/" + former + "/store/manifest.json", "announcements/" + former + ".json"}, []string{"sites/" + former + "/store/manifest.json", "announcements/" + former + ".json"}},
		"records of now": {[]string{"sites/" + former + "/store/manifest.json", "sites/named.example/store/manifest.json"}, []string{"sites/named.example/store/manifest.json", ""}},
	} {
		b := newBench(t, nil)
		b.app.folder = t.TempDir()
		path := func(key string) string { return filepath.Join(b.app.folder, filepath.FromSlash(key)) }
		for _, key := range test.stored {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path(key)), 0o700), os.WriteFile(path(key), []byte(key), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		s := b.site("named.example")
		for range 2 {
			if err := s.renameFiles(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for i, key := range []string{"sites/named.example/store/manifest.json", "announcements/named.example.json"} {
				if got, _ := os.ReadFile(path(key)); string(got) != test.want[i] {
					t.Errorf("%s: %s has %q, want %q", name, key, got, test.want[i])
				}
			}
		}
	}
}

// TestStateOf109c614: what that commit has stored of a site is found under its former name, with the dates of all pages, and the names
// of its documents still work.
func TestStateOf109c614(t *testing.T) {
	b := newBench(t, nil)
	b.handler.mounts = mounts{{hosts: []string{"localhost"}}}
	b.app.folder = t.TempDir()
	if err := os.CopyFS(b.app.folder, os.DirFS("testdata/109c614")); err != nil {
		t.Fatal(err)
	}
	s := b.site("localhost")
	restore(t, s)
	if got := pagesOf(s.published().lastSnapshot); got != 6 || b.logs.Len() > 0 {
		t.Errorf("%d pages were listed, logs %v", got, b.logs.All())
	}
	for i := range 5 {
		path := fmt.Sprintf("/p%d.html", i+1)
		rec, err := s.state.records.Last().Find(t.Context(), path)
		want := time.Date(2025, time.Month(i+1), 1, 0, 0, 0, 0, time.UTC).Unix()
		if err != nil || rec == nil || rec.Selected.LastMod != want || rec.Status != http.StatusOK {
			t.Errorf("%s: got %+v, %v", path, rec, err)
		}
	}
	if found, _ := os.ReadDir(filepath.Join(b.app.folder, "sites")); len(found) != 1 || found[0].Name() != "localhost" {
		t.Errorf("there is %v", found)
	}
}

// fullDisk is a storage that cannot be written, for a reason.
type fullDisk struct {
	record.Storage
	reason error
}

func (d fullDisk) Store(context.Context, string, []byte) error { // with the name of a temporary file
	return &fs.PathError{Op: "write", Path: "/state/" + rand.Text(), Err: d.reason}
}

// stuckDisk is a storage where a file cannot be replaced.
type stuckDisk struct{ record.Storage }

func (stuckDisk) Store(context.Context, string, []byte) error {
	return &os.LinkError{Op: "rename", Old: "/state/" + rand.Text(), New: "/state/manifest.json", Err: fs.ErrPermission}
}

// closedDisk is a storage that cannot be read.
type closedDisk struct{ record.Storage }

func (closedDisk) Load(context.Context, string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: "/state/manifest.json", Err: fs.ErrPermission}
}

// TestUnwritableState: that a state cannot be read or written is one warning, with the folder, the file, the cause and the fix.
func TestUnwritableState(t *testing.T) {
	const permit = "let the user that runs Caddy read and write the folder, or name another one in the global option 'state'"
	const other = "name a folder that can be written in the global option 'state', or check the disk"
	memory := record.NewMemory()
	for name, test := range map[string]struct {
		disk          record.Storage // nil: that of a folder below a file
		cause, remedy string
	}{
		"not permitted":          {fullDisk{memory, fs.ErrPermission}, ": permission denied", permit},
		"nothing is replaced":    {stuckDisk{memory}, ": permission denied", permit},
		"not readable":           {closedDisk{memory}, ": permission denied", permit},
		"full":                   {fullDisk{memory, syscall.ENOSPC}, ": " + syscall.ENOSPC.Error(), "free space on the disk"},
		"a read-only disk":       {fullDisk{memory, syscall.EROFS}, ": " + syscall.EROFS.Error(), "mount it for writing, add the folder to ReadWritePaths of the systemd unit, or name another one in the global option 'state'"},
		"no folder, but a file":  {nil, syscall.ENOTDIR.Error(), other},
		"the disk does not work": {fullDisk{memory, errors.New("input/output error")}, ": input/output error", other},
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
				s.state.records = record.New(test.disk, "site")
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
			if got := fmt.Sprint(fields["error"]); !strings.HasSuffix(got, test.cause) || !strings.Contains(got, "/state") {
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
