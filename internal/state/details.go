package state

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// The details of a piece's records lie in groups, each with a dictionary of its
// strings: the pages of a site share their menus.
const (
	detailsMagic = "smdetail"

	maxPageStrings = 1 << 16 // links, images, alternates of a page
	maxPageBytes   = 4 << 20
	groupStrings   = 1 << 16 // a group ends with the page that reaches one of these
	groupBytes     = 1 << 20

	maxGroupStrings = groupStrings + 2*maxPageStrings
	maxGroupBytes   = groupBytes + maxPageBytes
	maxGroupRaw     = maxGroupBytes + 8*maxGroupStrings + 32*maxRecords
)

const (
	colRecord = iota // number of the record in its piece, less the one before
	colCounts        // links, alternates, images
	colString        // number of each string; one more than any before: the next of colText
	colLength        // of each string
	colText
	detailsColumns
)

// detailsWriter writes the details of a piece's records.
type detailsWriter struct {
	c     columns
	known map[string]uint64
	paths *xxhash.Digest // of the records in the group
	next  int            // record
	n     int            // strings in the group
	store func([]byte) error
}

func newDetailsWriter(store func([]byte) error) *detailsWriter {
	w := &detailsWriter{store: store, paths: xxhash.New()}
	w.reset()
	return w
}

func (w *detailsWriter) reset() {
	w.c = make(columns, detailsColumns)
	w.known = make(map[string]uint64)
	w.paths.Reset()
	w.next, w.n = 0, 0
}

// add takes the details of record i of the piece.
func (w *detailsWriter) add(i int, path string, d *Details) error {
	d = within(d)
	if d.empty() {
		return nil
	}
	hashPath(w.paths, path)
	w.c[colRecord] = binary.AppendUvarint(w.c[colRecord], uint64(i-w.next))
	w.next = i + 1
	for _, n := range [...]int{len(d.Links), len(d.Alternates), len(d.Images)} {
		w.c[colCounts] = binary.AppendUvarint(w.c[colCounts], uint64(n))
	}
	w.strings(d.Links)
	for _, a := range d.Alternates {
		w.string(a.Lang)
		w.string(a.URL)
	}
	w.strings(d.Images)
	if w.n >= groupStrings || len(w.c[colText]) >= groupBytes {
		return w.flush()
	}
	return nil
}

func (w *detailsWriter) strings(all []string) {
	for _, s := range all {
		w.string(s)
	}
}

func (w *detailsWriter) string(s string) {
	w.n++
	no, ok := w.known[s]
	if !ok {
		no = uint64(len(w.known))
		w.known[s] = no
		w.c[colLength] = binary.AppendUvarint(w.c[colLength], uint64(len(s)))
		w.c[colText] = append(w.c[colText], s...)
	}
	w.c[colString] = binary.AppendUvarint(w.c[colString], no)
}

// flush stores the group, if there is anything in it.
func (w *detailsWriter) flush() error {
	if len(w.c[colRecord]) == 0 {
		return nil
	}
	b := appendMagic(nil, detailsMagic)
	b = binary.LittleEndian.AppendUint64(b, w.paths.Sum64())
	err := w.store(w.c.append(b))
	w.reset()
	return err
}

func hashPath(h *xxhash.Digest, path string) {
	_, _ = h.WriteString(path)
	_, _ = h.Write([]byte{0})
}

// within is as much of d as is kept.
func within(d *Details) *Details {
	n, bytes := len(d.Links)+2*len(d.Alternates)+len(d.Images), 0
	for _, s := range d.Links {
		bytes += len(s)
	}
	for _, a := range d.Alternates {
		bytes += len(a.Lang) + len(a.URL)
	}
	for _, s := range d.Images {
		bytes += len(s)
	}
	if n <= maxPageStrings && bytes <= maxPageBytes {
		return d
	}
	n, bytes = maxPageStrings, maxPageBytes
	fits := func(strings, size int) bool {
		n -= strings
		bytes -= size
		return n >= 0 && bytes >= 0
	}
	kept := &Details{}
	for _, a := range d.Alternates {
		if !fits(2, len(a.Lang)+len(a.URL)) {
			return kept
		}
		kept.Alternates = append(kept.Alternates, a)
	}
	for _, s := range d.Links {
		if !fits(1, len(s)) {
			return kept
		}
		kept.Links = append(kept.Links, s)
	}
	for _, s := range d.Images {
		if !fits(1, len(s)) {
			return kept
		}
		kept.Images = append(kept.Images, s)
	}
	return kept
}

