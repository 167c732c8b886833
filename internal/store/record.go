package store

import (
	"bytes"
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Record is what is known of one page. Times are Unix seconds; 0 means never, or not known. A record is written
// by the crawl, save for the fields under Selected. Numbers of fields are on disk: new fields get new ones.
type Record struct {
	// Path is the page's path with its query, as [page.Page] has it, and Flags are what is either true or not.
	Path  string `cbor:"1,keyasint,omitempty"`
	Flags Flags  `cbor:"2,keyasint,omitempty"`

	// What sources said when they last named the page: as in [page.Page].
	ModTime    int64           `cbor:"3,keyasint,omitempty"`
	Version    uint32          `cbor:"4,keyasint,omitempty"`
	ChangeFreq page.ChangeFreq `cbor:"5,keyasint,omitempty"`
	Priority   page.Priority   `cbor:"6,keyasint,omitempty"`

	// Absent is since when no source has named the page that a source did name. Depth is how many links lead to
	// it from one that a source names, at least, and Linked when a page whose links count and that has one to
	// it was last fetched.
	Absent int64 `cbor:"7,keyasint,omitempty"`
	Depth  uint8 `cbor:"8,keyasint,omitempty"`
	Linked int64 `cbor:"9,keyasint,omitempty"`

	// Fetched is when the page was last fetched, whatever came of it, and Due when it is to be fetched again,
	// Wait seconds later or somewhat more. 0: at once.
	Fetched int64  `cbor:"10,keyasint,omitempty"`
	Due     int64  `cbor:"11,keyasint,omitempty"`
	Wait    uint32 `cbor:"12,keyasint,omitempty"`

	// Failing is since when fetches have come to nothing: a status of 429 or from 500 on, or no response. What
	// follows is then from the last fetch before, until Failing is over an hour ago.
	Failing int64 `cbor:"13,keyasint,omitempty"`

	// Status is the HTTP status of the response; 0 with Fetched: there was none. Text is a hash of the text
	// that a reader sees; 0: there is none, or it was not read.
	Status uint16 `cbor:"14,keyasint,omitempty"`
	Text   uint64 `cbor:"15,keyasint,omitempty"`

	// Canonical is the page that this one names as its canonical, and Target the one to which it redirects or
	// refreshes: a path where it is on the site, else an absolute URL. "": none, or the page itself.
	Canonical string `cbor:"16,keyasint,omitempty"`
	Target    string `cbor:"17,keyasint,omitempty"`

	// Declared is the date that the page declares itself.
	Declared int64 `cbor:"18,keyasint,omitempty"`

	// ETag and Modified are the validators of the response, where no Version spares a fetch.
	ETag     string `cbor:"19,keyasint,omitempty"`
	Modified int64  `cbor:"20,keyasint,omitempty"`

	// First is the batch in which the page's text was first read, Changed that in which it was last found
	// changed, and Before when it had been fetched last before that. A batch is named by when it began. Streak
	// counts the fetches in a row that found it changed.
	First   int64 `cbor:"21,keyasint,omitempty"`
	Changed int64 `cbor:"22,keyasint,omitempty"`
	Before  int64 `cbor:"23,keyasint,omitempty"`
	Streak  uint8 `cbor:"24,keyasint,omitempty"`

	// Alternates and Images are collected only where they are listed.
	Alternates []page.Alternate `cbor:"25,keyasint,omitempty"`
	Images     []string         `cbor:"26,keyasint,omitempty"`

	// Selected is what the last published selection said of the page. Selecting alone writes it.
	Selected Selected `cbor:"27,keyasint,omitzero"`

	// NoIndexTag says that the flag NoIndex comes from an X-Robots-Tag header.
	NoIndexTag bool `cbor:"28,keyasint,omitempty"`
}

// Selected is what a selection said of a page.
type Selected struct {
	_ struct{} `cbor:",toarray"`
	// Listed says that the page was listed, with LastMod as its date; 0: without one. Of a date whose time is
	// not known, Day is true.
	Listed  bool
	LastMod int64
	Day     bool

	// Text is the date of the page's text, and Dated the batch, First or Changed, from which it was decided.
	// LastMod is another where the page or a list declares one.
	Text    int64
	TextDay bool
	Dated   int64
}

// Flags of a [Record]. They are kept on disk: only ever add to them.
type Flags uint32

// The flags.
const (
	Named         Flags = 1 << iota // a source names the page: not a link, not a visitor
	Visited                         // visitors have had it
	Target                          // another page names it as its canonical
	Seed                            // the front page, or where its redirects lead
	ModDay                          // of ModTime only the day is known
	HTML                            // the response was HTML
	Document                        // and a document: it has a doctype, html, head, body or title
	NoIndex                         // the page, or its header, asks not to be indexed
	Image                           // another page shows it as an image
	Unreadable                      // the body has an encoding that was not asked for
	SoftNotFound                    // a page that cannot exist has the same text
	Proxied                         // an upstream answered
	DeclaredDay                     // of Declared only the day is known
	DeclaredMoves                   // Declared moved while the text stayed
	Disallowed                      // never fetched: the operator's or the default words say so
	Blocked                         // never fetched: robots.txt says so

	Sources Flags = 0xffff << 16 // [page.Page.Sources]
)

// Bounds of a chunk. It is full at maxChunkBytes; the record after which it is takes some MiB at most: its
// strings are bounded by the crawl.
const (
	maxChunkRecords = 1 << 14
	maxChunkBytes   = 3 << 20
	maxDecoded      = 8 << 20
)

// Their options are constant: there are no errors.
var (
	encoding, _ = cbor.EncOptions{}.UserBufferEncMode()
	decoding, _ = cbor.DecOptions{MaxArrayElements: maxChunkRecords, MaxNestedLevels: 4,
		UTF8: cbor.UTF8DecodeInvalid}.DecMode() // an ETag may be anything
	compressor, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
	decompressor, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxDecoded))
)

// encodeChunk returns a chunk: zstd-compressed CBOR, an array of n records, which are encoded already.
func encodeChunk(n int, records []byte) []byte {
	raw := append([]byte{0x99, byte(n >> 8), byte(n)}, records...)
	return bytes.Clone(compressor.EncodeAll(raw, nil))
}

// decodeChunk undoes encodeChunk. What it returns with an error is of no use.
func decodeChunk(data []byte, n int) (records []Record, err error) {
	raw, err := decompressor.DecodeAll(data, nil)
	if err == nil {
		err = decoding.Unmarshal(raw, &records)
	}
	if err == nil && len(records) != n {
		err = fmt.Errorf("%d records instead of %d", len(records), n)
	}
	return records, err
}
