package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Record is what is known of one page. Times are Unix seconds; 0 means never, or not known. A record is written
// by the crawl, save for the fields under Selected. Numbers of fields are on disk: new fields get new ones. The next
// number is 56. A record has at most 504 bytes, as Go makes room for it by 512: a flag belongs beside another one.
type Record struct {
	// Path is the page's path with its query, as in [page.Page].
	Path  string `cbor:"1,keyasint,omitempty"`
	Flags Flags  `cbor:"2,keyasint,omitempty"`

	// What sources said when they last named the page, as in [page.Page]. ModTime is the time of the file where there
	// is a Version, else the date of a list. For the date of a list beside a file, see ListDate.
	ModTime    int64           `cbor:"3,keyasint,omitempty"`
	Version    uint32          `cbor:"-"` // see hashesSize
	ChangeFreq page.ChangeFreq `cbor:"5,keyasint,omitempty"`
	Priority   page.Priority   `cbor:"6,keyasint,omitempty"`

	// Depth is the fewest links from a page that a source names.
	Depth uint8 `cbor:"8,keyasint,omitempty"`

	// Absent is since when no source names the page any more. Linked is when a page whose links count and that links to it was last fetched, to within a week.
	Absent int64 `cbor:"7,keyasint,omitempty"`
	Linked int64 `cbor:"9,keyasint,omitempty"`

	// Fetched is when the page was last fetched, successfully or not, and Due when it is to be fetched again: Wait
	// seconds later, or somewhat more. 0: at once.
	Fetched int64  `cbor:"10,keyasint,omitempty"`
	Due     int64  `cbor:"11,keyasint,omitempty"`
	Wait    uint32 `cbor:"12,keyasint,omitempty"`

	// Failing is since when fetches have failed: without a response, or with a status for which page.IsConclusive is
	// false. The fields below are then of the last fetch before, until Failing is over an hour ago.
	Failing int64 `cbor:"13,keyasint,omitempty"`

	// Status is the HTTP status of the response; 0 with Fetched: there was none. Text is a hash of the visible
	// text; 0: there is none, or it was not read.
	Status uint16 `cbor:"14,keyasint,omitempty"`
	Text   uint64 `cbor:"-"` // see hashesSize

	// Canonical is the page that this one names as its canonical, and Target the one to which it redirects or
	// refreshes: a path on the site, or else an absolute URL. "": none, or the page itself.
	Canonical string `cbor:"16,keyasint,omitempty"`
	Target    string `cbor:"17,keyasint,omitempty"`

	// Declared is the modification date that the page itself declares.
	Declared int64 `cbor:"18,keyasint,omitempty"`

	// ETag and Modified are the validators of the response, unless Version spares fetches.
	ETag     string `cbor:"19,keyasint,omitempty"`
	Modified int64  `cbor:"20,keyasint,omitempty"`

	// First is the batch in which the page's text was first read, Changed that in which it was last found changed, and
	// Before the time of the fetch before that, or when the file was last seen unchanged. A batch is named by the time
	// of its start. Streak counts the fetches in a row that found a change.
	First   int64 `cbor:"21,keyasint,omitempty"`
	Changed int64 `cbor:"22,keyasint,omitempty"`
	Before  int64 `cbor:"23,keyasint,omitempty"`
	Streak  uint8 `cbor:"24,keyasint,omitempty"`

	// Alternates, Images and Title are collected only if they are listed.
	Alternates []page.Alternate `cbor:"25,keyasint,omitempty"`
	Images     []string         `cbor:"26,keyasint,omitempty"`

	// Selected is the page's part of the last published selection. Only the select stage writes it.
	Selected Selected `cbor:"27,keyasint,omitzero"`

	// WasDay goes with Was.
	WasDay bool `cbor:"51,keyasint,omitempty"`

	// NoIndexTag says that the flag NoIndex comes from an X-Robots-Tag header.
	NoIndexTag bool `cbor:"28,keyasint,omitempty"`

	// Title is the page's own title, if a document for people shows it.
	Title string `cbor:"29,keyasint,omitempty"`

	// ListDate is the date that a list gives a page that has a Version, so that ModTime is the time of its file.
	ListDate int64 `cbor:"30,keyasint,omitempty"`

	// Withheld says that the links of the last fetch did not count, as the page needed a link itself and had none.
	Withheld bool `cbor:"31,keyasint,omitempty"`

	// Cause is by what the page is due at Due.
	Cause Cause `cbor:"32,keyasint,omitempty"`

	// Finder is the page whose link named this one first; "": none did, or it was the first fetch of that page.
	// Credited says that the finder's Hub counts it.
	Finder   string `cbor:"33,keyasint,omitempty"`
	Credited bool   `cbor:"34,keyasint,omitempty"`

	// Followed is when all links of the page were last followed; 0: at Fetched.
	Followed int64 `cbor:"35,keyasint,omitempty"`

	// Hub is the page's score as a hub at Fetched, in thousandths: how many pages that are listed were first found by
	// its links, with a decay over 7 days.
	Hub uint32 `cbor:"36,keyasint,omitempty"`

	// Was is Selected.Text before Selected.Dated, to which it returns if the change turns out to be the template's. It
	// takes no more room beside Hub.
	Was uint32 `cbor:"50,keyasint,omitempty"`

	// Links are those of the last fetch, of hubs and the front page.
	Links []string `cbor:"37,keyasint,omitempty"`

	// Muted is until when signals of the cause FalseBy do not make the page due: the last False of them were false.
	Muted   int64 `cbor:"38,keyasint,omitempty"`
	False   uint8 `cbor:"39,keyasint,omitempty"`
	FalseBy Cause `cbor:"41,keyasint,omitempty"`

	// Moved is from when on search engines may be told what has become of the page last: that it was added, has changed or is
	// gone. 0: there is nothing to tell. Turned says that it was added or removed, and nothing else: if that is undone before it
	// was told, there is nothing to tell any more. Only the select stage writes them.
	Moved  uint32 `cbor:"54,keyasint,omitempty"`
	Turned bool   `cbor:"55,keyasint,omitempty"`

	// FoundBy is by what the page was due when its text was last found changed, and Found when that was: Changed may be
	// later, as the next fetch has confirmed it.
	FoundBy Cause  `cbor:"42,keyasint,omitempty"`
	Found   uint32 `cbor:"53,keyasint,omitempty"`

	// Blocks is the sum of the hashes of the blocks of text that count for the page's date: see [html.Meta]; 0: it
	// is not known, as it was counted by other rules. Difference is how it differs from the sum by which the page was last
	// dated, or is still to be dated since.
	Blocks     uint64 `cbor:"-"` // see hashesSize
	Difference uint64 `cbor:"45,keyasint,omitempty"`

	// Settled is Blocks before it was in doubt, or noise: if it comes back, nothing has changed.
	Settled uint64 `cbor:"43,keyasint,omitempty"`

	// Steadiness says what is known of how steady Text and Declared are.
	Steadiness Steadiness `cbor:"40,keyasint,omitempty"`

	// Description is what the page declares as its own, and Markdown its version in Markdown: a path on the site, or
	// else an absolute URL. Like Title, they are kept only if a document shows them. The select stage drops
	// the Descriptions of large sites.
	Description string `cbor:"46,keyasint,omitempty"`
	Markdown    string `cbor:"47,keyasint,omitempty"`

	// Article is what the page declares as an article that was published, which is never changed; of the front page, at
	// least its language. It is kept only if there is a news sitemap; nil: the page is none.
	Article *Article `cbor:"48,keyasint,omitempty"`

	// Listed are the alternates, images and videos that lists give the page, until it was fetched without being named; nil: none.
	Listed *page.Extensions `cbor:"52,keyasint,omitempty"`
}

