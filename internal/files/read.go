package files

import (
	"errors"
	"runtime"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// reader reads folders, one at a time, for one goroutine. What it holds is used
// again for the next.
type reader struct {
	s *scan
	h handle

	f     *folder
	l     *listing
	path  string // of the folder
	in    info
	add   func(name string, k kind) bool
	ord   uint32
	limit int // entries that may still be read; below 0: all

	links  []entry
	others map[string]bool // names that a page might be listed by; they are no ".html"
	index  []indexFile
}

// indexFile is what has one of the index names.
type indexFile struct {
	found bool
	kind  kind
	entry entry
}

func newReader(s *scan) *reader {
	r := &reader{s: s, h: s.tree.handle(), limit: -1, index: make([]indexFile, len(s.rules.index))}
	r.add = r.addEntry
	return r
}

var errTooLarge = errors.New("folder too large")

// read fills in f.l, and f.err or f.why where the folder cannot be read.
func (r *reader) read(f *folder) {
	runtime.Gosched() // requests come first
	if err := caught(func() {
		if r.collect(f) {
			r.examine()
			r.l.sort()
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
	r.links, r.others = r.links[:0], nil
	clear(r.index)

	if f.parent != nil {
		f.locate(r.s.rules)
	}
	r.path = join(r.s.rootPath, f.place.rel)
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
		r.l.tally.keep(r.path)
	}
	f.err = nil
	r.followLinks()
	r.finishNames()
	return f.err == nil
}

// join is the path of what is at rel below root.
func join(root, rel string) string {
	switch {
	case rel == "":
		return root
	case root == "" || root == ".":
		return rel
	}
	return strings.TrimSuffix(root, "/") + "/" + rel
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
		if f.real, err = r.s.tree.real(r.path); err != nil {
			f.real = ""
		}
		f.realPlace = r.s.placeOf(f.real)
	}
	if f.id == (fileID{}) {
		f.id.path = f.real
	}
	if f.id == (fileID{}) {
		if f.link && f.parent.linked {
			f.why = linkLoop // it may lead anywhere, back to here too
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
	e := entry{ord: r.ord}
	r.ord++
	if k == kindFolder {
		r.addFolder(name, 0)
		return true
	}
	switch {
	case name[0] == '.':
		r.leaveOut(dotfile, name)
	case k == kindLink:
		r.keep(&e, name)
		r.links = append(r.links, e)
	default:
		r.addFile(name, k, e)
	}
	return true
}

// keep stores a name with the NUL that system calls want.
func (r *reader) keep(e *entry, name string) {
	e.name, e.size = uint32(len(r.l.names)), uint16(len(name))
	r.l.names = append(append(r.l.names, name...), 0)
}

// leaveOut counts a file or folder that is left out.
func (r *reader) leaveOut(why reason, name string) {
	r.l.tally.leftOut[why]++
	if why == unreadable {
		r.l.tally.keep(join(r.path, name))
	}
}

// addOther takes a name that a page might be listed by.
func (r *reader) addOther(name string) {
	if r.others == nil {
		r.others = make(map[string]bool)
	}
	r.others[strings.Clone(name)] = true
}

func (r *reader) addFolder(name string, fl flags) {
	l := r.l
	if i := r.s.rules.indexOf(name); i >= 0 {
		r.index[i] = indexFile{found: true, kind: kindFolder}
	}
	if r.s.rules.keepBeside {
		r.addOther(name)
	}
	escaped := page.Escape(name)
	why := r.s.rules.folder(&r.f.place, name)
	if why == listed && len(r.f.place.url)+len(escaped)+1 > maxURL {
		why = nameTooLong
	}
	if why != listed {
		r.leaveOut(why, name)
		return
	}
	e := entry{flags: isFolder | fl}
	r.keep(&e, name)
	e.key, e.keyLen = uint32(len(l.names)), uint16(len(escaped)+1)
	l.names = append(append(l.names, escaped...), '/')
	l.entries = append(l.entries, e)
}

// addFile takes a file or the target of a link, of which e has what is known.
func (r *reader) addFile(name string, k kind, e entry) {
	if r.s.rules.clean && !strings.HasSuffix(name, ".html") {
		r.addOther(name)
	}
	if i := r.s.rules.indexOf(name); i >= 0 {
		if e.size == 0 {
			r.keep(&e, name)
		}
		r.index[i] = indexFile{found: true, kind: k, entry: e}
		return
	}
	r.addPage(name, k, e)
}

func (r *reader) addPage(name string, k kind, e entry) {
	l := r.l
	escaped := page.Escape(name)
	why := r.s.rules.file(&r.f.place, name, escaped)
	switch {
	case why != listed:
	case k == kindOther:
		why = notRegular
	case len(r.f.place.url)+len(escaped) > maxURL, len(r.path)+1+len(name) >= maxPath:
		why = nameTooLong
	default:
		why = e.why
	}
	if why != listed {
		r.leaveOut(why, name)
		return
	}
	if e.size == 0 {
		r.keep(&e, name)
	}
	e.key, e.keyLen = e.name, e.size
	if len(escaped) != len(name) {
		e.key, e.keyLen = uint32(len(l.names)), uint16(len(escaped))
		l.names = append(l.names, escaped...)
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
		if err := r.h.stat(name, e.ord, true, &r.in); starved(err) {
			r.f.err = err
			return
		} else if err != nil {
			why := reasonOf(err)
			if why == vanished {
				why = dangling
			}
			r.leaveOut(why, name)
			continue
		}
		if r.in.kind == kindFolder {
			r.addFolder(name, isLink)
			continue
		}
		e.flags |= isLink
		if r.in.kind == kindFile {
			r.check(name, &e)
			r.identify(&e, r.in.id)
		}
		r.addFile(name, r.in.kind, e)
	}
}

// chosenIndex is the name of the folder's index file, as p hides what it hides; ""
// for none.
func (r *reader) chosenIndex(p *place) string {
	for i, name := range r.s.rules.index {
		if r.index[i].found && !r.s.rules.hidesFile(p, name) {
			return name
		}
	}
	return ""
}

// finishNames decides what needs all names of the folder: its index file, and
// which files are listed without ".html"; then what Exclude leaves out and what
// is listed by its real path.
func (r *reader) finishNames() {
	f, l, rules := r.f, r.l, r.s.rules
	index, realIndex := r.chosenIndex(&f.place), ""
	if f.realPlace != nil {
		realIndex = r.chosenIndex(f.realPlace)
	}
	for i, x := range r.index {
		if x.found && x.kind != kindFolder {
			r.addPage(rules.index[i], x.kind, x.entry)
		}
	}
	if !rules.clean && len(rules.exclude) == 0 && f.realPlace == nil && index == "" {
		return
	}
	kept := l.entries[:0]
	for _, e := range l.entries {
		if e.flags&isFolder != 0 {
			kept = append(kept, e)
			continue
		}
		name, escaped := l.name(&e), l.keyOf(&e)
		if name == index {
			e.flags |= isIndex
		}
		if stem, ok := strings.CutSuffix(name, ".html"); ok && rules.clean && !r.taken(stem) {
			e.flags |= isClean
		}
		if rules.excludes(&f.place, escaped, name == index, e.flags&isClean != 0) {
			r.leaveOut(excluded, name)
			continue
		}
		if p := f.realPlace; p != nil && e.flags&isLink == 0 && rules.file(p, name, escaped) == listed &&
			!rules.excludes(p, escaped, name == realIndex, e.flags&isClean != 0) {
			r.leaveOut(duplicate, name)
			continue
		}
		switch {
		case name == index:
			e.keyLen = 0
		case e.flags&isClean != 0:
			e.keyLen -= uint16(len(".html"))
		}
		kept = append(kept, e)
	}
	l.entries = kept
}

// taken reports whether something bears the name, which others would be listed by.
func (r *reader) taken(name string) bool {
	if strings.HasSuffix(name, ".html") {
		// Too rare to keep these names as well.
		k, ok := r.s.tree.exists(join(r.path, name))
		return ok && (k != kindFolder || r.s.rules.keepBeside)
	}
	return r.others[name]
}

// beingWritten is for how many seconds after its modification an empty file is taken for
// one that somebody is writing: a page that was there before is not gone.
const beingWritten = 10

// check says why a file that r.in tells of is not listed, and takes its time and
// version if it is.
func (r *reader) check(name string, e *entry) {
	switch {
	case r.in.kind != kindFile:
		e.why = notRegular
	case r.in.size == 0 && (r.s.now-r.in.time > beingWritten || r.in.time-r.s.now > beingWritten):
		e.why = empty
	case !r.h.readable(name, &r.in):
		e.why = unreadable
	default:
		e.time, e.version = believed(r.in.time, r.s.now), r.in.version
	}
}

// identify takes note of which file an entry is.
func (r *reader) identify(e *entry, id fileID) {
	if id != (fileID{}) {
		r.l.ids = append(r.l.ids, id)
		e.id = uint32(len(r.l.ids))
	}
}

// examine looks at the files that are to be listed, and removes those that
// cannot be.
func (r *reader) examine() {
	f, l := r.f, r.l
	kept := l.entries[:0]
	for i, e := range l.entries {
		if i&1023 == 1023 && r.s.ended() {
			f.err = r.s.ctx.Err()
			return
		}
		switch {
		case e.flags&isLink != 0 && e.flags&isFolder == 0:
			r.resolve(&e)
		case e.flags&isFolder == 0:
			if f.err = r.examineFile(&e); f.err != nil {
				return
			}
		}
		if e.why != listed {
			r.leaveOut(e.why, l.name(&e))
			continue
		}
		kept = append(kept, e)
	}
	l.entries = kept
}

// examineFile says whether a file is listed. The error is one that ends the scan.
func (r *reader) examineFile(e *entry) error {
	name := r.l.name(e)
	if err := r.h.stat(name, e.ord, false, &r.in); starved(err) {
		return err
	} else if err != nil {
		e.why = reasonOf(err)
		return nil
	}
	r.check(name, e)
	if !r.f.linked {
		return nil
	}
	id := r.in.id
	if id == (fileID{}) && r.f.real != "" {
		id.path = r.f.real + "/" + name
	}
	r.identify(e, id)
	return nil
}

// resolve finds out whether the file behind a link is listed by its real path,
// and else which file it is. The site's own front page is one of its own.
func (r *reader) resolve(e *entry) {
	if r.f.place.depth == 0 && e.flags&isIndex != 0 {
		e.id = 0
		return
	}
	real, err := r.s.tree.real(join(r.path, r.l.name(e)))
	if err != nil {
		return
	}
	if r.s.listsReal(real) {
		e.why = duplicate
	}
	if e.id == 0 {
		r.identify(e, fileID{path: real})
	}
}
