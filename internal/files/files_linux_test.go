package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// TestWeirdNames is of names that other systems do not have.
func TestWeirdNames(t *testing.T) {
	const x = "some text"
	scanCase{
		tree: tree{"a b.html": x, "100%.html": x, "q?.html": x, "h#.html": x, "a&b.html": x, `"'<>.html`: x, "n\nl.html": x, "l\xe9.html": x, "\xff\xfe/i.html": x, "é/ü.html": x, "a\x01.html": x, `b\c.html`: x, "+.html": x, "a;b=c.html": x, strings.Repeat("x", 250) + ".html": x, "a!/b.html": x, "a.html": x, "a/b.html": x},
		want: "/%22'%3C%3E.html /%C3%A9/%C3%BC.html /%FF%FE/i.html /+.html /100%25.html /a!/b.html /a%01.html /a%20b.html /a&b.html /a.html /a/b.html /a;b=c.html /b%5Cc.html /h%23.html /l%E9.html /n%0Al.html /q%3F.html /" + strings.Repeat("x", 250) + ".html",
	}.run(t)
}

func TestNotRegular(t *testing.T) {
	root := build(t, tree{"a.html": "x", "c/": "", "link.html": "->pipe.html"})
	if err := unix.Mkfifo(filepath.Join(root, "pipe.html"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(root, "c", "index.html"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(root, "pipe.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Root: root}, {FS: os.DirFS(root), Root: "."}} {
		got, st := scanAll(t, o)
		if !slices.Equal(paths(got), []string{"/a.html"}) || st.LeftOut["not a regular file"] != 3 || st.LeftOut["not included"] != 1 {
			t.Errorf("got %q, %v", paths(got), st.LeftOut)
		}
	}
	if _, err := Scan(context.Background(), Options{Root: filepath.Join(root, "pipe.html")}, func(page.Page) error { return nil }); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("root is a FIFO: got %v, want that it is no folder", err)
	}
}

// asStranger runs f as a user who owns nothing, where the process may change to one.
func asStranger(t *testing.T, f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	if err := syscall.Setresuid(-1, nobody, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setresuid(-1, 0, 0); err != nil {
			panic(err)
		}
	}()
	f()
}

// TestUnreadable: what is in a folder that cannot be read is not known; whether a file can be
// is for the server to say.
func TestUnreadable(t *testing.T) {
	// Outside of t.TempDir: others may not enter that.
	root, err := os.MkdirTemp("", "files")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	add(t, root, tree{"a.html": "x", "denied.html": "x", "list/a.html": "x", "enter/a.html": "x", "to.html": "->list/a.html", "z/index.html": "x"})
	for name, mode := range map[string]os.FileMode{"": 0o755, "denied.html": 0, "list": 0o444, "enter": 0o111, "z/index.html": 0} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(filepath.Join(root, name), 0o755)
	}
	asStranger(t, func() {
		got, st, err := scanOnce(Options{Root: root})
		slices.Sort(st.Unreadable)
		unread := []string{filepath.Join(root, "enter"), filepath.Join(root, "list", "a.html"), filepath.Join(root, "to.html")}
		if err != nil || !slices.Equal(paths(got), []string{"/a.html", "/denied.html", "/z/"}) || st.LeftOut[Unreadable] != 3 || !slices.Equal(st.Unreadable, unread) {
			t.Errorf("got %q, %+v, %v", paths(got), st, err)
		}
		if _, _, err := scanOnce(Options{Root: filepath.Join(root, "enter")}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("got %v, want %v", err, fs.ErrPermission)
		}
	})
}
