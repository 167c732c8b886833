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
	Size  int64  // bytes
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

func sample(ctx context.Context, o Options, n int, beside bool) ([]SampleFile, error) {
	o.CleanURLs, o.KeepBesideFolders, o.Workers = true, false, 1
	s, err := newScan(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.begin(); err != nil {
		return nil, err
	}
	if s.rules.all {
		return nil, nil
	}
	r := s.own
	r.limit = sampleEntries
	var found []SampleFile
	queue := []*folder{{place: s.rules.root()}}
	for i := 0; i < len(queue) && i < sampleFolders && r.limit > 0 && len(found) < n; i++ {
		f := queue[i]
		queue[i] = nil
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ok := r.collect(f)
		if f.err != nil && (f.parent == nil || starved(f.err) || ctx.Err() != nil) {
			r.h.close()
			return nil, s.rootError(f.err)
		}
		if ok {
			r.sorter.sort(f.l)
			if file, ok := r.sample(beside); ok {
				found = append(found, file)
			}
			for _, at := range f.l.folders {
				if len(queue) >= sampleFolders {
					break
				}
				sub := &folder{parent: f, at: at, link: f.l.entries[at].flags&isLink != 0}
				sub.linked = sub.link || f.linked
				queue = append(queue, sub)
			}
		}
		r.h.close()
	}
	return found, nil
}

// sample picks a file from the folder that is open.
func (r *reader) sample(beside bool) (SampleFile, bool) {
	tried, most := 0, sampleFiles
	if beside {
		most = sampleBeside
	}
	for i := range r.l.entries {
		e := &r.l.entries[i]
		if e.flags&(isFolder|isLink|isIndex) != 0 || e.flags&isClean == 0 {
			continue
		}
		if tried++; tried > most {
			break
		}
		name := r.l.name(e)
		// A folder of the shorter name would be redirected to; and not all names
		// of the folder may have been read.
		if k, taken := r.s.tree.exists(join(string(r.path), strings.TrimSuffix(name, ".html"))); taken != beside || taken && k != kindFolder {
			continue
		}
		if r.h.stat(name, e.ord, false, &r.in) != nil {
			continue
		}
		size := r.in.size
		if r.check(r.h, name, e, &r.in); e.why != listed {
			continue
		}
		clean := r.f.place.url + r.l.keyOf(e)
		return SampleFile{Path: clean + ".html", Clean: clean, Size: size}, true
	}
	return SampleFile{}, false
}
