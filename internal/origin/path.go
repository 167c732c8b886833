package origin

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// MaxPath is the most bytes of a path, with its query, that a link or a visitor may name.
const MaxPath = 2000

const maxValue = 200 // bytes of a query parameter's value, as it is written

// Cleaner maps URIs to paths of pages. It is safe for concurrent use.
type Cleaner struct{ names, prefixes []string }

// NewCleaner returns a Cleaner that keeps these query parameters, decoded, in this order. All others are
// dropped, and so are those that [IsTracking] knows.
func NewCleaner(query []string) *Cleaner {
	c := new(Cleaner)
	escape := strings.NewReplacer("&", "%26", "=", "%3D", "+", "%2B")
	for _, name := range query {
		if !IsTracking(name) {
			c.names = append(c.names, name)
			c.prefixes = append(c.prefixes, escape.Replace(page.Escape(name))+"=")
		}
	}
	return c
}

// sessions are the parameters of path segments that hold a session's identifier. An application may encode its semicolon:
// that it is a session's is sure by its name.
var sessions = regexp.MustCompile(`(?i)(;|%3B)(j?session[-_]?id(sso)?|session|sess(id)?|sid|phpsessid|aspsessionid\w*|cfid|cftoken)(=|%3D)([^;/%]|%[^3]|%3[^B])*`)

// Clean returns the path of a URI, which begins with a slash, in [page.Normal]'s form: with the query parameters
// that are kept, without a fragment and without the session identifiers that applications write after a semicolon.
//
// ok is false for a URI that begins with something else, or that has an empty segment before the last, a dot segment
// between encoded slashes, a backslash, a control character, an invalid escape, invalid UTF-8, a kept value of over 200
// bytes, or over 2,000 bytes in all.
func (c *Cleaner) Clean(uri string) (path string, ok bool) {
	if len(uri) > 4*MaxPath {
		return "", false
	}
	uri, _, _ = strings.Cut(uri, "#")
	path, query, _ := strings.Cut(uri, "?")
	path, err := page.Normal(path)
	if err != nil {
		return "", false
	}
	if strings.Contains(path, ";") || strings.Contains(path, "%3B") {
		// What is left of a segment may be dots.
		path, _ = page.Normal(sessions.ReplaceAllString(path, ""))
	}
	// An application that decodes slashes would see empty or dot segments.
	hidesSegments := strings.Contains(path, "%2F") && !page.IsClean(path)
	if strings.Contains(path, "//") || hidesSegments || !isText(path) {
		return "", false
	}
	mark := "?"
	for i, name := range c.names {
		value, err := page.Normal("/?" + valueOf(query, name))
		if err != nil || len(value) > len("/?")+maxValue || !isText(value) {
			return "", false
		}
		if value != "/" {
			path += mark + c.prefixes[i] + value[len("/?"):]
			mark = "&"
		}
	}
	return path, len(path) <= MaxPath
}

// IsExact reports whether [Cleaner.Clean] takes nothing from the query of a URI that may tell pages apart: all of its
// parameters are kept, or say only where the visitor came from. If not, its response may be another one than the page's.
func (c *Cleaner) IsExact(uri string) bool {
	uri, _, _ = strings.Cut(uri, "#")
	_, query, _ := strings.Cut(uri, "?")
	for pair := range strings.SplitSeq(query, "&") {
		encoded, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(encoded)
		if err != nil {
			return false
		}
		if name != "" && !slices.Contains(c.names, name) && !IsTracking(name) {
			return false
		}
	}
	return true
}

// isText reports whether a normal path or query, decoded, is UTF-8 without control characters and backslashes.
func isText(path string) bool {
	raw, err := url.PathUnescape(path)
	return err == nil && utf8.ValidString(raw) && !strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) || r == '\\' })
}

// valueOf is the value of the first parameter with that name, not decoded.
func valueOf(query, name string) string {
	for pair := range strings.SplitSeq(query, "&") {
		n, value, _ := strings.Cut(pair, "=")
		if n, err := url.QueryUnescape(n); err == nil && n == name {
			return value
		}
	}
	return ""
}

var trackingPrefixes = strings.Fields("utm_ mtm_ matomo_ piwik_ pk_ itm_ at_ _hs __hs fb_ vero_ guce")

var trackingNames = setOf(`gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid srsltid _ga _gl _gac fbclid igshid igsh msclkid
	mc_cid mc_eid mkt_tok yclid ymclid ysclid _openstat twclid ttclid tduid li_fat_id epik rdt_cid scclid sccid irclickid irgwc zanpid
	awc ref_src ref_url hsctatracking _kx _ke oly_anon_id oly_enc_id rb_clickid s_cid s_kwcid ml_subscriber wickedid _branch_match_id
	cx_click dm_i ef_id sscid`)

// IsTracking reports whether a query parameter, in any case, is known to say where a visitor came from, and so never
// which page is shown.
func IsTracking(name string) bool {
	name = strings.ToLower(name)
	return trackingNames[name] || slices.ContainsFunc(trackingPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

var assets = setOf(`css less scss js mjs cjs jsx ts tsx vue map wasm json jsonld geojson ndjson webmanifest xml xsl xslt xsd rss atom
	rdf gpx kml kmz txt md csv tsv yaml yml toml ini conf log sql bak png apng jpg jpeg jp2 jxl gif webp avif heic svg svgz ico cur
	bmp tif tiff psd ai eps woff woff2 ttf otf eot mp3 m4a aac ogg oga opus flac wav mid mp4 m4v mpg mpeg mov avi mkv webm ogv wmv
	flv 3gp m3u m3u8 mpd vtt srt pdf ps doc docx xls xlsx ppt pptx odt ods odp rtf epub mobi ics vcf zip gz tgz bz2 xz txz zst br 7z
	rar tar jar war exe msi dmg pkg deb rpm apk ipa iso img bin dat dll so class swf torrent asc sig sha1 sha256 sha512 md5 pem crt
	cer gpg glb gltf obj stl usdz fbx parquet npz data`)

func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// IsAsset reports whether a path has the extension of a file that is no page, such as .css. It is a guess:
// /wiki/Node.js may be a page.
func IsAsset(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	name := path[strings.LastIndexByte(path, '/')+1:]
	dot := strings.LastIndexByte(name, '.')
	return dot >= 0 && assets[strings.ToLower(name[dot+1:])]
}
