package files

import (
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// refusedName reports whether a file server refuses to serve the name: it has a
// colon (an alternate data stream), the form of an 8.3 short name, a dot or
// space at its end (which Windows drops), or is reserved.
func refusedName(name string) bool {
	return strings.ContainsAny(name, `:\`) || strings.TrimRight(name, ". ") != name ||
		!filepath.IsLocal(name) || isShortName(name)
}

// isShortName is Caddy's rule for one component of a path.
func isShortName(name string) bool {
	base, ext, hasExt := strings.Cut(name, ".")
	if utf8.RuneCountInString(base) > 8 || strings.ContainsAny(base, `"*+,/:;<=>?[\]| `) {
		return false
	}
	if hasExt && (utf8.RuneCountInString(ext) > 3 || strings.ContainsAny(ext, `"*+,/:;<=>?[\]| .`)) {
		return false
	}
	tilde := strings.LastIndexByte(base, '~')
	if tilde <= 0 || tilde == len(base)-1 {
		return false
	}
	return strings.Trim(base[tilde+1:], "0123456789") == ""
}
