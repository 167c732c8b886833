package store

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"
)

// An object that cannot be read, while others can, is lost to the site for good, as by a bad sector. It is given up as
// damaged after some tries over some time.
const (
	minTries = 3
	minSpan  = 10 * time.Minute
)

// Doubts are the objects of one site that could not be read. They outlive a Store, but not the process.
type Doubts struct {
	mu    sync.Mutex
	named map[string]doubt // by the object's name
}

// doubt is how often an object could not be read, and since when.
type doubt struct {
	tries int
	since time.Time
}

// add counts a try. It reports whether the object is given up.
func (d *Doubts) add(name string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.named == nil {
		d.named = make(map[string]doubt)
	}
	of := d.named[name]
	isFirst := of.tries == 0 || now.Before(of.since) // the clock was set back
	if isFirst {
		of = doubt{since: now}
	}
	of.tries++
	d.named[name] = of
	return of.tries >= minTries && now.Sub(of.since) >= minSpan
}

// forget ends the doubt in an object, as it was read.
func (d *Doubts) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.named, name)
}

// has reports whether an object could not be read when that was last tried.
func (d *Doubts) has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.named[name].tries > 0
}

// isUnreadable reports whether an error may be that of a single object. That of a permission, or of too many open
// files, never is.
func isUnreadable(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ESTALE)
}

// doubt counts that an object cannot be read, and returns the error. A storage that fails as a whole, or for now, says nothing
// of its objects.
func (s *Store) doubt(ctx context.Context, o *object, cause error) error {
	stored := s.Last().state.Load().objects()
	if stored[o.Name] == nil {
		return cause // no committed generation names it
	}
	delete(stored, o.Name)
	if s.canRead(ctx, stored) && s.Doubts.add(o.Name, s.Now()) {
		return s.lose(o, cause)
	}
	return cause
}

// canRead reports whether the manifest can be read, and one of some objects. A small site may have no other object: then
// the manifest, in the same folder of the same disk, has to do.
func (s *Store) canRead(ctx context.Context, objects map[string]*object) bool {
	_, err := s.load(ctx, ManifestName)
	if err != nil {
		return false
	}
	isNone := true
	for name, o := range objects {
		isTried := o.damaged.Load() || s.Doubts.has(name) // again, it may take long
		if isTried {
			continue
		}
		isNone = false
		_, err := s.load(ctx, name)
		if err == nil {
			return true
		}
	}
	return isNone
}
