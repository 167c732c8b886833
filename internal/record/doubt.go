package record

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"time"
)

// An object that cannot be read, while others can, is lost to the site for good, as by a bad sector. It is given up as
// damaged after some tries over some time.
const (
	minTries = 3
	minSpan  = 10 * time.Minute
)

// doubt is how often an object could not be read, and since when.
type doubt struct {
	tries atomic.Int32
	since time.Time
}

// isUnreadable counts that an object could not be read, and reports whether it is given up. A storage that fails as a whole, or for
// now, says nothing of its objects.
func (s *Store) isUnreadable(ctx context.Context, o *object, others map[string]*object, cause error) bool {
	// That of a permission, or of too many open files, is never the object's.
	isOfObject := errors.Is(cause, syscall.EIO) || errors.Is(cause, syscall.ESTALE)
	if !isOfObject || !s.canRead(ctx, others) {
		return false
	}
	value, _ := s.doubts.LoadOrStore(o.Name, &doubt{since: time.Now()})
	d := value.(*doubt)
	return d.tries.Add(1) >= minTries && time.Since(d.since) >= minSpan
}

// canRead reports whether one of some objects can be read. A small site may have no other one: then the manifest, in the same folder
// of the same disk, has to do.
func (s *Store) canRead(ctx context.Context, objects map[string]*object) bool {
	if len(objects) == 0 {
		objects[ManifestName] = nil
	}
	for name := range objects {
		_, err := s.load(ctx, name)
		if err == nil {
			return true
		}
	}
	return false
}
