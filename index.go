package sitemap

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unsafe"
)

const (
	retiredFor = 90 * 24 * time.Hour
	maxRetired = 10_000
)

// documentKind is what a document holds.
type documentKind uint8

const (
	kindURLSet documentKind = iota
	kindIndex
)

// document is one finished XML document, the index or a shard. It is never
// changed.
type document struct {
	suffix   string // of its name: "" for the index or the only urlset, else "-" and 12 digits
	kind     documentKind
	gzip     []byte
	size     int64 // bytes of the XML
	textSize int64 // bytes as a list of URLs, one a line
	sum      uint64
	etag     string // of the XML, without quotes
	modified time.Time
	headers  headers

	pages  int
	first  string // path of the first page
	newest newestPage
}

// newestPage is the latest modification among a document's pages.
type newestPage struct {
	lastMod int64
	day     bool
}

func (n *newestPage) add(lastMod int64, day bool) {
	if lastMod > n.lastMod {
		*n = newestPage{lastMod, day}
	}
}

// Snapshot is one finished generation of a site: all shards and the index. It is
// never changed, and holds data alone, so that it can outlive a configuration.
type Snapshot struct {
	index    *document   // or the only urlset
	shards   []*document // by first page; empty where index is the only urlset
	bySuffix map[string]*document
	retired  []retiredName // the latest last
	pages    int
	bytes    int64 // of memory that the documents and the retired names take
}

// retiredName is the name of a shard that is no more.
type retiredName struct {
	suffix string
	first  string
	at     time.Time
}

// newSnapshot takes the shards in order of their pages. index is nil where the
// only shard is all there is.
func newSnapshot(index *document, shards []*document, previous *Snapshot, now time.Time) *Snapshot {
	s := &Snapshot{index: index, shards: shards, bySuffix: make(map[string]*document, len(shards)+1)}
	if index == nil {
		s.index, s.shards = shards[0], nil
	}
	for _, d := range append(slices.Clip(shards), s.index) {
		s.bySuffix[d.suffix] = d
	}
	for _, d := range s.bySuffix {
		s.bytes += int64(len(d.gzip))
	}
	for _, d := range shards {
		s.pages += d.pages
	}
	if previous != nil {
		s.retire(previous, now)
	}
	return s
}

// retire remembers the names of the previous snapshot that are no more.
func (s *Snapshot) retire(previous *Snapshot, now time.Time) {
	for _, r := range previous.retired {
		if _, back := s.bySuffix[r.suffix]; !back && now.Sub(r.at) < retiredFor {
			s.retired = append(s.retired, r)
		}
	}
	for _, d := range previous.shards {
		if _, there := s.bySuffix[d.suffix]; !there {
			s.retired = append(s.retired, retiredName{d.suffix, d.first, now})
		}
	}
	if over := len(s.retired) - maxRetired; over > 0 {
		s.retired = slices.Clone(s.retired[over:])
	}
	for _, r := range s.retired {
		s.bytes += int64(unsafe.Sizeof(r)) + int64(len(r.suffix)+len(r.first))
	}
}

// count is how many pages the snapshot lists; none, if it is nil.
func (s *Snapshot) count() int {
	if s == nil {
		return 0
	}
	return s.pages
}

// urlsets are the documents that list pages, by first page.
func (s *Snapshot) urlsets() []*document {
	if len(s.shards) == 0 {
		return []*document{s.index}
	}
	return s.shards
}

// find returns the document of a name, told by its suffix; for a name that a
// refresh retired, the shard that now holds its first page. Nil: no document of
// the site, as where there is no snapshot.
func (s *Snapshot) find(suffix string) *document {
	if s == nil {
		return nil
	}
	if suffix == "" {
		return s.index
	}
	if d, ok := s.bySuffix[suffix]; ok {
		return d
	}
	for _, r := range slices.Backward(s.retired) {
		if r.suffix == suffix {
			return s.holding(r.first)
		}
	}
	return nil
}

// holding returns the shard that holds a path, or would.
func (s *Snapshot) holding(path string) *document {
	if len(s.shards) == 0 {
		return s.index
	}
	i, found := slices.BinarySearchFunc(s.shards, path, func(d *document, path string) int {
		return cmp.Compare(d.first, path)
	})
	if !found && i > 0 {
		i--
	}
	return s.shards[i]
}

// equal reports whether a newer snapshot says just what s says.
func (s *Snapshot) equal(newer *Snapshot) bool {
	return s.index == newer.index && slices.Equal(s.shards, newer.shards) && slices.EqualFunc(s.retired, newer.retired, func(a, b retiredName) bool {
		return a.suffix == b.suffix
	})
}

// form is in which of its forms a document is asked for.
type form uint8

const (
	formXML  form = iota
	formGzip      // ….xml.gz
	formText      // ….txt
)

var extensions = [...]string{formXML: ".xml", formGzip: ".xml.gz", formText: ".txt"}

// parseName tells which document of a sitemap a path names, by its suffix, and in
// which form. A false means that the path is none of its documents' names.
func parseName(path, stem string) (suffix string, f form, ok bool) {
	rest, found := strings.CutPrefix(path, stem)
	if !found {
		return "", 0, false
	}
	for f, extension := range extensions {
		if suffix, found := strings.CutSuffix(rest, extension); found {
			return suffix, form(f), suffix == "" || isShardSuffix(suffix)
		}
	}
	return "", 0, false
}

// isShardSuffix matches a hyphen and twelve lower-case hexadecimal digits.
func isShardSuffix(s string) bool {
	if len(s) != 13 || s[0] != '-' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
