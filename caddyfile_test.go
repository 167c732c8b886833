package sitemap

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

var update = flag.Bool("update", false, "write what is adapted into the fixtures of caddytest/adapt")

// TestAdapt: a fixture is a Caddyfile, a line of dashes, and what the Caddyfile is adapted to: the
// JSON of the app sitemap, if it is configured, and that of each handler, or an error. What Caddy
// writes around them is Caddy's own; that it can be loaded is checked all the same.
func TestAdapt(t *testing.T) {
	t.Setenv("SITEMAP_BASE", "https://example.com")
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	names, err := filepath.Glob("caddytest/adapt/*.caddyfiletest")
	if err != nil || len(names) < 450 {
		t.Fatalf("got %d fixtures, %v: some got lost", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".caddyfiletest"), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source, want, _ := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "----------\n")
			config, err := adapt(t, source)
			var got string
			if err != nil {
				got = err.Error() + "\n"
			} else {
				got = ours(t, config)
			}
			if *update {
				if err := os.WriteFile(name, []byte(source+"----------\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if config == nil {
				return
			}
			var cfg caddy.Config
			if err := caddy.StrictUnmarshalJSON(config, &cfg); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(quiet(t, &cfg)); err != nil {
				t.Error(err)
			}
		})
	}
}

// adapt returns the JSON of a Caddyfile, or the error that a user gets.
func adapt(t *testing.T, source string) ([]byte, error) {
	t.Helper()
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(source), nil)
	if err != nil {
		return nil, err
	}
	if len(warnings) > 0 {
		t.Errorf("got warnings %s", warnings)
	}
	return config, nil
}

// ours are the app sitemap and the handlers of a configuration, in its order, as indented JSON.
func ours(t *testing.T, config []byte) string {
	t.Helper()
	// Durations are integers that a float64 would print with an exponent.
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.UseNumber()
	var root struct{ Apps map[string]any }
	if err := decoder.Decode(&root); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	write := func(value any) {
		if err := encoder.Encode(value); err != nil {
			t.Fatal(err)
		}
	}
	if app, ok := root.Apps["sitemap"]; ok {
		write(map[string]any{"apps": map[string]any{"sitemap": app}})
	}
	handlers(root.Apps["http"], write)
	return text.String()
}

// handlers calls do with each handler sitemap within a value of JSON.
func handlers(value any, do func(any)) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			handlers(element, do)
		}
	case map[string]any:
		if value["handler"] == "sitemap" {
			do(value)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			handlers(value[name], do)
		}
	}
}

