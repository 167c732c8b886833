package outdir

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// generation writes files, by name, in the order of their names.
func generation(t *testing.T, dir string, force bool, files map[string]string) (Result, error) {
	t.Helper()
	f, err := Open(dir, force)
	if err != nil {
		return Result{}, err
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := f.Stage(name, text(files[name])); err != nil {
			return Result{}, err
		}
	}
	return f.Finish(len(files))
}

func text(content string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	}
}

// contents are the files of a folder, save the manifest.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ManifestName {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func wantContents(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if got := contents(t, dir); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGenerations: each has its own files, what stays the same is left alone, and what
// others put there is.
func TestGenerations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "out")
	first := map[string]string{"a": "1", "b": "2", "sub/c": "3"}
	r, err := generation(t, dir, false, first)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "sub/c"}; !slices.Equal(r.Written, want) || r.Bytes != 3 {
		t.Errorf("got %+v, want %v written", r, want)
	}
	wantContents(t, dir, first)

	put(t, filepath.Join(dir, "other"), "theirs")
	old := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{"a", ManifestName} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	r, err = generation(t, dir, false, map[string]string{"a": "1", "b": "two"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Unchanged, []string{"a"}) || !slices.Equal(r.Written, []string{"b"}) || !slices.Equal(r.Removed, []string{"sub/c"}) {
		t.Errorf("got %+v", r)
	}
	wantContents(t, dir, map[string]string{"a": "1", "b": "two", "other": "theirs"})
	if info, err := os.Stat(filepath.Join(dir, "a")); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("what is the same was written anew: %v, %v", info.ModTime(), err)
	}

	// The same once more touches nothing at all.
	if err := os.Chtimes(filepath.Join(dir, ManifestName), old, old); err != nil {
		t.Fatal(err)
	}
	if r, err = generation(t, dir, false, map[string]string{"a": "1", "b": "two"}); err != nil || len(r.Written)+len(r.Removed) > 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	if info, err := os.Stat(filepath.Join(dir, ManifestName)); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the manifest was written anew: %v", err)
	}
}

// TestForeign: what others wrote, or have changed since, is neither replaced nor removed.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a"), "theirs")
	files := map[string]string{"a": "ours", "b": "2"}
	if _, err := generation(t, dir, false, files); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), filepath.Join(dir, "a")) {
		t.Errorf("got %v", err)
	}
	wantContents(t, dir, map[string]string{"a": "theirs"})
	if _, err := generation(t, dir, true, files); err != nil {
		t.Fatal(err)
	}
	wantContents(t, dir, files)

	put(t, filepath.Join(dir, "b"), "changed")
	if _, err := generation(t, dir, false, files); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
	r, err := generation(t, dir, false, map[string]string{"a": "ours"})
	if err != nil || !slices.Equal(r.Kept, []string{"b"}) || r.Removed != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	wantContents(t, dir, map[string]string{"a": "ours", "b": "changed"})

	// What happens to be the same becomes the folder's own.
	put(t, filepath.Join(dir, "c"), "same")
	if r, err = generation(t, dir, false, map[string]string{"a": "ours", "c": "same"}); err != nil || len(r.Unchanged) != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestStageOver: a file that is another one's with something added is replaced while it
