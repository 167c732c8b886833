package files

import (
	"context"
	"strings"
)

// SampleFile is a file that a server which leaves ".html" out of URLs would
// also serve by a shorter path.
type SampleFile struct {
	Path  string // canonical, with ".html"
	Clean string // without
}

// Bounds of the work of [Sample].
const (
	sampleFolders = 64
	sampleEntries = 20_000
	sampleFiles   = 16 // looked at in one folder
	sampleBeside  = 1000
)

// Sample finds up to n files, each in another folder, that Scan would list and
// that are no index files, with ".html" names; nothing else has the shorter
// names. It looks into the nearest folders only, and returns fewer than n, or
// none, where these have no more. Errors are those of Scan.
func Sample(ctx context.Context, o Options, n int) ([]SampleFile, error) {
	return sample(ctx, o, n, false)
}

// SampleBesideFolders is [Sample] for files where a folder has the shorter name.
func SampleBesideFolders(ctx context.Context, o Options, n int) ([]SampleFile, error) {
	return sample(ctx, o, n, true)
}

func sample(ctx context.Context, o Options, n int, beside bool) (found []SampleFile, err error) {
	o.CleanURLs, o.KeepBesideFolders, o.Workers = true, false, 1
	s, err := newScan(ctx, o)
	if err == nil {
		err = s.begin()
	}
	if err != nil || s.rules.all {
		return nil, err
	}
	r := s.own
	r.limit = sampleEntries
	queue := []*folder{{place: s.rules.root()}}
	for i := 0; i < len(queue) && r.limit > 0 && len(found) < n; i++ {
		f := queue[i]
		if r.collect(f) {
			f.l.sort()
			if file, ok := r.sample(beside); ok {
				found = append(found, file)
			}
			for _, at := range f.l.folders[:min(len(f.l.folders), sampleFolders-len(queue))] {
				queue = append(queue, f.sub(at))
			}
		}
		r.h.close()
		if f.err != nil && (f.parent == nil || starved(f.err)) || ctx.Err() != nil {
			return nil, s.rootError(f.err)
		}
	}
	return found, nil
}

// sample picks a file from the folder that is open.
func (r *reader) sample(beside bool) (SampleFile, bool) {
	left := sampleFiles
	if beside {
		left = sampleBeside
	}
	for i := range r.l.entries {
		e := &r.l.entries[i]
		if e.flags&(isFolder|isLink|isIndex) != 0 || e.flags&isClean == 0 {
			continue
		}
		if left--; left < 0 {
			break
		}
		name := r.l.name(e)
		// A folder of the shorter name would be redirected to; and not all names
		// of the folder may have been read.
		k, taken := r.s.tree.exists(join(r.path, strings.TrimSuffix(name, ".html")))
		if taken != beside || taken && k != kindFolder || r.h.stat(name, e.ord, false, &r.in) != nil {
			continue
		}
		if r.check(name, e); e.why == listed {
			clean := r.f.place.url + r.l.keyOf(e)
			return SampleFile{Path: clean + ".html", Clean: clean}, true
		}
	}
	return SampleFile{}, false
}