// Steadiness says how far Text and Declared are believed: what differs each time that a page is fetched is noise.
type Steadiness uint8

// Steadiness of a page. What is in doubt is to be confirmed by another fetch, a minute later.
const (
	Steady       Steadiness = iota // as far as is known
	TextInDoubt                    // the text has changed, and perhaps the declared date
	DateInDoubt                    // the declared date has
	Noisy                          // three fetches, each a minute apart, had different texts
	StillInDoubt                   // the text has changed, and once more when that was to be confirmed
)

// IsInDoubt reports whether another fetch is to confirm what has changed.
func (s Steadiness) IsInDoubt() bool {
	return s == TextInDoubt || s == StillInDoubt || s == DateInDoubt
}

// Cause is by what a page is due. They are kept on disk: only ever add to them.
type Cause uint8

// The causes.
const (
	ByInterval       Cause = iota // its own, which adapts to how often it changes
	ByHub                         // its links have led to new pages
	ByConfirmation                // what the last fetch found is to be confirmed
	ByFailure                     // the last fetch failed
	ByList                        // a list, or the application's sitemap, has another date for it, or no entry any more
	ByFile                        // its file has changed
	ByVisitor                     // a visitor got a redirect or an error
	ByLostLink                    // the front page or a hub does not link to it any more
	ByOperator                    // an operator asked for it
	ByConfiguration               // the configuration has changed
	ByLinks                       // its links count now, or lead less deep than before, or it is linked to anew
	ByOperatorForAll              // an operator asked for all pages
	ByWrite                       // somebody who is signed in may have saved something
)

// IsChosen reports whether a page was fetched because it may have changed: such pages are no sample of the others.
func (c Cause) IsChosen() bool {
	switch c {
	case ByHub, ByVisitor, ByLostLink, ByOperator:
		return true
	}
	return false
}

