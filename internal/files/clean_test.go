package files

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// trying is a server that tries names of files for a path, as try_files does: {path} is the path without its slash, and a name
// with a slash at its end is a folder, to which the server redirects.
func trying(files tree, names ...string) func(path string) Response {
	return func(path string) Response {
		for _, name := range names {
			name = strings.ReplaceAll(name, "{path}", path[1:])
			for file, content := range files {
				if file == name {
					return Response{Status: http.StatusOK, Body: []byte(content)}
				}
				if strings.HasSuffix(name, "/") && strings.HasPrefix(file, name) {
					return Response{Status: http.StatusPermanentRedirect}
				}
			}
		}
		return Response{Status: http.StatusNotFound}
	}
}

// TestLearnClean: whether pages are listed without ".html" is what the server says of a few that are beside no folder.
func TestLearnClean(t *testing.T) {
	pages := tree{"index.html": "home", "about.html": "about", "sub/team.html": "team"}
	besides := tree{"about.html": "about", "folder.html": "page", "folder/a.html": "a"}
	crowd := tree{"a.html": "a", "b.html": "b", "c.html": "c", "folder.html": "page", "folder/a.html": "x"}
	clean := trying(pages, "{path}", "{path}.html")
	redirecting := func(isLong bool) func(path string) Response {
		return func(path string) Response {
			if strings.HasSuffix(path, ".html") == isLong {
				return Response{Status: http.StatusPermanentRedirect}
			}
			return clean(path)
		}
	}
	unknown := []string{"no response", "other pages at the short names", "one page for everything", "one redirect for everything", "redirects to long names"}
	for name, test := range map[string]struct {
		files tree
		get   func(path string) Response
		clean bool
	}{
		"files alone":              {pages, trying(pages, "{path}"), false},
		"by a short name, too":     {pages, clean, true},
		"redirects to short names": {pages, redirecting(true), true},
		"redirects to long names":  {pages, redirecting(false), false},
		"a page redirects, as to a login": {pages, func(path string) Response {
			if path == "/about" {
				return Response{Status: http.StatusFound}
			}
			return clean(path)
		}, true},
		"one redirect for everything": {pages, func(string) Response { return Response{Status: http.StatusFound} }, false},
		"one page for everything":     {pages, trying(pages, "index.html"), false},
		"the first is shown for all that is missing": {
			tree{"200.html": "app", "about.html": "about", "us.html": "us"},
			trying(tree{"200.html": "app", "about.html": "about", "us.html": "us"}, "{path}", "{path}.html", "200.html"), true,
		},
		"no response": {pages, func(string) Response { return Response{} }, false},
		"a file of the short name": {tree{"a.html": "", "b.html": "page", "b": "file"},
			trying(tree{"a.html": "", "b.html": "page", "b": "file"}, "{path}", "{path}.html"), true},
		"other pages at the short names": {pages, func(path string) Response {
			if strings.HasSuffix(path, "page-for-the-sitemap") {
				return Response{Status: http.StatusNotFound}
			}
			return Response{Status: http.StatusOK, Body: []byte(path)}
		}, false},
		"beside a folder, after others": {
			crowd, trying(crowd, "{path}", "{path}.html"), true,
		},
		"all beside folders": {
			tree{"docs.html": "docs", "docs/a/index.html": "a"}, trying(tree{"docs.html": "docs", "docs/a/index.html": "a"}, "{path}", "{path}.html"), true,
		},
		"beside a folder":      {besides, trying(besides, "{path}", "{path}.html"), true},
		"folders before pages": {besides, trying(besides, "{path}", "{path}/", "{path}.html"), true},
		"one of another folder": {tree{"a/x.html": "", "a/y.html": "", "a/z.html": "", "b/x.html": ""},
			trying(tree{"a/x.html": "", "a/y.html": "", "a/z.html": ""}, "{path}", "{path}.html"), false},
		"other pages than three": {tree{"a/x.html": "", "b/x.html": "", "c/x.html": "", "d/x.html": ""}, func(path string) Response {
			if strings.HasPrefix(path, "/a/") {
				t.Errorf("%s is requested", path)
			}
			return trying(tree{"b/x.html": "", "c/x.html": "", "d/x.html": ""}, "{path}", "{path}.html")(path)
		}, true},
	} {
		o := Options{Root: build(t, test.files)}
		got, isKnown := LearnClean(t.Context(), o, test.get)
		if got != test.clean || isKnown == slices.Contains(unknown, name) {
			t.Errorf("%s: got %t, known: %t, want %t", name, got, isKnown, test.clean)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, isKnown := LearnClean(ctx, Options{Root: build(t, pages)}, func(path string) Response {
		cancel()
		return clean(path)
	})
	if isKnown {
		t.Error("it is known although it was canceled meanwhile")
	}
}
