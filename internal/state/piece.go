package state

import (
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const pieceMagic = "smrecord"

// The columns of a piece. A record has an entry in a column where its traits say
// so; those up to colTraits are of every record.
const (
	colPrefix    = iota // bytes that a path shares with the one before it
	colSuffix           // the same, at the end
	colMiddle           // bytes between
	colPathBytes        // that are not shared
	colTrait            // number of the record's traits; one more than any before: the next of colTraits
	colTraits
	colPageTime // less that of the record before
	colDeclared // less the page's time
	colLastMod  // less the page's time
	colFingerprint
	colVersion
	colAsked // in minutes, less that of the record before
	colWait
	colCanonical // bytes shared with the path, bytes besides
	colCanonicalBytes
	colETag
	colETagBytes
	colModified // seconds, less the page's time
	colModifiedText
	colModifiedBytes
	pieceColumns
)

// traits are what few kinds of records have in common.
type traits struct {
	has                                                         uint32
	flags                                                       uint16
	freq, priority, seen, content, answer, suspect, streak, day uint8
}

const traitsSize = 14

// What a record has.
const (
	hasPageTime = 1 << iota
	hasDeclared
	declaredIsPage // the same as the page's time
	hasLastMod
	lastModIsPage
	lastModIsDeclared
	hasFingerprint
	hasVersion
	hasAsked
	hasWait
	hasCanonical
	hasETag
	hasModified // as seconds
	modifiedIsPage
	hasModifiedText
)

const (
	pageDay = 1 << iota
	declaredDay
	lastModDay
)

// maxPieceRaw bounds the columns of a piece, and its strings.
const (
	maxPieceStrings = maxBytes + 2*MaxPath + 2*MaxHeader + 64
	maxPieceRaw     = maxPieceStrings + maxRecords*96
)

// encodePiece writes records, which are in order.
func encodePiece(records []Record) []byte {
	c := make(columns, pieceColumns)
	known := make(map[traits]uint64)
	var (
		strings  int
		previous string
		pageTime int64
		asked    int64
		last     traits
		lastNo   uint64
	)
	c[colFingerprint] = make([]byte, 0, fingerprintBytes*len(records))
	c[colVersion] = make([]byte, 0, 4*len(records))
	for i := range records {
		r := &records[i]
		path := r.Page.Path
		pre, suf := shared(previous, path)
		c[colPrefix] = binary.AppendUvarint(c[colPrefix], uint64(pre))
		c[colSuffix] = binary.AppendUvarint(c[colSuffix], uint64(suf))
		c[colMiddle] = binary.AppendUvarint(c[colMiddle], uint64(len(path)-pre-suf))
		c[colPathBytes] = append(c[colPathBytes], path[pre:len(path)-suf]...)
		previous = path
		strings += len(path)

		t := traitsOf(r)
		modified, dated := parseHTTPDate(r.Modified)
		switch {
		case dated && modified == r.Page.LastMod:
			t.has |= hasModified | modifiedIsPage
		case dated:
			t.has |= hasModified
		case r.Modified != "":
			t.has |= hasModifiedText
		}
		strings += len(r.Modified)
		if t != last || i == 0 {
			no, ok := known[t]
			if !ok {
				no = uint64(len(known))
				known[t] = no
				c[colTraits] = t.append(c[colTraits])
			}
			last, lastNo = t, no
		}
		c[colTrait] = binary.AppendUvarint(c[colTrait], lastNo)

		has := t.has
		if has&hasPageTime != 0 {
			c[colPageTime] = appendVarint(c[colPageTime], r.Page.LastMod-pageTime)
			pageTime = r.Page.LastMod
		}
		if has&hasDeclared != 0 {
			c[colDeclared] = appendVarint(c[colDeclared], r.Declared-r.Page.LastMod)
		}
		if has&hasLastMod != 0 {
			c[colLastMod] = appendVarint(c[colLastMod], r.LastMod-r.Page.LastMod)
		}
		if has&hasFingerprint != 0 {
			b := binary.LittleEndian.AppendUint64(c[colFingerprint], r.Fingerprint)
			c[colFingerprint] = b[:len(b)-8+fingerprintBytes]
		}
		if has&hasVersion != 0 {
			c[colVersion] = binary.LittleEndian.AppendUint32(c[colVersion], r.Page.Version)
		}
		if has&hasAsked != 0 {
			minute := r.Asked / 60
			c[colAsked] = appendVarint(c[colAsked], minute-asked)
			asked = minute
		}
		if has&hasWait != 0 {
			c[colWait] = append(c[colWait], r.Wait)
		}
		if has&hasCanonical != 0 {
			pre := sharedPrefix(path, r.Canonical)
			c[colCanonical] = binary.AppendUvarint(c[colCanonical], uint64(pre))
			c[colCanonical] = binary.AppendUvarint(c[colCanonical], uint64(len(r.Canonical)-pre))
			c[colCanonicalBytes] = append(c[colCanonicalBytes], r.Canonical[pre:]...)
			strings += len(r.Canonical)
		}
		if has&hasETag != 0 {
			c[colETag] = binary.AppendUvarint(c[colETag], uint64(len(r.ETag)))
			c[colETagBytes] = append(c[colETagBytes], r.ETag...)
			strings += len(r.ETag)
		}
		if has&(hasModified|modifiedIsPage) == hasModified {
			c[colModified] = appendVarint(c[colModified], modified-r.Page.LastMod)
		}
		if has&hasModifiedText != 0 {
			c[colModifiedText] = binary.AppendUvarint(c[colModifiedText], uint64(len(r.Modified)))
			c[colModifiedBytes] = append(c[colModifiedBytes], r.Modified...)
		}
	}
	b := appendMagic(make([]byte, 0, 16*len(records)+64), pieceMagic)
	b = binary.AppendUvarint(b, uint64(len(records)))
	b = binary.AppendUvarint(b, uint64(strings))
	return c.append(b)
}

func traitsOf(r *Record) traits {
	t := traits{
		flags: r.Flags, freq: uint8(r.Page.ChangeFreq), priority: uint8(r.Page.Priority), seen: r.Seen,
		content: r.Content, answer: r.Answer, suspect: r.Suspect, streak: r.Streak,
	}
	set := func(on bool, bit uint32) {
		if on {
			t.has |= bit
		}
	}
	set(r.Page.LastMod != 0, hasPageTime)
	switch r.Declared {
	case 0:
	case r.Page.LastMod:
		t.has |= declaredIsPage
	default:
		t.has |= hasDeclared
	}
	switch r.LastMod {
	case 0:
	case r.Page.LastMod:
		t.has |= lastModIsPage
	case r.Declared:
		t.has |= lastModIsDeclared
	default:
		t.has |= hasLastMod
	}
	set(r.Fingerprint&FingerprintMask != 0, hasFingerprint)
	set(r.Page.Version != 0, hasVersion)
	set(r.Asked/60 != 0, hasAsked)
	set(r.Wait != 0, hasWait)
	set(r.Canonical != "", hasCanonical)
	set(r.ETag != "", hasETag)
	if r.Page.LastModDay {
		t.day |= pageDay
	}
	if r.DeclaredDay {
		t.day |= declaredDay
	}
	if r.LastModDay {
		t.day |= lastModDay
	}
	return t
}

func (t *traits) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, t.has)
	b = binary.LittleEndian.AppendUint16(b, t.flags)
	return append(b, t.freq, t.priority, t.seen, t.content, t.answer, t.suspect, t.streak, t.day)
}

