package sitemap

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// validate provisions a configuration with one sitemap handler.
func validate(t *testing.T, handler string) error {
	t.Helper()
	return validateApps(t, `"http": {"servers": {"srv0": {"listen": [":0"], "routes": [{"handle": [`+handler+`]}]}}}`)
}

func validateApps(t *testing.T, apps string) error {
	t.Helper()
	var cfg caddy.Config
	if err := caddy.StrictUnmarshalJSON([]byte(`{"apps": {`+apps+`}}`), &cfg); err != nil {
		t.Fatal(err)
	}
	return caddy.Validate(quiet(t, &cfg))
}

// TestSettings: JSON is checked, too, since no Caddyfile has checked it. What a Caddyfile can say,
// caddytest/adapt holds.
func TestSettings(t *testing.T) {
	t.Setenv("SITEMAP_BASE", "https://example.com")
	t.Setenv("SITEMAP_NONE", "")
	for _, test := range []struct {
		settings string
		want     string // how the error ends; "": there is none
	}{
		{``, ""},
		{`"sources": null`, ""},
		{`"sources": []`, ""},
		{`"base_url": "https://example.com:8443"`, ""},
		{`"base_url": "https://example.com:08443"`, ""},
		{`"base_url": "{env.SITEMAP_NONE}"`, "base_url: evaluated placeholder {env.SITEMAP_NONE} is empty"},
		{`"base_url": "https://{http.request.host}/docs"`, "base_url: unrecognized placeholder {http.request.host}"},
		{`"path": "/.xml"`, "path '/.xml': the name of a sitemap must end in .xml"},
		{`"max_urls": 1000000000`, ""},
		{`"max_urls": -1`, "max_urls is -1: use 1 to 1000000000"},
		{`"shard_urls": 1, "max_urls": 50001`, "max_urls is 50001: an index of 50000 shards of 1 pages holds no more than 50000"},
		{`"rules": [{"changefreq": "daily"}]`, "a rule needs at least one path pattern"},
		{`"rules": [{"match": ["/a"]}]`, "the rule for /a sets nothing: give it a changefreq or a priority"},
		{`"path": "/{env.SITEMAP_NONE}.xml"`, "use a clean path such as /sitemap.xml"},
		{`"path": "/a%2F%2Fsitemap.xml"`, "use a clean path such as /sitemap.xml"},
		{`"exclude": ["/{a,b}.html"]`, "exclude: path pattern '/{a,b}.html': placeholders are not replaced"},
		{`"rules": [{"match": ["/{http.vars.x}/*"], "changefreq": "daily"}]`, "rule: path pattern '/{http.vars.x}/*': placeholders are not replaced"},
		{`"sources": [{"source": "files", "at": "/x/"}, {"source": "files", "at": "/"}, {"source": "files", "at": "/a..b"}]`, ""},
		{`"sources": [{"source": "files", "root": "/"}]`, "the root is /, which holds more than a site: use a folder in it"},
		{`"sources": [{"source": "files", "root": "//srv/../"}]`, "the root is /, which holds more than a site: use a folder in it"},
		{`"sources": [{"source": "files", "root": "/", "fs": "default"}]`, "the root is /, which holds more than a site: use a folder in it"},
		{`"sources": [{"source": "files", "root": "/", "fs": "assets"}]`, ""},
		{`"sources": [{"source": "files", "root": "."}]`, ""},
		{`"sources": [{"source": "urls", "urls": ["https://any.example/"]}]`, ""},
		{`"base_url": "https://example.com", "sources": [{"source": "urls", "urls": ["/", "https://other.example/ priority=1"]}]`, "urls: line 2: 'https://other.example/ priority=1': it is on https://other.example, not on https://example.com"},
		{`"base_url": "{env.SITEMAP_BASE}", "sources": [{"source": "urls", "urls": ["https://other.example/"]}]`, "urls: line 1: 'https://other.example/': it is on https://other.example, not on https://example.com"},
		{`"sources": [{"source": "links", "query": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"]}]`, ""},
		{`"sources": [{"source": "links", "query": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u"]}]`, "query names 21 parameters: use at most 20"},
		{`"crawl": {}`, ""},
		{`"crawl": {"off": true}`, ""},
		{`"crawl": {"rate": 0.5, "concurrency": 100, "disallow": ["logout", "/private/*"]}`, ""},
		{`"crawl": {"disallow": []}`, ""},
		{`"crawl": {"disallow": [""]}`, "crawl disallow '' is not a word: it needs a letter or a digit"},
		{`"crawl": {"rate": -1}`, "crawl rate is -1/s: use at least one an hour and at most 1000/s"},
		{`"crawl": {"rate": 1e-300}`, "crawl rate is 1e-300/s: use at least one an hour and at most 1000/s"},
		{`"crawl": {"concurrency": -1}`, "crawl concurrency is -1: use 1 to 100"},
		{`"lastmod": "auto"`, ""},
		{`"extensions": ["images", "alternates"]`, ""},
		{`"extensions": []`, ""},
		{`"crawl": {"off": true}, "lastmod": "mtime", "canonical": "ignore", "orphans": "list"`, ""},
		{`"base_url": "https://example.com/docs", "sources": [{"source": "urls", "urls": ["/", "https://Example.com:443/docs/a"]}]`, ""},
	} {
		settings := `{"handler": "sitemap"}`
		if test.settings != "" {
			settings = `{"handler": "sitemap", ` + test.settings + `}`
		}
		err := validate(t, settings)
		if test.want == "" && err != nil {
			t.Errorf("%s: got %v", test.settings, err)
		}
		if test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %s", test.settings, err, test.want)
		}
	}
}

