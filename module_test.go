package sitemap

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// validate provisions a configuration with one sitemap handler.
func validate(t *testing.T, handler string) error {
	t.Helper()
	return validateApps(t, `"http": {"servers": {"srv0": {"listen": [":0"], "routes": [{"handle": [`+handler+`]}]}}}`)
}

func validateApps(t *testing.T, apps string) error {
	t.Helper()
	var cfg caddy.Config
	raw := `{"apps": {` + apps + `}}`
	if err := caddy.StrictUnmarshalJSON([]byte(raw), &cfg); err != nil {
		t.Fatal(err)
	}
	cfg.StorageRaw = caddyconfig.JSONModuleObject(map[string]string{"root": t.TempDir()}, "module", "file_system", nil)
	cfg.Admin = &caddy.AdminConfig{Disabled: true}
	cfg.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {
		BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)},
	}}}
	return caddy.Validate(&cfg)
}

// TestSettings is of JSON, whose settings no Caddyfile has checked.
func TestSettings(t *testing.T) {
	t.Setenv("SITEMAP_BASE", "https://example.com")
	t.Setenv("SITEMAP_NONE", "")
	for _, test := range []struct {
		settings string
		want     string // how the error ends; "": there is none
	}{
		{``, ""},
		{`"sources": null`, ""},
		{`"sources": []`, "sources is empty: name one, or leave it out for the default, files"},
		{`"base_url": "https://example.com:8443"`, ""},
		{`"base_url": "https://example.com:08443"`, ""},
		{`"base_url": "https://example.com:0"`, "a port is a number from 1 to 65535, not 0"},
		{`"base_url": "https://example.com:65536"`, "a port is a number from 1 to 65535, not 65536"},
		{`"base_url": "https://{http.request.host}"`, "{http.request.host} has no value here: of placeholders, only global ones such as {env.*} are replaced"},
		{`"base_url": "{env.SITEMAP_NONE}"`, "is empty: a placeholder in it has no value"},
		{`"path": "/{http.request.host}.xml"`, "{http.request.host} has no value here: of placeholders, only global ones such as {env.*} are replaced"},
		{`"path": "/{host}.xml"`, "{host} has no value here: of placeholders, only global ones such as {env.*} are replaced"},
		{`"path": "{env.SITEMAP_NONE}"`, "path '{env.SITEMAP_NONE}' is empty: a placeholder in it has no value"},
		{`"path": "/a/%2E%2E/sitemap.xml"`, "a clean path without query is wanted"},
		{`"path": "/a%2F%2Fsitemap.xml"`, "a clean path without query is wanted"},
		{`"omit": ["/{a,b}.html"]`, ""},
		{`"omit": ["/{http.vars.x}/*"]`, "omit: path pattern '/{http.vars.x}/*': {http.vars.x} has no value here"},
		{`"rules": [{"match": ["/{http.vars.x}/*"], "changefreq": "daily"}]`, "rule: path pattern '/{http.vars.x}/*': {http.vars.x} has no value here"},
		{`"sources": [{"source": "files", "at": "/x/../y"}]`, "at '/x/../y': a URL folder such as /docs is wanted"},
		{`"sources": [{"source": "files", "at": "/x/%2e/y"}]`, "at '/x/%2e/y': a URL folder such as /docs is wanted"},
		{`"sources": [{"source": "files", "at": "/{host}"}]`, "at '/{host}': {host} has no value here: placeholders are not replaced"},
		{`"sources": [{"source": "files", "at": "/x/"}, {"source": "files", "at": "/"}, {"source": "files", "at": "/a..b"}]`, ""},
		{`"sources": [{"source": "files", "root": "/"}]`, "the root is /, which holds more than a site: name a folder in it"},
		{`"sources": [{"source": "files", "root": "//srv/../"}]`, "the root is /, which holds more than a site: name a folder in it"},
		{`"sources": [{"source": "files", "root": "/", "fs": "default"}]`, "the root is /, which holds more than a site: name a folder in it"},
		{`"sources": [{"source": "files", "root": "/", "fs": "assets"}]`, ""},
		{`"sources": [{"source": "files", "root": "."}]`, ""},
		{`"sources": [{"source": "urls", "urls": ["ftp://x/"]}]`, "urls: line 1: 'ftp://x/': a URL of a site begins with https:// or http://, not ftp://"},
		{`"sources": [{"source": "urls", "urls": ["https://any.example/"]}]`, ""},
		{`"base_url": "https://example.com", "sources": [{"source": "urls", "urls": ["/", "https://other.example/ priority=1"]}]`, "urls: line 2: 'https://other.example/ priority=1': the host 'other.example' is not the site's, 'example.com'"},
		{`"base_url": "{env.SITEMAP_BASE}", "sources": [{"source": "urls", "urls": ["https://other.example/"]}]`, "urls: line 1: 'https://other.example/': the host 'other.example' is not the site's, 'example.com'"},
		{`"ask": {}`, ""},
		{`"ask": {"off": true}`, ""},
		{`"ask": {"rate": 0.5, "concurrency": 100, "never": ["logout", "/private/*"]}`, ""},
		{`"ask": {"never": []}`, ""},
		{`"ask": {"rate": -1}`, "the rate of asking is -1/s: it is at least one an hour and at most 1000/s"},
		{`"ask": {"rate": 1e-300}`, "the rate of asking is 1e-300/s: it is at least one an hour and at most 1000/s"},
		{`"ask": {"concurrency": -1}`, "the concurrency of asking is -1: it is 1 to 100"},
		{`"ask": {"off": true, "never": []}`, "ask is off: no other setting of it has any effect"},
		{`"lastmod": "auto"`, ""},
		{`"lastmod": "git"`, "lastmod is 'git': it is auto, mtime or off"},
		{`"canonical": "on"`, "canonical is 'on': it is respect or ignore"},
		{`"orphans": "on"`, "orphans is 'on': it is list or omit"},
		{`"extensions": ["images", "alternates"]`, ""},
		{`"extensions": []`, ""},
		{`"extensions": [""]`, "extensions has '': it takes alternates, images"},
		{`"extensions": ["videos"]`, "extensions has 'videos': it takes alternates, images"},
		{`"extensions": ["images", "images"]`, "extensions has 'images' twice"},
		{`"ask": {"off": true}, "lastmod": "mtime", "canonical": "ignore", "orphans": "list"`, ""},
		{`"ask": {"off": true}, "extensions": ["images"]`, "extensions come from reading the pages, and ask is off"},
		{`"ask": {"off": true}, "orphans": "omit"`, "orphans are found by reading the pages, and ask is off"},
		{`"ask": {"off": true}, "canonical": "respect"`, "canonicals are found by reading the pages, and ask is off"},
		{`"ask": {"off": true}, "lastmod": "auto"`, "lastmod auto reads the pages, and ask is off: mtime takes what the sources tell"},
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

// TestAppSettings is of the JSON of what is for all sites.
func TestAppSettings(t *testing.T) {
	t.Setenv("SITEMAP_NONE", "")
	for _, test := range []struct{ app, want string }{
		{`{}`, ""},
		{`{"state": "off"}`, ""},
		{`{"state": "/var/lib/caddy/sitemap"}`, ""},
		{`{"state": "on"}`, "state 'on': a folder such as /var/lib/caddy/sitemap is wanted, or off"},
		{`{"state": "{env.SITEMAP_NONE}/sitemap"}`, "state '{env.SITEMAP_NONE}/sitemap': evaluated placeholder {env.SITEMAP_NONE} is empty"},
	} {
		err := validateApps(t, `"sitemap": `+test.app)
		if test.want == "" && err != nil {
			t.Errorf("%s: got %v", test.app, err)
		}
		if test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %s", test.app, err, test.want)
		}
	}
}