var causes = [...]string{
	ByInterval:      "interval",
	ByHub:           "links to new pages",
	ByConfirmation:  "confirmation",
	ByFailure:       "failure",
	ByList:          "list or sitemap",
	ByFile:          "file",
	ByVisitor:       "visitor",
	ByLostLink:      "lost link",
	ByOperator:      "operator",
	ByConfiguration: "configuration",
	ByLinks:         "links",

	ByOperatorForAll: "operator, for all pages",
	ByWrite:          "write",
}

// String names the cause for operators.
func (c Cause) String() string {
	if int(c) >= len(causes) {
		return "unknown"
	}
	return causes[c]
}

// LinkedEvery is by how many seconds Linked may be too early, where links count for expire seconds.
func LinkedEvery(expire int64) int64 { return min(7*daySeconds, expire/4) }

// IsLinked reports whether links to the page count still at a time, in Unix seconds: one was seen in the last expire
// seconds, or not every page that may have one was looked at since. See [Load] for followed.
func (r *Record) IsLinked(now, expire, followed int64) bool {
	if now-r.Linked <= expire {
		return true
	}
	// A crawl of a large site by a slow rate may not have come to all pages in that time.
	isUnseen := followed != 0 && r.Linked+LinkedEvery(expire) >= followed
	return isUnseen
}

// FollowedAt is when all links of the page were last followed, in Unix seconds; 0: never.
func (r *Record) FollowedAt() int64 { return cmp.Or(r.Followed, r.Fetched) }

// IsFile reports whether the page is a file, served as it is.
func (r *Record) IsFile() bool { return r.Version != 0 && r.Flags&Made == 0 }

// Batch is the batch in which the page's present text was found; 0: it has none.
func (r *Record) Batch() int64 { return cmp.Or(r.Changed, r.First) }

// Extensions are the alternates, images and videos of the page: its own first.
func (r *Record) Extensions() page.Extensions {
	e := page.Extensions{Alternates: r.Alternates, Images: r.Images}
	e.Add(r.Listed)
	return e
}

// AwaitsDate reports whether the date of the present text is still to be decided.
func (r *Record) AwaitsDate() bool { return r.Batch() != r.Selected.Dated }

// Article is what a news sitemap says of a page: see [html.Meta]. Few pages are articles, and all records in memory
// have room for what is in a [Record] itself.
type Article struct {
	Published    int64  `cbor:"1,keyasint,omitempty"`
	PublishedDay bool   `cbor:"2,keyasint,omitempty"` // only the day of Published is known
	Headline     string `cbor:"3,keyasint,omitempty"`
	Lang         string `cbor:"4,keyasint,omitempty"`
}

// Selected is a page's part of a selection.
type Selected struct {
	_ struct{} `cbor:",toarray"`
	// Listed says that the page was listed, with LastMod as its date; 0: without one. Day says that only the day
	// of it is known.
	Listed  bool
	LastMod int64
	Day     bool

	// Text is the date of the page's text, and Dated the batch, First or Changed, from which it was decided.
	// LastMod differs from it by what the operator wants listed, and where the text is another one at each fetch.
	Text    int64
	TextDay bool
	Dated   int64
}

// Flags of a [Record]. They are kept on disk: never change what a bit means.
type Flags uint32

// The flags.
const (
	Named         Flags = 1 << iota // a source names the page: not a link, not a visitor
	Visited                         // visitors have requested it
	Target                          // another page names it as its canonical
	Seed                            // the front page, or where its redirects lead
	ModDay                          // only the day of the date of a list is known
	HTML                            // the response was HTML
	Document                        // and a document: it has a doctype, html, head, body or title
	NoIndex                         // the page, or its header, asks not to be indexed
	Image                           // another page shows it as an image, or names it as its version in Markdown
	Unreadable                      // the body has an encoding that was not requested
	SoftNotFound                    // a page that cannot exist has the same text
	Made                            // no file explains the response: an upstream or another handler made it
	DeclaredDay                     // only the day of Declared is known
	DeclaredMoves                   // Declared moved while the text stayed
	Disallowed                      // never fetched, because of `crawl disallow` or because it is out of scope
	Blocked                         // never fetched, because of robots.txt; the last of 16: what comes next is a field of its own

	Sources Flags = 0xffff << 16 // [page.Page.Sources]
)

// Bounds of a chunk. The record that reaches maxChunkBytes may exceed it by some MiB: the crawl bounds its strings.
const (
	maxChunkRecords = 1 << 14
	maxChunkBytes   = 3 << 20
	maxDecoded      = 8 << 20
)