// TestHandlerMemory: a handler is small, as a configuration may have one for each of thousands of sites.
func TestHandlerMemory(t *testing.T) {
	const handlers = 100
	allocated := func(handlers int) uint64 {
		var routes []string
		for i := range handlers {
			routes = append(routes, fmt.Sprintf(`{"match": [{"host": ["%d.example"]}], "handle": [{"handler": "sitemap"}]}`, i))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := validateApps(t, `"http": {"servers": {"srv0": {"listen": [":0"], "routes": [`+strings.Join(routes, ",")+`]}}}`)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	one, all := allocated(1), allocated(1+handlers)
	const most = 128 << 10 // several times what Caddy takes to load it
	if each := (int64(all) - int64(one)) / handlers; each > most {
		t.Errorf("loading a handler allocates %d bytes, want at most %d", each, most)
	} else {
		t.Logf("loading a handler allocates %d bytes", each)
	}
}

// TestHint: the first rule that matches counts, and only where the source says nothing.
func TestHint(t *testing.T) {
	half, full := 0.5, 1.0
	b := newBench(t, func(h *Handler) {
		h.Rules = []Rule{{Match: []string{"/news/*"}, ChangeFreq: "hourly"}, {Match: []string{"/n*", "/b"}, ChangeFreq: "daily", Priority: &half}}
	})
	own, err := page.PriorityOf(full)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/news/a": "hourly ", "/new": "daily 0.5", "/b": "daily 0.5", "/c": " "} {
		p := page.Page{Path: path}
		b.handler.settings.hint(&p)
		if got := p.ChangeFreq.String() + " " + p.Priority.String(); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	p := page.Page{Path: "/b", Priority: own}
	if b.handler.settings.hint(&p); p.Priority != own {
		t.Errorf("got the priority %s, the source's is %s", p.Priority, own)
	}
}

// TestModulesScannable: caddyserver.com finds the modules by reading the code, and refuses a package in which a type has
// a method CaddyModule and is not registered, or where that returns anything but a literal with a literal ID.
func TestModulesScannable(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	registered := make(map[string]bool)
	var methods []*ast.FuncDecl
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if called := types.ExprString(n.Fun); called == "caddy.RegisterModule" {
					argument := types.ExprString(n.Args[0])
					registered[strings.NewReplacer("new(", "", ")", "", "{}", "").Replace(argument)] = true
				}
			case *ast.FuncDecl:
				if n.Recv != nil && n.Name.Name == "CaddyModule" {
					methods = append(methods, n)
				}
			}
			return true
		})
	}
	if len(methods) != 8 {
		t.Errorf("got %d modules, want 8", len(methods))
	}
	for _, method := range methods {
		receiver := strings.TrimPrefix(types.ExprString(method.Recv.List[0].Type), "*")
		if !registered[receiver] {
			t.Errorf("%s has a method CaddyModule, and is not registered", receiver)
		}
		result, isReturn := method.Body.List[0].(*ast.ReturnStmt)
		if !isReturn {
			t.Errorf("CaddyModule of %s does more than return", receiver)
			continue
		}
		info, isLiteral := result.Results[0].(*ast.CompositeLit)
		if !isLiteral {
			t.Errorf("CaddyModule of %s returns %s, no literal", receiver, types.ExprString(result.Results[0]))
			continue
		}
		if _, isLiteral := info.Elts[0].(*ast.KeyValueExpr).Value.(*ast.BasicLit); !isLiteral {
			t.Errorf("the ID of %s is no literal", receiver)
		}
	}
}

// TestWantsRoot: the root of the site is looked for where a source needs it.
func TestWantsRoot(t *testing.T) {
	urls := &SourceURLs{URLs: []string{"/a"}}
	apart := &SourceFiles{Root: "/srv/other"}
	for name, test := range map[string]struct {
		sources []input
		want    bool
	}{
		"files":                      {[]input{new(SourceFiles)}, true},
		"files of another root":      {[]input{apart}, false},
		"files of both":              {[]input{new(SourceFiles), apart}, true},
		"a list":                     {[]input{urls}, false},
		"visitors":                   {[]input{new(SourceTraffic)}, false},
		"links":                      {[]input{new(SourceLinks), urls}, false},
		"a source of another module": {[]input{guest{source: new(bench)}}, true},
	} {
		b := newBench(t, func(h *Handler) { h.sources = test.sources })
		if got := b.handler.wantsRoot; got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestDigest: a setting counts for the digest of the configuration unless it shapes no snapshot.
func TestDigest(t *testing.T) {
	apart := []string{"indexnow", "ping", "refresh_interval", "robots_txt"}
	kind := reflect.TypeFor[Handler]()
	var left []string
	for i := range kind.NumField() {
		name, _, isSetting := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		if !isSetting {
			continue
		}
		changed := new(Handler)
		field := reflect.ValueOf(changed).Elem().Field(i)
		switch field.Kind() {
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.String:
			field.SetString("set")
		case reflect.Bool:
			field.SetBool(true)
		default:
			field.SetInt(1)
		}
		if changed.digest() == new(Handler).digest() {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	if !slices.Equal(left, apart) {
		t.Errorf("left out are %q, want %q", left, apart)
	}
}
