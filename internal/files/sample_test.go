package files

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"
	"time"
)

// TestSample: equal trees have equal samples, whatever their times are; others have not.
func TestSample(t *testing.T) {
	base := make(fstest.MapFS)
	for i := range sampleLen {
		base[fmt.Sprintf("%03d/%04d.html", i/100, i)] = &fstest.MapFile{Data: []byte("page")}
	}
	options := func(tree fstest.MapFS) Options { return Options{FS: tree, Hide: []string{"hidden"}} }
	want, err := Sample(t.Context(), options(base))
	if err != nil {
		t.Fatal(err)
	}
	const some = "004/0456.html"
	for name, test := range map[string]struct {
		change func(tree fstest.MapFS)
		isSame bool
	}{
		"another time": {func(tree fstest.MapFS) {
			tree[some] = &fstest.MapFile{Data: []byte("page"), ModTime: time.Unix(1e9, 0)}
		}, true},
		"an asset, and a dotfile":  {func(tree fstest.MapFS) { tree["004/a.js"], tree[".x.html"] = tree[some], tree[some] }, true},
		"a hidden folder":          {func(tree fstest.MapFS) { tree["hidden/a.html"] = tree[some] }, true},
		"a file behind the sample": {func(tree fstest.MapFS) { tree["999.html"] = tree[some] }, true},
		"a file is missing":        {func(tree fstest.MapFS) { delete(tree, some) }, false},
		"a file is renamed":        {func(tree fstest.MapFS) { tree["004/x.html"] = tree[some]; delete(tree, some) }, false},
		"a file is longer":         {func(tree fstest.MapFS) { tree[some] = &fstest.MapFile{Data: []byte("page!")} }, false},
	} {
		tree := maps.Clone(base)
		test.change(tree)
		got, err := Sample(t.Context(), options(tree))
		if got == want != test.isSame || err != nil {
			t.Errorf("%s: is the same: %t, %v", name, got == want, err)
		}
	}
	if _, err := Sample(t.Context(), Options{FS: base, Root: "none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no root: got %v", err)
	}
}