// Their options are constant: there are no errors.
var (
	encoding, _ = cbor.EncOptions{}.UserBufferEncMode()
	decoding, _ = cbor.DecOptions{
		MaxArrayElements: maxChunkRecords,
		MaxNestedLevels:  5,
		UTF8:             cbor.UTF8DecodeInvalid, // an ETag may be anything
	}.DecMode()

	compressor, _ = zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(2),
		zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1<<20),
		zstd.WithEncoderCRC(false), // objects are named by their hash
	)
	decompressor, _ = zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(2),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxDecoded),
	)
)

// hashesSize is how many bytes a record has behind the records of its chunk: Version, Text and Blocks, which have
// nothing in common with those of the record before. Amid the other fields, which mostly repeat, they would leave only short
// runs to compress: behind all records, they save 10 of 49 bytes a page of a million small files.
const (
	hashesSize       = 4 + 8 + 8
	formerHashesSize = hashesSize + 8 // with what is not kept any more
)

// blocksVersion is behind the hashes of a chunk, and says by which rules blocks of text count: see [html.Meta]. Whoever
// changes these takes the next number: a record of other rules takes its Blocks at its next fetch, without a change.
const blocksVersion = 4

// appendHashes appends the hashes of a record.
func appendHashes(data []byte, r *Record) []byte {
	data = binary.BigEndian.AppendUint32(data, r.Version)
	data = binary.BigEndian.AppendUint64(data, r.Text)
	return binary.BigEndian.AppendUint64(data, r.Blocks)
}

// setHashes undoes appendHashes.
func (r *Record) setHashes(data []byte) {
	r.Version = binary.BigEndian.Uint32(data)
	r.Text = binary.BigEndian.Uint64(data[4:])
	r.Blocks = binary.BigEndian.Uint64(data[12:])
}

// forgetBlocks forgets what blocks of other rules have counted for. The date that is listed stays.
func (r *Record) forgetBlocks() {
	r.Blocks = 0
	r.Settled = 0
	if r.Steadiness != DateInDoubt {
		r.Steadiness = Steady
	}
	if r.IsFile() {
		r.Flags &^= DeclaredMoves // which said no more than that the page declares its date anew
	}
	if r.Selected.LastMod != 0 {
		r.Selected.Text = r.Selected.LastMod
		r.Selected.TextDay = r.Selected.Day
	}
}

// encodeChunk returns a chunk: zstd-compressed CBOR, an array of n records, which are encoded already, and a string of bytes
// with their hashes (a sequence of two items: RFC 8742).
func encodeChunk(n int, records, hashes []byte) []byte {
	// The heads of an array with a length of 16 bits, and of a string with one of 32 (RFC 8949, section 3.1): so no other copy
	// of the records is needed.
	raw := append([]byte{0x99, byte(n >> 8), byte(n)}, records...)
	raw = binary.BigEndian.AppendUint32(append(raw, 0x5a), uint32(len(hashes)+1))
	raw = append(append(raw, hashes...), blocksVersion)
	return bytes.Clone(compressor.EncodeAll(raw, nil)) // which is of the size that is needed
}

// decodeChunk undoes encodeChunk. What commit 109c614 has written has more hashes of each record, and no version.
func decodeChunk(data []byte) (records []Record, err error) {
	raw, err := decompressor.DecodeAll(data, nil)
	if err != nil {
		return nil, err
	}
	rest, err := decoding.UnmarshalFirst(raw, &records)
	if err != nil {
		return nil, err
	}
	var hashes []byte
	err = decoding.Unmarshal(rest, &hashes)
	if err != nil {
		return nil, fmt.Errorf("hashes: %w", err)
	}
	size := hashesSize
	isOld := len(hashes) == len(records)*formerHashesSize
	switch {
	case isOld:
		size = formerHashesSize
	case len(hashes) == len(records)*hashesSize+1:
		isOld = hashes[len(hashes)-1] != blocksVersion
	default:
		return nil, fmt.Errorf("%d bytes of hashes of %d records", len(hashes), len(records))
	}
	for i := range records {
		records[i].setHashes(hashes[i*size:])
		if isOld {
			records[i].forgetBlocks()
		}
		records[i].clampTimes()
	}
	return records, nil
}

// latest is the latest time that is read from a storage, the year 9000. What lies beyond was written by a clock that was wrong.
// JSON has no time after the year 9999, which what is counted from this one does not reach.
const latest = 221_845_392_000

// Unix32 is a time in Unix seconds in the room that some fields have: up to the year 2106.
func Unix32(at int64) uint32 { return uint32(min(max(at, 0), math.MaxUint32)) }

// ClampTime returns a time that was stored, or the latest one that is believed.
func ClampTime(t time.Time) time.Time {
	if t.Unix() > latest {
		return time.Unix(latest, 0).UTC()
	}
	return t
}

// clampTimes is [ClampTime] for the times of a record that operators see.
func (r *Record) clampTimes() {
	for _, at := range []*int64{&r.Linked, &r.Fetched, &r.Due, &r.Failing} {
		*at = min(*at, latest)
	}
}