// entry is the details of one record.
type entry struct {
	record  int // in its piece
	details Details
}

// decodeDetails reads a group of details and the hash of its records' paths.
func decodeDetails(b []byte) ([]entry, uint64, error) {
	b, err := cutMagic(b, detailsMagic)
	if err != nil {
		return nil, 0, err
	}
	if len(b) < 8 {
		return nil, 0, errTruncated
	}
	sum := binary.LittleEndian.Uint64(b)
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	c := make(columns, detailsColumns)
	if *buf, err = c.read(b[8:], *buf, maxGroupRaw); err != nil {
		return nil, 0, err
	}
	words, err := decodeStrings(c)
	if err != nil {
		return nil, 0, err
	}
	entries, err := decodeEntries(c, words)
	return entries, sum, err
}

// decodeStrings reads the strings of a group, in order.
func decodeStrings(c columns) ([]string, error) {
	if len(c[colText]) > maxGroupBytes || len(c[colLength]) > 5*maxGroupStrings {
		return nil, errTooLarge
	}
	text := string(c[colText])
	lengths := reader{b: c[colLength]}
	var known []string
	for lengths.i < len(lengths.b) {
		n := lengths.uvarint()
		if lengths.bad || n > uint64(len(text)) {
			return nil, errFormat
		}
		if len(known) == maxGroupStrings {
			return nil, errTooLarge
		}
		known = append(known, text[:n])
		text = text[n:]
	}
	if text != "" {
		return nil, errFormat
	}
	numbers := reader{b: c[colString]}
	if len(numbers.b) > 3*maxGroupStrings {
		return nil, errTooLarge
	}
	words := make([]string, 0, len(numbers.b))
	next := 0
	for numbers.i < len(numbers.b) {
		no := numbers.uvarint()
		if numbers.bad || no >= uint64(len(known)) || no > uint64(next) {
			return nil, errFormat
		}
		if no == uint64(next) {
			next++
		}
		words = append(words, known[no])
	}
	if next != len(known) {
		return nil, errFormat
	}
	return words, nil
}

func decodeEntries(c columns, words []string) ([]entry, error) {
	records, counts := reader{b: c[colRecord]}, reader{b: c[colCounts]}
	if len(records.b) == 0 || len(records.b) > 3*maxRecords {
		return nil, errFormat
	}
	take := func(n uint64) ([]string, bool) {
		if n > uint64(len(words)) {
			return nil, false
		}
		if n == 0 {
			return nil, true
		}
		taken := words[:n:n]
		words = words[n:]
		return taken, true
	}
	var entries []entry
	next := uint64(0)
	for records.i < len(records.b) {
		step := records.uvarint()
		if step > maxRecords || next+step >= maxRecords {
			return nil, errFormat
		}
		next += step
		e := entry{record: int(next)}
		next++
		links, alternates, images := counts.uvarint(), counts.uvarint(), counts.uvarint()
		var pairs []string
		var ok [3]bool
		e.details.Links, ok[0] = take(links)
		if alternates <= maxPageStrings {
			pairs, ok[1] = take(2 * alternates)
		}
		e.details.Images, ok[2] = take(images)
		if ok != [3]bool{true, true, true} || e.details.empty() && alternates == 0 {
			return nil, errFormat
		}
		for ; len(pairs) > 0; pairs = pairs[2:] {
			e.details.Alternates = append(e.details.Alternates, page.Alternate{Lang: pairs[0], URL: pairs[1]})
		}
		entries = append(entries, e)
	}
	if records.bad || len(words) > 0 {
		return nil, errFormat
	}
	return entries, counts.end()
}

// clone copies d, so that it holds no more memory than its own.
func (d *Details) clone() *Details {
	c := &Details{}
	for _, s := range d.Links {
		c.Links = append(c.Links, strings.Clone(s))
	}
	for _, a := range d.Alternates {
		c.Alternates = append(c.Alternates, page.Alternate{Lang: strings.Clone(a.Lang), URL: strings.Clone(a.URL)})
	}
	for _, s := range d.Images {
		c.Images = append(c.Images, strings.Clone(s))
	}
	return c
}
