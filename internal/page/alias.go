package page

import "strings"

var aliasEndings = [...]string{"", "/", "/index", "/index.html", "/index.htm", "/index.php", ".html", ".htm", ".php"}

// Bare is a path without what is often left out of a page's URL, or added to it: the extension .html, .htm or
// .php, the name index, a slash at the end. The query stays. Paths with the same Bare are aliases: they mostly
// lead to the same page.
func Bare(path string) string {
	path, query, hasQuery := strings.Cut(path, "?")
	for _, extension := range [...]string{".html", ".htm", ".php"} {
		if bare, ok := strings.CutSuffix(path, extension); ok {
			path = bare
			break
		}
	}
	path = strings.TrimRight(strings.TrimSuffix(path, "/index"), "/")
	if hasQuery {
		return path + "?" + query
	}
	return path
}

// Aliases returns the paths with the same [Bare] as path, which is one of them.
func Aliases(path string) []string {
	path, query, hasQuery := strings.Cut(Bare(path), "?")
	if hasQuery {
		query = "?" + query
	}
	aliases := make([]string, 0, len(aliasEndings))
	for _, ending := range aliasEndings {
		if alias := path + ending + query; strings.HasPrefix(alias, "/") {
			aliases = append(aliases, alias)
		}
	}
	return aliases
}