func readTraits(b []byte) []traits {
	all := make([]traits, len(b)/traitsSize)
	for i := range all {
		e := b[i*traitsSize:][:traitsSize]
		all[i] = traits{
			has: binary.LittleEndian.Uint32(e), flags: binary.LittleEndian.Uint16(e[4:]),
			freq: e[6], priority: e[7], seen: e[8], content: e[9], answer: e[10], suspect: e[11], streak: e[12], day: e[13],
		}
	}
	return all
}

// shared is how many bytes two strings have in common at the beginning and, of the
// rest, at the end.
func shared(a, b string) (prefix, suffix int) {
	prefix = sharedPrefix(a, b)
	a, b = a[prefix:], b[prefix:]
	n := min(len(a), len(b))
	for suffix < n && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	return prefix, suffix
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// scratch is what decoding needs for a while.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// decodePiece reads what encodePiece wrote. The records share one string.
func decodePiece(b []byte) ([]Record, error) {
	b, err := cutMagic(b, pieceMagic)
	if err != nil {
		return nil, err
	}
	head := reader{b: b}
	n, size := head.uvarint(), head.uvarint()
	switch {
	case head.bad:
		return nil, errTruncated
	case n == 0:
		return nil, errFormat
	case n > maxRecords || size > maxPieceStrings:
		return nil, errTooLarge
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	var c [pieceColumns][]byte
	if *buf, err = columns(c[:]).read(b[head.i:], *buf, maxPieceRaw); err != nil {
		return nil, err
	}
	// Each record has a byte in this column: so a few bytes cannot ask for many.
	if uint64(len(c[colPrefix])) < n {
		return nil, errTruncated
	}
	if uint64(len(c[colTraits])) > n*traitsSize {
		return nil, errFormat
	}
	d := pieceDecoder{room: int(size)}
	for i := range c {
		d.c[i].b = c[i]
	}
	d.text.Grow(int(size))
	records := make([]Record, n)
	if err := d.decode(records, readTraits(c[colTraits])); err != nil {
		return nil, err
	}
	return records, nil
}

type pieceDecoder struct {
	c    [pieceColumns]reader
	text strings.Builder // of all strings; never grows
	room int             // of it
	date string          // the last that was written
	at   int64
}

func (d *pieceDecoder) decode(records []Record, all []traits) error {
	var (
		path     string
		pageTime int64
		asked    int64
		known    uint64
	)
	c := &d.c
	c[colTraits].i = len(all) * traitsSize
	for i := range records {
		r := &records[i]
		pre, suf, mid := c[colPrefix].uvarint(), c[colSuffix].uvarint(), c[colMiddle].uvarint()
		middle := c[colPathBytes].bytes(mid)
		if pre > uint64(len(path)) || suf > uint64(len(path))-pre || uint64(len(middle)) != mid ||
			int(pre)+int(suf)+len(middle) > min(d.room, MaxPath) {
			return errFormat
		}
		from := d.text.Len()
		d.text.WriteString(path[:pre])
		d.text.Write(middle)
		d.text.WriteString(path[len(path)-int(suf):])
		next := d.text.String()[from:]
		d.room -= len(next)
		if i > 0 && next[pre:] <= path[pre:] {
			return errFormat
		}
		path = next
		r.Page.Path = path
		r.at = uint32(i)

		no := c[colTrait].uvarint()
		if no >= known {
			if no != known || no >= uint64(len(all)) {
				return errFormat
			}
			known++
		}
		t := &all[no]
		r.Page.ChangeFreq, r.Page.Priority = page.ChangeFreq(t.freq), page.Priority(t.priority)
		r.Flags, r.Seen, r.Content, r.Answer, r.Suspect, r.Streak = t.flags, t.seen, t.content, t.answer, t.suspect, t.streak
		r.Page.LastModDay, r.DeclaredDay, r.LastModDay = t.day&pageDay != 0, t.day&declaredDay != 0, t.day&lastModDay != 0

		has := t.has
		if has&hasPageTime != 0 {
			pageTime += c[colPageTime].varint()
			r.Page.LastMod = pageTime
		}
		switch {
		case has&hasDeclared != 0:
			r.Declared = r.Page.LastMod + c[colDeclared].varint()
		case has&declaredIsPage != 0:
			r.Declared = r.Page.LastMod
		}
		switch {
		case has&lastModIsPage != 0:
			r.LastMod = r.Page.LastMod
		case has&lastModIsDeclared != 0:
			r.LastMod = r.Declared
		case has&hasLastMod != 0:
			r.LastMod = r.Page.LastMod + c[colLastMod].varint()
		}
		if has&hasFingerprint != 0 {
			r.Fingerprint = c[colFingerprint].uint48()
		}
		if has&hasVersion != 0 {
			r.Page.Version = c[colVersion].uint32()
		}
		if has&hasAsked != 0 {
			asked += c[colAsked].varint()
			r.Asked = asked * 60
		}
		if has&hasWait != 0 {
			r.Wait = c[colWait].byte()
		}
		if has&(hasCanonical|hasETag|hasModified|hasModifiedText) != 0 {
			if err := d.strings(r, has); err != nil {
				return err
			}
		}
	}
	if d.room != 0 || known != uint64(len(all)) {
		return errFormat
	}
	for i := range c {
		if err := c[i].end(); err != nil {
			return err
		}
	}
	return nil
}

// strings reads a record's strings besides its path.
func (d *pieceDecoder) strings(r *Record, has uint32) error {
	c := &d.c
	if has&hasCanonical != 0 {
		pre := c[colCanonical].uvarint()
		rest := c[colCanonicalBytes].bytes(c[colCanonical].uvarint())
		if pre > uint64(len(r.Page.Path)) {
			return errFormat
		}
		from := d.text.Len()
		if !d.write(r.Page.Path[:pre], rest, MaxPath) {
			return errFormat
		}
		r.Canonical = d.text.String()[from:]
	}
	if has&hasETag != 0 {
		from := d.text.Len()
		if !d.write("", c[colETagBytes].bytes(c[colETag].uvarint()), MaxHeader) {
			return errFormat
		}
		r.ETag = d.text.String()[from:]
	}
	switch {
	case has&hasModified != 0:
		at := r.Page.LastMod
		if has&modifiedIsPage == 0 {
			at += c[colModified].varint()
		}
		if d.room < httpDateSize || !isHTTPDate(at) {
			return errFormat
		}
		d.room -= httpDateSize
		if d.date == "" || d.at != at {
			d.date, d.at = time.Unix(at, 0).UTC().Format(httpDate), at
		}
		from := d.text.Len()
		d.text.WriteString(d.date)
		r.Modified = d.text.String()[from:]
	case has&hasModifiedText != 0:
		from := d.text.Len()
		if !d.write("", c[colModifiedBytes].bytes(c[colModifiedText].uvarint()), MaxHeader) {
			return errFormat
		}
		r.Modified = d.text.String()[from:]
	}
	return nil
}

// write appends a string of limit bytes at most; a false means that it does not fit.
func (d *pieceDecoder) write(prefix string, rest []byte, limit int) bool {
	n := len(prefix) + len(rest)
	if n > min(d.room, limit) {
		return false
	}
	d.room -= n
	d.text.WriteString(prefix)
	d.text.Write(rest)
	return true
}

// httpDate is how Last-Modified is written
// (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7).
const (
	httpDate     = "Mon, 02 Jan 2006 15:04:05 GMT"
	httpDateSize = len(httpDate)
)

// isHTTPDate reports whether a time has a year of four digits.
func isHTTPDate(at int64) bool { return at >= -62135596800 && at < 253402300800 }

// parseHTTPDate reads a date that is written just as httpDate.
func parseHTTPDate(s string) (int64, bool) {
	if len(s) != httpDateSize {
		return 0, false
	}
	t, err := time.Parse(httpDate, s)
	if err != nil || !isHTTPDate(t.Unix()) || t.UTC().Format(httpDate) != s {
		return 0, false
	}
	return t.Unix(), true
}
