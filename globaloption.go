package sitemap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("sitemap", parseGlobalOption)
}

var appWords = []string{"state"}

// parseGlobalOption parses the global option sitemap, which sets up the App.
// See UnmarshalCaddyfile for the syntax.
func parseGlobalOption(d *caddyfile.Dispenser, earlier any) (any, error) {
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	if earlier != nil {
		d.Reset()
		d.Next()
		return nil, d.Err("sitemap given twice: write its settings into one block")
	}
	return httpcaddyfile.App{Name: "sitemap", Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile parses the global option. Its setting is optional; the default
// is in parentheses:
//
//	sitemap {
//	    state <folder>|off               # where what is known of pages is kept (in Caddy's data directory)
//	}
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume option name
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': the settings of all sitemaps, such as state, belong in a block", d.Val())
	}
	set := make(settingsGiven)
	for d.NextBlock(0) {
		var err error
		switch {
		case d.Val() == "state":
			start := mark(d)
			if a.State, err = set.once(d); err == nil {
				if err = checkState(a.State); err != nil {
					err = start.WrapErr(err)
				}
			}
		case isHandlerWord(d.Val()):
			err = d.Errf("%s is a setting of a site: write it into the sitemap of its block", d.Val())
		default:
			err = unrecognized(d, "option", appWords)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isHandlerWord(word string) bool {
	return slices.Contains(handlerWords, word) || isSource(word)
}

// checkState refuses what is neither a folder nor off. A folder's name alone would
// lie in the working directory: more likely it is a word that is mistaken.
func checkState(state string) error {
	switch {
	case state == noState:
		return nil
	case strings.Contains(state, "{http."):
		return fmt.Errorf("state '%s': of placeholders, only global ones such as {env.*} are replaced", state)
	case strings.ContainsAny(state, `/\{`):
		return nil
	case nearest(state, []string{noState}) != "":
		return fmt.Errorf("unrecognized state '%s'; did you mean 'off'?", state)
	}
	return fmt.Errorf("state '%s': a folder such as /var/lib/caddy/sitemap is wanted, or off", state)
}

// expandState replaces the placeholders of a state setting; the folder is absolute
// then. Off and an empty setting, which is the default's, stay what they are.
func expandState(state string, repl *caddy.Replacer) (string, error) {
	if state == "" {
		return "", nil
	}
	if err := checkState(state); err != nil {
		return "", err
	}
	folder, err := repl.ReplaceOrErr(state, true, true)
	if err != nil {
		return "", fmt.Errorf("state '%s': %w", state, err)
	}
	if folder == noState {
		return folder, nil
	}
	return caddy.FastAbs(folder)
}

// Validate reports a state setting that is no folder.
func (a *App) Validate() error {
	_, err := expandState(a.State, caddy.NewReplacer())
	return err
}

// Interface guards
var (
	_ caddy.Validator       = (*App)(nil)
	_ caddyfile.Unmarshaler = (*App)(nil)
)