// TestDirectivePlace: wherever the directive stands in its block, and beside whatever, the handler
// runs behind what guards, encodes and rewrites, and before what responds; a matcher is its
// route's.
func TestDirectivePlace(t *testing.T) {
	const everything = `
		file_server
		handle /api/* {
			reverse_proxy localhost:9000
		}
		templates
		sitemap
		try_files {path} /index.html
		encode
		basic_auth {
			bob $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG
		}
		root * /srv/www`
	for _, test := range []struct {
		options string // global ones
		block   string // of the site
		want    string // the handlers as they run: their names, those of a subroute in parentheses, behind their matchers
	}{
		{"", "sitemap\nroot * /srv/www\nfile_server", "vars sitemap file_server"},
		{"", "sitemap\nfile_server\nroot * /srv/www", "vars sitemap file_server"},
		{"", "file_server\nsitemap\nroot * /srv/www", "vars sitemap file_server"},
		{"", "file_server\nroot * /srv/www\nsitemap", "vars sitemap file_server"},
		{"", "root * /srv/www\nfile_server\nsitemap", "vars sitemap file_server"},
		{"", "reverse_proxy localhost:9000\nsitemap", "sitemap reverse_proxy"},
		{"", "sitemap\nbasic_auth {\nbob $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}\nfile_server", "authentication sitemap file_server"},
		{"", "sitemap\nencode gzip zstd\nfile_server", "encode sitemap file_server"},
		{"", "templates\nsitemap\nfile_server", "sitemap templates file_server"},
		{"", "sitemap\nfile_server\ntry_files {path} /index.html", "[file] rewrite sitemap file_server"},
		{"", everything, "vars [file] rewrite authentication encode sitemap templates [path] (reverse_proxy) file_server"},
		{"order sitemap first", "encode\nsitemap\nfile_server", "sitemap encode file_server"},

		{"", "route {\nroot * /srv/www\nsitemap\nfile_server\n}", "(vars sitemap file_server)"},
		{"", "handle /docs/* {\nroot * /srv\nsitemap {\npath /docs/sitemap.xml\n}\nfile_server\n}\nhandle {\nrespond 404\n}",
			"[path] (vars sitemap file_server) (static_response)"},
		{"", "handle_path /docs/* {\nroot * /srv/docs\nsitemap\nfile_server\n}", "[path] (rewrite vars sitemap file_server)"},

		{"", "root * /srv/www\nsitemap /docs/*\nfile_server", "vars [path] sitemap file_server"},
		{"", "root * /srv/www\nsitemap *\nfile_server", "vars sitemap file_server"},
		{"", "@public method GET\nroot * /srv/www\nsitemap @public\nfile_server", "vars [method] sitemap file_server"},
	} {
		source := "{\n" + test.options + "\n}\n\n:8080 {\n" + test.block + "\n}\n"
		config, err := adapt(t, string(caddyfile.Format([]byte(source))))
		if err != nil {
			t.Errorf("%s: %v", test.block, err)
			continue
		}
		var root struct {
			Apps struct {
				HTTP struct {
					Servers map[string]struct{ Routes []route }
				}
			}
		}
		if err := json.Unmarshal(config, &root); err != nil {
			t.Fatal(err)
		}
		if got := outline(root.Apps.HTTP.Servers["srv0"].Routes); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.block, got, test.want)
		}
		var cfg caddy.Config
		if err := caddy.StrictUnmarshalJSON(config, &cfg); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(quiet(t, &cfg)); err != nil {
			t.Errorf("%s: %v", test.block, err)
		}
	}
}

// route is what decides about the place of a handler.
type route struct {
	Match  []map[string]any
	Handle []struct {
		Handler string
		Routes  []route
	}
}

// outline names the handlers of routes in the order in which they run.
func outline(routes []route) string {
	var words []string
	for _, r := range routes {
		for _, set := range r.Match {
			words = append(words, "["+strings.Join(slices.Sorted(maps.Keys(set)), " ")+"]")
		}
		for _, handler := range r.Handle {
			if handler.Handler == "subroute" {
				words = append(words, "("+outline(handler.Routes)+")")
			} else {
				words = append(words, handler.Handler)
			}
		}
	}
	return strings.Join(words, " ")
}

// TestOptionsDocs: the documentation has each option in its syntax and in its table, and the changelog has its name.
func TestOptionsDocs(t *testing.T) {
	reference, err := os.ReadFile("docs/caddyfile.md")
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, names, _ := strings.Cut(string(changelog), "\n| `sitemap` | ")
	names, _, _ = strings.Cut(names, "\n")
	for _, o := range new(Handler).options(nil) {
		_, notSource := caddy.GetModule("http.sitemap.sources." + o.Name)
		if o.Hint != "" || notSource == nil {
			continue // a word that is no option, or a source, which may be of another module
		}
		syntax := regexp.MustCompile(`(?m)^\t` + o.Name + `\b`)
		row := regexp.MustCompile("(?m)^\\| `" + o.Name + "\\b")
		quoted := "`" + o.Name + "`"
		if !syntax.Match(reference) || !row.Match(reference) || !strings.Contains(names, quoted) {
			t.Errorf("%s: syntax %t, table %t, changelog %t", o.Name, syntax.Match(reference), row.Match(reference), strings.Contains(names, quoted))
		}
	}
}
