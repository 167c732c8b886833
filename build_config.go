package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

// buildConfig is the configuration of a build.
type buildConfig struct {
	root    string // "": the configuration's
	baseURL string // "": the configuration's
	config  string // a file; "": none
	adapter string
	state   string // a folder; "": nothing is remembered
	crawl   string // on, off; "": as the configuration has it
}

// check refuses settings that do not go together, and makes paths absolute.
func (c *buildConfig) check() error {
	switch {
	case c.config == "" && c.root == "":
		return errors.New("name the site's folder with --root, or a configuration with --config")
	case c.config == "" && c.baseURL == "":
		return errors.New("give the site's URL with --base-url, such as https://example.com")
	case c.config == "" && c.adapter != "":
		return errors.New("--adapter is for a configuration: name one with --config")
	case c.crawl != "" && c.crawl != "on" && c.crawl != "off":
		return fmt.Errorf("--crawl is '%s': it is on or off", c.crawl)
	}
	if c.baseURL != "" {
		if _, _, err := checkBaseURL(c.baseURL); err != nil {
			return fmt.Errorf("--base-url: %w", err)
		}
	}
	if c.root != "" {
		if err := isFolder(c.root); err != nil {
			return fmt.Errorf("--root: %w", err)
		}
		abs, err := filepath.Abs(c.root)
		if err != nil {
			return err
		}
		c.root = abs
	}
	if c.state == noState {
		c.state = ""
	}
	if c.state == "" {
		return nil
	}
	abs, err := filepath.Abs(c.state)
	c.state = abs
	return err
}

func isFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", path)
	}
	return nil
}

// load makes the configuration, without what it says of logs and the admin endpoint.
func (c *buildConfig) load(level string) (*caddy.Config, error) {
	config, err := c.raw()
	if err != nil {
		return nil, err
	}
	config["admin"] = object{"disabled": true}
	config["logging"] = quietLogs(level)
	apps, ok := config["apps"].(object)
	if !ok {
		return nil, errNoSitemapHandler
	}
	state := c.state
	if state == "" {
		state = noState
	}
	app, ok := apps["sitemap"].(object)
	if !ok {
		app = make(object)
	}
	app["state"] = state
	apps["sitemap"] = app
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var parsed *caddy.Config
	if err := caddy.StrictUnmarshalJSON(encoded, &parsed); err != nil {
		return nil, fmt.Errorf("decoding the configuration: %w", err)
	}
	return parsed, nil
}

type object = map[string]any

// quietLogs sends lines of a level, or worse, to the standard error, except those about
// listening.
func quietLogs(level string) object {
	return object{"logs": object{"default": object{"level": level, "exclude": []string{"http.auto_https", "tls"}}}}
}

// raw is the configuration as JSON has it.
func (c *buildConfig) raw() (object, error) {
	if c.config == "" {
		return c.alone(), nil
	}
	encoded, _, _, err := caddycmd.LoadConfig(c.config, c.adapter)
	if err != nil {
		return nil, err
	}
	var config object
	if err := json.Unmarshal(caddy.RemoveMetaFields(encoded), &config); err != nil {
		return nil, fmt.Errorf("decoding the configuration: %w", err)
	}
	return config, c.override(config)
}

// alone is the configuration of a folder that a file server serves at the base URL.
func (c *buildConfig) alone() object {
	_, folder, _ := checkBaseURL(c.baseURL) // check has refused the others
	handler := object{"handler": "sitemap", "base_url": c.baseURL}
	c.overrideCrawl(handler)
	handlers := []any{object{"handler": "vars", "root": c.root}, handler, object{"handler": "file_server"}}
	route := object{"handle": handlers}
	if folder != "" {
		strip := object{"handler": "rewrite", "strip_path_prefix": folder}
		route = object{
			"match":  []any{object{"path": []string{folder + "/*"}}},
			"handle": []any{object{"handler": "subroute", "routes": []any{object{"handle": append([]any{strip}, handlers...)}}}},
		}
	}
	server := object{"listen": []string{":80"}, "automatic_https": object{"disable": true}, "routes": []any{route}}
	return object{"apps": object{"http": object{"servers": object{"build": server}}}}
}

// override lets flags take precedence over the configuration.
func (c *buildConfig) override(config object) error {
	handlers := handlersOf(config, "sitemap")
	if len(handlers) == 0 {
		return errNoSitemapHandler
	}
	if c.baseURL != "" && len(handlers) > 1 {
		return fmt.Errorf("the configuration has %d sitemap handlers, and --base-url is that of one", len(handlers))
	}
	for _, h := range handlers {
		if c.baseURL != "" {
			h["base_url"] = c.baseURL
		}
		c.overrideCrawl(h)
	}
	if c.root == "" {
		return nil
	}
	return c.overrideRoot(config)
}

func (c *buildConfig) overrideCrawl(h object) {
	switch c.crawl {
	case "off":
		h["crawl"] = object{"off": true}
	case "on":
		if crawl, ok := h["crawl"].(object); ok {
			delete(crawl, "off")
		}
	}
}

// overrideRoot puts the root in the place of the one that the configuration has.
func (c *buildConfig) overrideRoot(config object) error {
	roots := make(map[any]bool)
	var with []object
	for _, name := range []string{"vars", "file_server"} {
		for _, h := range handlersOf(config, name) {
			if root, ok := h["root"]; ok {
				roots[root] = true
				with = append(with, h)
			}
		}
	}
	if len(roots) != 1 {
		return fmt.Errorf("--root is that of one site, and the configuration has %d roots", len(roots))
	}
	for _, h := range with {
		h["root"] = c.root
	}
	return nil
}

// handlersOf are all HTTP handlers of a name within a piece of configuration.
func handlersOf(config any, name string) []object {
	var found []object
	switch config := config.(type) {
	case []any:
		for _, value := range config {
			found = append(found, handlersOf(value, name)...)
		}
	case object:
		if config["handler"] == name {
			found = append(found, config)
		}
		for _, value := range config {
			found = append(found, handlersOf(value, name)...)
		}
	}
	return found
}
