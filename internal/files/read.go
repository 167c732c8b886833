package files

import (
	"errors"
	"slices"
	"strings"
	"unsafe"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// reader reads folders, one at a time, for one goroutine. What it holds is used
// again for the next.
type reader struct {
	s *scan
	h handle

	f     *folder
	l     *listing
	path  []byte // of the folder
	esc   []byte
	url   []byte
	in    info
	add   func(name string, k kind) bool
	ord   uint32
	limit int // entries that may still be read; below 0: all

	sorter sorter
	links  []entry
	others []other // names that are no ".html", of files; of folders if they count
	index  []indexFile
}

// other may bear the name which a page would be listed by.
type other struct {
	name uint32
	size uint16
}

// indexFile is what has one of the index names.
type indexFile struct {
	found bool
	kind  kind
	entry entry
}

func newReader(s *scan, h handle) *reader {
	r := &reader{s: s, h: h, limit: -1, index: make([]indexFile, len(s.rules.index))}
	r.add = r.addEntry
	return r
}

var errTooLarge = errors.New("folder too large")

// read fills in f.l, and f.err or f.why where the folder cannot be read.
func (r *reader) read(f *folder) {
	if err := caught(func() {
		if r.collect(f) {
			r.examine()
			r.sorter.sort(r.l)
		}
	}); err != nil {
		f.err = err
	}
	r.h.close()
	r.f, r.l = nil, nil
}

// collect lists a folder and applies all rules of names. Where it succeeds, the
// folder stays open.
func (r *reader) collect(f *folder) bool {
	r.f, r.l = f, r.s.newListing()
	f.l = r.l
	r.ord = 0
	r.links, r.others = r.links[:0], r.others[:0]
	clear(r.index)

	if f.parent != nil {
		f.locate(r.s.rules)
	}
	r.path = appendJoin(r.path[:0], r.s.rootPath, f.place.rel)
	if f.err = r.enter(); f.err != nil || f.why != listed {
		return false
	}
	r.l.tally.folders++
	f.err = r.h.list(r.add)
	if r.s.ended() {
		f.err = r.s.ctx.Err()
		return false
	}
	if len(r.l.names) > maxNames {
		f.err = errTooLarge
	}
	if f.err != nil && (starved(f.err) || f.parent == nil) {
		return false
	}
	if f.err != nil && reasonOf(f.err) != vanished {
		// What could be read of it is there.
		r.l.tally.leftOut[unreadable]++
		r.l.tally.keep(string(r.path))
	}
	f.err = nil
	r.followLinks()
	r.finishNames()
	return f.err == nil
}

// join is the path of what is at rel below root.
func join(root, rel string) string { return string(appendJoin(nil, root, rel)) }

// appendJoin appends what join returns.
func appendJoin(dst []byte, root, rel string) []byte {
	if root != "." || rel == "" {
		dst = append(dst, root...)
	}
	if rel != "" && len(dst) > 0 && dst[len(dst)-1] != '/' {
		dst = append(dst, '/')
	}
	return append(dst, rel...)
}

// enter opens the folder, finds out which it is where links led to it, and
// refuses one that it is in already.
func (r *reader) enter() error {
	f := r.f
	if len(r.path) >= maxPath {
		f.why = nameTooLong
		return nil
	}
	id, err := r.h.open(r.path, f.link || f.parent == nil)
	if err != nil {
		return err
	}
	f.id = id
	if !f.linked {
		return nil
	}
	if f.link {
		if f.real, err = r.h.where(); err != nil {
			f.real = ""
		}
		f.realPlace = r.s.placeOf(f.real)
	}
	if f.id == (fileID{}) {
		f.id.path = f.real
	}
	if f.id == (fileID{}) {
		if f.link && f.parent.linked {
			// It may lead anywhere, back to here too.
			f.why = linkLoop
		}
		return nil
	}
	for p := f.parent; p != nil; p = p.parent {
		if r.s.identity(p) == f.id {
			f.why = linkLoop
			return nil
		}
	}
	return nil
}

// maxNames bounds the names of one folder, in bytes: they are addressed by 32
// bits.
const maxNames = 1 << 30

// addEntry takes what the file system says of one entry.
func (r *reader) addEntry(name string, k kind) bool {
	if r.limit == 0 || len(r.l.names) > maxNames {
		return false
	}
	r.limit--
	if r.ord&4095 == 4095 && r.s.ended() {
		return false
	}
	ord := r.ord
	r.ord++
	if k == kindFolder {
		if i := r.s.rules.indexOf(name); i >= 0 {
			r.index[i] = indexFile{found: true, kind: k}
		}
		r.addFolder(name, 0)
		return true
	}
	r.l.tally.files++
	if name[0] == '.' {
		r.leaveOut(dotfile, name)
		return true
	}
	if k == kindLink {
		r.links = append(r.links, entry{name: r.keep(name), size: uint16(len(name)), ord: ord})
		return true
	}
	r.addFile(name, k, entry{ord: ord}, false)
	return true
}

// keep stores a name with the NUL that system calls want.
func (r *reader) keep(name string) uint32 {
	at := uint32(len(r.l.names))
	r.l.names = append(append(r.l.names, name...), 0)
	return at
}

// escape is the name percent-encoded, valid until the next call.
func (r *reader) escape(name string) string {
	for i := 0; i < len(name); i++ {
		if mustEscape[name[i]] {
			r.esc = page.AppendEscaped(r.esc[:0], name)
			return unsafe.String(&r.esc[0], len(r.esc))
		}
	}
	return name
}

var mustEscape = func() (must [256]bool) {
	for c := range must {
		s := string([]byte{byte(c)})
		must[c] = page.Escape(s) != s
	}
	return must
}()

// urlOf is the URL path of a file in p, valid until the next call.
func (r *reader) urlOf(p *place, escaped string) string {
	r.url = append(append(r.url[:0], p.url...), escaped...)
	return unsafe.String(&r.url[0], len(r.url))
}

// leaveOut counts a file or folder that is left out.
func (r *reader) leaveOut(why reason, name string) {
	r.l.tally.leftOut[why]++
	if why == unreadable {
		r.l.tally.keep(string(r.path) + "/" + name)
	}
}

func (r *reader) addFolder(name string, fl flags) {
	l := r.l
	if r.s.rules.keepBeside {
		r.others = append(r.others, other{r.keep(name), uint16(len(name))})
	}
	escaped := r.escape(name)
	why := r.s.rules.folder(&r.f.place, name, escaped)
	if why == listed && len(r.f.place.url)+len(escaped)+1 > maxURL {
		why = nameTooLong
	}
	if why != listed {
		r.leaveOut(why, name)
		return
	}
	e := entry{name: r.keep(name), size: uint16(len(name)), flags: isFolder | fl}
	e.key, e.keyLen = uint32(len(l.names)), uint16(len(escaped)+1)
	l.names = append(append(l.names, escaped...), '/')
	l.entries = append(l.entries, e)
}

// addFile takes a file or the target of a link. e has what is known of it
// already; kept says that its name is stored.
func (r *reader) addFile(name string, k kind, e entry, kept bool) {
	if r.s.rules.clean && !strings.HasSuffix(name, ".html") {
		if !kept {
			e.name, e.size, kept = r.keep(name), uint16(len(name)), true
		}
		r.others = append(r.others, other{e.name, e.size})
	}
	if i := r.s.rules.indexOf(name); i >= 0 {
		if !kept {
			e.name, e.size = r.keep(name), uint16(len(name))
		}
		r.index[i] = indexFile{found: true, kind: k, entry: e}
		return
	}
	r.addPage(name, k, e, kept)
}

func (r *reader) addPage(name string, k kind, e entry, kept bool) {
	l := r.l
	rules := r.s.rules
	var why reason
	var escaped string
	if rules.include == nil && !rules.includes(name, "") {
		why = notIncluded // most files of many sites: before all else
	} else {
		escaped = r.escape(name)
		url := ""
		if rules.needsURL() {
			url = r.urlOf(&r.f.place, escaped)
		}
		why = rules.file(&r.f.place, name, url)
	}
	switch {
	case why != listed:
	case k == kindOther:
		why = notRegular
	case len(r.f.place.url)+len(escaped) > maxURL, len(r.path)+1+len(name) >= maxPath:
		why = nameTooLong
	}
	if why == listed {
		why = e.why
	}
	if why != listed {
		r.leaveOut(why, name)
		return
	}
	if !kept {
		e.name, e.size = r.keep(name), uint16(len(name))
	}
	e.key, e.keyLen = e.name, e.size
	if len(escaped) != len(name) {
		e.key, e.keyLen = uint32(len(l.names)), uint16(len(escaped))
		l.names = append(l.names, escaped...)
	}
	if strings.HasSuffix(name, ".html") {
		e.flags |= isHTML
	}
	l.entries = append(l.entries, e)
}

// followLinks finds out what the folder's links lead to.
func (r *reader) followLinks() {
	for i, e := range r.links {
		if i&255 == 255 && r.s.ended() {
			r.f.err = r.s.ctx.Err()
			return
		}
		name := r.l.name(&e)
		err := r.h.stat(name, e.ord, true, &r.in)
		switch {
		case err == nil:
		case starved(err):
			r.f.err = err
			return
		default:
			why := reasonOf(err)
			if why == vanished {
				why = dangling
			}
			r.leaveOut(why, name)
			continue
		}
		if r.in.kind == kindFolder {
			if i := r.s.rules.indexOf(name); i >= 0 {
				r.index[i] = indexFile{found: true, kind: kindFolder}
			}
			r.l.tally.files--
			r.addFolder(name, isLink)
			continue
		}
		e.flags |= isLink
		if r.in.kind == kindFile {
			r.check(r.h, name, &e, &r.in)
			e.flags |= isKnown
		}
		r.addFile(name, r.in.kind, e, true)
	}
}

// chosenIndex is the place in rules.index of the folder's index file, as p
// hides what it hides; -1 for none.
func (r *reader) chosenIndex(p *place) int {
	for i := range r.index {
		if r.index[i].found && !r.s.rules.hidesFile(p, r.s.rules.index[i]) {
			return i
		}
	}
	return -1
}

// finishNames decides what needs all names of the folder: its index file, and
// which files are listed without ".html"; then what Exclude leaves out and what
// is listed by its real path.
func (r *reader) finishNames() {
	f, l, rules := r.f, r.l, r.s.rules
	index, realIndex := r.chosenIndex(&f.place), -1
	if f.realPlace != nil {
		realIndex = r.chosenIndex(f.realPlace)
	}
	for i := range r.index {
		x := r.index[i]
		if !x.found || x.kind == kindFolder {
			continue
		}
		if i == index {
			x.entry.flags |= isIndex
		}
		r.addPage(rules.index[i], x.kind, x.entry, true)
	}
	if rules.clean {
		r.sortOthers()
	}
	if !rules.clean && !f.place.excluding && f.realPlace == nil && index < 0 {
		return
	}
	kept := l.entries[:0]
	for _, e := range l.entries {
		if e.flags&isFolder != 0 {
			kept = append(kept, e)
			continue
		}
		name, escaped := l.name(&e), l.keyOf(&e)
		if rules.clean && e.flags&isHTML != 0 && !r.taken(name[:len(name)-len(".html")]) {
			e.flags |= isClean
		}
		why := listed
		if f.place.excluding && rules.excludes(&f.place, r.urlOf(&f.place, escaped), e.flags&isIndex != 0, e.flags&isClean != 0) {
			why = excluded
		}
		if p := f.realPlace; why == listed && p != nil && e.flags&isLink == 0 {
			isRealIndex := realIndex >= 0 && rules.index[realIndex] == name
			url := r.urlOf(p, escaped)
			if rules.file(p, name, url) == listed && !rules.excludes(p, url, isRealIndex, e.flags&isClean != 0) {
				why = duplicate
			}
		}
		switch {
		case why != listed:
			r.leaveOut(why, name)
			continue
		case e.flags&isIndex != 0:
			e.keyLen = 0
		case e.flags&isClean != 0:
			e.keyLen -= uint16(len(".html"))
		}
		kept = append(kept, e)
	}
	l.entries = kept
}

// check says why a regular file is not listed, and takes its time and version if
// it is.
func (r *reader) check(h handle, name string, e *entry, in *info) {
	switch {
	case in.kind != kindFile:
		e.why = notRegular
	case in.size == 0:
		e.why = empty
	case !h.readable(name, in):
		e.why = unreadable
	default:
		e.time, e.version = believed(in.time, r.s.now), in.version
	}
}

// examine looks at the files that are to be listed, and removes those that
// cannot be.
func (r *reader) examine() {
	f, l := r.f, r.l
	if f.linked {
		l.ids = make([]fileID, len(l.entries))
		for i := range l.entries {
			l.entries[i].id = uint32(i + 1)
		}
	}
	if len(l.entries) >= shareFrom && r.s.others > 0 {
		r.s.examineTogether(r)
	} else if f.err = r.examineRange(r.h, f, l, 0, len(l.entries)); f.err != nil {
		return
	}
	if f.err != nil {
		return
	}
	kept := l.entries[:0]
	for i := range l.entries {
		e := &l.entries[i]
		if e.why == listed && e.flags&(isLink|isFolder) == isLink && !r.s.ended() {
			r.resolve(e)
		}
		if e.why != listed {
			r.leaveOut(e.why, l.name(e))
			continue
		}
		kept = append(kept, *e)
	}
	l.entries = kept
}

// A folder of so many entries is examined by all workers together, a share at a
// time.
const (
	shareFrom = 4096
	share     = 512
)

// examineRange looks at part of a folder's files. Several goroutines may, each
// at another part, with handles of their own. The error is one that ends the
// scan.
func (r *reader) examineRange(h handle, f *folder, l *listing, from, to int) error {
	for i := from; i < to; i++ {
		if i&1023 == 1023 && r.s.ended() {
			return r.s.ctx.Err()
		}
		e := &l.entries[i]
		if e.flags&(isFolder|isKnown) != 0 {
			continue
		}
		name := l.name(e)
		if err := h.stat(name, e.ord, false, &r.in); err != nil {
			if starved(err) {
				return err
			}
			e.why = reasonOf(err)
			continue
		}
		r.check(h, name, e, &r.in)
		if f.linked {
			id := r.in.id
			if id == (fileID{}) && f.real != "" {
				id.path = f.real + "/" + name
			}
			l.ids[e.id-1] = id
			if id == (fileID{}) {
				e.id = 0
			}
		}
	}
	return nil
}

// resolve finds out whether the file behind a link is listed by its real path,
// and else which file it is. The site's own front page is one of its own.
func (r *reader) resolve(e *entry) {
	if r.f.place.depth == 0 && e.flags&isIndex != 0 {
		return
	}
	name := r.l.name(e)
	real, err := r.h.real(name)
	if err != nil {
		real = ""
	}
	if r.s.listsReal(real) {
		e.why = duplicate
		return
	}
	id := fileID{path: real}
	if err := r.h.stat(name, e.ord, true, &r.in); err == nil && r.in.id != (fileID{}) {
		id = r.in.id
	}
	if id == (fileID{}) {
		e.id = 0
		return
	}
	if e.id == 0 {
		r.l.ids = append(r.l.ids, id)
		e.id = uint32(len(r.l.ids))
		return
	}
	r.l.ids[e.id-1] = id
}

// sortOthers prepares taken.
func (r *reader) sortOthers() {
	slices.SortFunc(r.others, func(a, b other) int {
		return strings.Compare(r.l.text(a.name, int(a.size)), r.l.text(b.name, int(b.size)))
	})
}

// taken reports whether something bears the name, which others would be listed by.
func (r *reader) taken(name string) bool {
	if strings.HasSuffix(name, ".html") {
		// Too rare to keep these names as well.
		k, ok := r.s.tree.exists(join(string(r.path), name))
		return ok && (k != kindFolder || r.s.rules.keepBeside)
	}
	_, ok := slices.BinarySearchFunc(r.others, name, func(o other, name string) int {
		return strings.Compare(r.l.text(o.name, int(o.size)), name)
	})
	return ok
}