// is what that was made of, and never removed.
func TestStageOver(t *testing.T) {
	for _, test := range []struct {
		name       string
		there, was string // "-": nothing
		force      bool
		want       string // "": ErrForeign
	}{
		{"new", "-", "-", false, "x+"},
		{"new, of another one", "-", "x", false, "x+"},
		{"as it was", "x", "x", false, "x+"},
		{"the same already", "x+", "x", false, "x+"},
		{"changed meanwhile", "y", "x", false, ""},
		{"not known of", "y", "-", false, ""},
		{"forced", "y", "x", true, "x+"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if test.there != "-" {
				put(t, path, test.there)
			}
			var was []byte
			if test.was != "-" {
				was = []byte(test.was)
			}
			f, err := Open(dir, test.force)
			if err != nil {
				t.Fatal(err)
			}
			err = f.StageOver("f", was, []byte("x+"))
			if test.want == "" {
				if !errors.Is(err, ErrForeign) {
					t.Errorf("got %v", err)
				}
			} else if err == nil {
				_, err = f.Finish(nil)
			}
			if err := errors.Join(err, f.Close()); test.want != "" && err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if want := test.want; want != "" && string(data) != want {
				t.Errorf("got %q (%v), want %q", data, err, want)
			}
			if test.want == "" {
				wantContents(t, dir, map[string]string{"f": test.there})
				return
			}
			if _, err := generation(t, dir, false, map[string]string{"a": "1"}); err != nil {
				t.Fatal(err)
			}
			wantContents(t, dir, map[string]string{"a": "1", "f": "x+"})
			// And is known as what was written, if it was.
			if test.there == "x+" {
				return
			}
			if f, err = Open(dir, false); err != nil {
				t.Fatal(err)
			}
			if err := f.StageOver("f", nil, []byte("z")); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHalfFinished: files of a generation that did not come to its end are known.
func TestHalfFinished(t *testing.T) {
	dir := t.TempDir()
	if _, err := generation(t, dir, false, map[string]string{"a": "1"}); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Stage("a", text("2")), f.Stage("b", text("3")), f.Stage("c", text("4"))); err != nil {
		t.Fatal(err)
	}
	// A folder comes in the way of the last one just then.
	if err := os.MkdirAll(filepath.Join(dir, "c", "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Finish(nil); err == nil {
		t.Fatal("a file took the place of a folder")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantContents(t, dir, map[string]string{"a": "2", "b": "3"})
	if _, err := generation(t, dir, false, map[string]string{"c": "4"}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	r, err := generation(t, dir, false, map[string]string{"c": "4"})
	if err != nil || !slices.Equal(r.Removed, []string{"a", "b"}) {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestFailedStage: an error while a file is written leaves nothing behind.
func TestFailedStage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	f, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	if err := f.Stage("a", func(io.Writer) error { return full }); !errors.Is(err, full) || !strings.Contains(err.Error(), "writing "+filepath.Join(dir, "a")) {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"../a", "/a", "", "a/../b"} {
		if err := f.Stage(name, text("1")); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

// TestMadeFolders: what was made for nothing goes, with all that was made around it, and
// nothing that was there or has something in it.
func TestMadeFolders(t *testing.T) {
	base := t.TempDir()
	if err := os.Mkdir(filepath.Join(base, "there"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(base, "file"), "x")
	for _, test := range []struct {
		dir   string
		whole bool // it comes to its end
		want  []string
	}{
		{"there/n1/n2/n3", false, []string{"file", "there"}},
		{"there", false, []string{"file", "there"}},
		{"file/n1/n2", false, []string{"file", "there"}},
		{"there/n1/n2", true, []string{"file", "there", "there/n1", "there/n1/n2", "there/n1/n2/.caddy-sitemap.json", "there/n1/n2/sub", "there/n1/n2/sub/a"}},
	} {
		f, err := Open(filepath.Join(base, filepath.FromSlash(test.dir)), false)
		if err == nil {
			err = f.Stage("sub/a", text("1"))
			if test.whole && err == nil {
				_, err = f.Finish(nil)
			}
			err = errors.Join(err, f.Close())
		}
		if err != nil && !strings.HasPrefix(test.dir, "file") {
			t.Errorf("%s: %v", test.dir, err)
		}
		if got := below(t, base); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.dir, got, test.want)
		}
	}
}

// below are all files and folders in a folder, in order.
func below(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, path); name != "." {
			all = append(all, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBusy: two cannot have a folder at the same time; it is free once one has ended.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, true); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSweep: what a killed build left aside goes, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	if _, err := generation(t, dir, false, map[string]string{"sub/a": "1"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{tempName(), "sub/" + tempName(), tempPrefix + "short" + tempSuffix, "x.tmp"} {
		put(t, filepath.Join(dir, name), "half")
	}
	if _, err := generation(t, dir, false, map[string]string{"sub/a": "1"}); err != nil {
		t.Fatal(err)
	}
	wantContents(t, dir, map[string]string{"sub/a": "1", tempPrefix + "short" + tempSuffix: "half", "x.tmp": "half"})
}

// TestBadManifest: one that cannot be meant is an error, and nothing is touched; with force
// it is one that says nothing.
func TestBadManifest(t *testing.T) {
	for manifest, want := range map[string]string{
		"":                                       "unexpected end",
		"{":                                      "unexpected end",
		`{"version":2}`:                          "version 2",
		`{"files":{"a":[]}}`:                     "version 0",
		`{"version":1,"files":{"../a":["x"]}}`:   "no name of a file",
		`{"version":1,"merged":{"/etc/a":[""]}}`: "no name of a file",
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, ManifestName), manifest)
		put(t, filepath.Join(dir, "a"), "1")
		_, err := generation(t, dir, false, map[string]string{"b": "1"})
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ManifestName) {
			t.Errorf("%s: got %v, want %q", manifest, err, want)
		}
		wantContents(t, dir, map[string]string{"a": "1"})
		for _, force := range []bool{true, false} {
			if _, err := generation(t, dir, force, map[string]string{"b": "1"}); err != nil {
				t.Errorf("%s: with force %t: %v", manifest, force, err)
			}
		}
		wantContents(t, dir, map[string]string{"a": "1", "b": "1"})
	}
}

// FuzzManifest: whatever a manifest holds, it names files in the folder alone.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"files":{"a":["6b86b273ff34fce1"],"sub/b":[]}}`))
	f.Add([]byte(`{"version":1,"files":{"../outside":["6b86b273ff34fce1"]},"merged":{"/etc/passwd":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data)
		if err != nil {
			return
		}
		dir := t.TempDir()
		for name := range either(m.Files, m.Merged) {
			rel, err := filepath.Rel(dir, filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil || rel == "." || !filepath.IsLocal(rel) {
				t.Errorf("%q lies at %s (%v)", name, rel, err)
			}
		}
	})
}
