package sitemap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// The values of settings that are one of a few words; the first is the default.
var (
	lastModModes   = []string{"auto", "mtime", "off"}
	canonicalModes = []string{"respect", "ignore"}
	orphanModes    = []string{"list", "omit"}
	extensionNames = []string{"alternates", "images"}
)

// compileEvidence checks the settings of what is made of what pages say.
func (h *Handler) compileEvidence(s *settings) (err error) {
	if s.manners, err = h.Ask.compile(); err != nil {
		return err
	}
	mode, err := oneOf("lastmod", h.LastMod, lastModModes)
	if err != nil {
		return err
	}
	s.dates = [...]verdict.Mode{verdict.Auto, verdict.MTime, verdict.Off}[mode]
	canonical, err := oneOf("canonical", h.Canonical, canonicalModes)
	if err != nil {
		return err
	}
	orphans, err := oneOf("orphans", h.Orphans, orphanModes)
	if err != nil {
		return err
	}
	s.canonical, s.omitOrphans = canonical == 0, orphans == 1
	for i, name := range h.Extensions {
		if _, err := oneOf("extensions", name, extensionNames); err != nil || name == "" {
			return fmt.Errorf("extensions has '%s': it takes %s", name, strings.Join(extensionNames, ", "))
		}
		if slices.Contains(h.Extensions[:i], name) {
			return fmt.Errorf("extensions has '%s' twice", name)
		}
	}
	s.alternates = slices.Contains(h.Extensions, "alternates")
	s.images = slices.Contains(h.Extensions, "images")
	return s.checkReading(h)
}

// checkReading refuses settings that need pages to be read where none is.
func (s *settings) checkReading(h *Handler) error {
	if !s.manners.off {
		return nil
	}
	switch {
	case len(h.Extensions) > 0:
		return errors.New("extensions come from reading the pages, and ask is off")
	case s.omitOrphans:
		return errors.New("orphans are found by reading the pages, and ask is off")
	case h.Canonical == "respect":
		return errors.New("canonicals are found by reading the pages, and ask is off")
	case h.LastMod == "auto":
		return errors.New("lastmod auto reads the pages, and ask is off: mtime takes what the sources tell")
	}
	return nil
}

// oneOf is which of some words a setting is; empty: the first.
func oneOf(setting, value string, words []string) (int, error) {
	if value == "" {
		return 0, nil
	}
	if i := slices.Index(words, value); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%s is '%s': it is %s or %s", setting, value, strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}

// isAsked reports whether a page may be asked for at all.
func (s *settings) isAsked(path string) bool { return !s.manners.guards(path) }
