package discover

import (
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/crawler"
)

// Reason is why a visit says nothing of a page that may be listed. The zero value: it
// does say something.
type Reason uint8

// The reasons, in the order that they are looked for.
const (
	Counts Reason = iota
	NotRead
	NotOK
	SignedIn
	Private
	NoIndex
	NotHTML
	Asset
	Robot
)

// Reasons is how many there are, with Counts.
const Reasons = int(Robot) + 1

var reasons = [Reasons]string{
	"counts", "not GET or HEAD", "not 200 or 304", "signed in", "private response", "noindex", "not HTML", "asset", "robot",
}

// String is the reason in a few words.
func (r Reason) String() string {
	if int(r) < Reasons {
		return reasons[r]
	}
	return ""
}

// Filter tells which visits count: those in which a browser, of nobody in particular,
// was shown a page of HTML that may be indexed. It remembers the names of browsers and
// is not for concurrent use. The zero value is ready.
type Filter struct {
	agents map[string]bool // whether they are robots
}

// What a Filter remembers: so many names of so many bytes at most.
const (
	maxAgents = 4096
	maxAgent  = crawler.Longest
)

// Reason says whether a visit counts. Where the answer's type is not known, the
// extension of the path decides, and one that is not that of an asset is a page's; a
// visitor whose User-Agent is not known is none of the robots, one that has none is.
func (f *Filter) Reason(v *accesslog.Visit) Reason {
	switch {
	case v.Method != "GET" && v.Method != "HEAD":
		return NotRead
	case v.Status != 200 && v.Status != 304:
		return NotOK
	case v.User:
		return SignedIn
	case v.CacheControl != "" && isPrivate(v.CacheControl):
		return Private
	case v.RobotsTag != "" && isNoIndex(v.RobotsTag):
		return NoIndex
	case isKnown(v.ContentType):
		if !isHTML(v.ContentType) {
			return NotHTML
		}
	case IsAsset(v.URI):
		return Asset
	}
	if f.isRobot(v.UserAgent) {
		return Robot
	}
	return Counts
}

func isKnown(value string) bool { return value != "" && value != "-" }

func isHTML(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	t = strings.Trim(t, " \t")
	return strings.EqualFold(t, "text/html") || strings.EqualFold(t, "application/xhtml+xml")
}

// isPrivate reports whether a Cache-Control header keeps an answer from being shown to
// others.
func isPrivate(cacheControl string) bool {
	for len(cacheControl) > 0 {
		var directive string
		directive, cacheControl, _ = strings.Cut(cacheControl, ",")
		directive, _, _ = strings.Cut(directive, "=")
		directive = strings.Trim(directive, " \t")
		if strings.EqualFold(directive, "private") || strings.EqualFold(directive, "no-store") {
			return true
		}
	}
	return false
}

// isNoIndex reports whether an X-Robots-Tag header keeps all search engines, or
// Google's, from listing an answer. A name and a colon say which robot the rest is for.
func isNoIndex(robotsTag string) bool {
	const between = ", \t;"
	applies := true
	for {
		robotsTag = strings.TrimLeft(robotsTag, between)
		if robotsTag == "" {
			return false
		}
		n := strings.IndexAny(robotsTag, between+":")
		if n < 0 {
			n = len(robotsTag)
		}
		word := robotsTag[:n]
		robotsTag = robotsTag[n:]
		if rest := strings.TrimLeft(robotsTag, " \t"); rest != "" && rest[0] == ':' {
			robotsTag = rest[1:]
			if isRobotName(word) {
				applies = strings.EqualFold(word, "googlebot") || strings.EqualFold(word, "robots") || word == "*"
			}
			continue
		}
		if applies && (strings.EqualFold(word, "noindex") || strings.EqualFold(word, "none")) {
			return true
		}
	}
}

// isRobotName reports whether what stands before a colon in an X-Robots-Tag header is
// a robot's name, no directive with a value or part of a date.
func isRobotName(word string) bool {
	return word != "" && (word == "*" || 'a' <= word[0]|0x20 && word[0]|0x20 <= 'z') &&
		!hasFold(word, "max-") && !strings.EqualFold(word, "unavailable_after")
}

func hasFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// IsAsset reports whether a URI has the extension of something that is no page.
func IsAsset(uri string) bool {
	var short [12]byte // one more than the longest has
	extension := extensionOf(uri)
	switch string(appendLower(short[:0], extension[:min(len(extension), len(short))])) {
	case "css", "less", "scss", "sass", "styl", "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue", "map", "wasm",
		"json", "jsonld", "json5", "geojson", "topojson", "ndjson", "jsonl", "webmanifest", "manifest", "appcache",
		"xml", "xsl", "xslt", "xsd", "rss", "atom", "rdf", "wsdl", "gpx", "kml", "kmz", "opml",
		"txt", "md", "csv", "tsv", "yaml", "yml", "toml", "ini", "conf", "cfg", "log", "sql", "db", "sqlite", "bak", "old", "swp", "env", "lock", "tpl",
		"png", "apng", "jpg", "jpeg", "jpe", "jfif", "jp2", "jxl", "gif", "webp", "avif", "heic", "heif", "svg", "svgz", "ico", "cur", "bmp", "tif", "tiff", "psd", "ai", "eps",
		"woff", "woff2", "ttf", "otf", "eot", "ttc",
		"mp3", "m4a", "m4b", "aac", "ogg", "oga", "opus", "flac", "wav", "weba", "mid", "midi", "wma", "aif", "aiff",
		"mp4", "m4v", "m4s", "mpg", "mpeg", "mov", "avi", "mkv", "webm", "ogv", "wmv", "flv", "f4v", "3gp", "ts4", "m3u", "m3u8", "mpd", "vtt", "srt",
		"pdf", "ps", "doc", "docx", "docm", "dot", "dotx", "xls", "xlsx", "xlsm", "ppt", "pptx", "pps", "ppsx", "odt", "ods", "odp", "rtf", "epub", "mobi", "azw3", "pages", "numbers", "key", "ics", "vcf", "bib", "tex",
		"zip", "gz", "tgz", "bz2", "tbz2", "xz", "txz", "zst", "br", "lz", "lz4", "7z", "rar", "tar", "cab", "jar", "war", "ear",
		"exe", "msi", "msix", "appx", "dmg", "pkg", "deb", "rpm", "apk", "aab", "ipa", "xpi", "crx", "iso", "img", "bin", "dat", "dll", "so", "class", "swf", "torrent",
		"asc", "sig", "sha1", "sha256", "sha512", "md5", "pem", "crt", "cer", "der", "p7s", "gpg",
		"glb", "gltf", "obj", "stl", "usdz", "fbx", "ply", "pbf", "mvt", "parquet", "npz", "onnx", "unity3d", "data", "pack", "idx":
		return true
	}
	return false
}

// extensionOf is what follows the last dot of the last segment of a URI's path.
func extensionOf(uri string) string {
	dot, end := -1, -1
	for i := 0; i < len(uri); i++ {
		switch uri[i] {
		case '/':
			dot, end = -1, -1
		case '.':
			if end < 0 {
				dot = i
			}
		case ';':
			if end < 0 {
				end = i
			}
		case '?', '#':
			uri = uri[:i]
		}
	}
	switch {
	case dot < 0:
		return ""
	case end < 0:
		return uri[dot+1:]
	}
	return uri[dot+1 : end]
}
