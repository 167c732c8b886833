package store

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"
)

// An object that cannot be read, while others can, is lost to the site for good: a bad sector, or a file that hangs.
// It is given up as damaged after some tries over some time.
const (
	minTries = 3
	minSpan  = time.Hour
	maxPause = 30 * time.Minute // between two tries counts at most: a clock that jumps is no hour
)

// doubt is how often, and over what time, an object could not be read.
type doubt struct {
	tries int
	span  time.Duration
	last  time.Time
}

// again adds a try.
func (d doubt) again(now time.Time) doubt {
	if d.tries > 0 {
		pause := max(now.Sub(d.last), 0) // else the clock was set back
		d.span += min(pause, maxPause)
	}
	d.tries++
	d.last = now
	return d
}

// isDamage reports whether the object is given up.
func (d doubt) isDamage() bool { return d.tries >= minTries && d.span >= minSpan }

// try is what else could be read when an object could not.
type try struct {
	manifest bool
	others   int // stored objects besides
	read     int // of those
}

// isAlone reports whether it is the object that fails and not the storage. A small site may have a single object: then
// the manifest, in the same folder of the same disk, has to do.
func (t try) isAlone() bool { return t.manifest && (t.read > 0 || t.others == 0) }

// isUnreadable reports whether an error may be that of a single object. That of a permission, or of too many open
// files, never is.
func isUnreadable(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ESTALE) || errors.Is(err, ErrHung)
}

// Doubts are those of the objects of one site. They outlive a Store, but not the process.
type Doubts struct {
	mu    sync.Mutex
	named map[string]doubt // by the object's name
}

// add counts a try. It reports whether the object is given up.
func (d *Doubts) add(name string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.named == nil {
		d.named = make(map[string]doubt)
	}
	again := d.named[name].again(now)
	d.named[name] = again
	return again.isDamage()
}

// forget ends the doubt in an object, as it was read.
func (d *Doubts) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.named, name)
}

// isGivenUp reports whether an object was given up.
func (d *Doubts) isGivenUp(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.named[name].isDamage()
}

// Prober is a Storage whose Load does not tell what can be read: it also returns copies, or what it loads has effects.
type Prober interface {
	// Probe reports whether the manifest can be read now, and whether one of some objects can.
	Probe(ctx context.Context, names []string) (manifest, object bool)
}

// doubt counts that an object cannot be read, if others can, and returns the error. All others are read now, so that
// the tries of all that cannot be read are the same.
func (s *Store) doubt(ctx context.Context, o *object, cause error) error {
	stored := s.Last().state.Load().objects()
	if stored[o.Name] == nil {
		return cause // no committed generation names it
	}

	// Read all that is stored besides.
	t := try{}
	unread := map[*object]error{o: cause}
	var read []string
	for name, other := range stored {
		if name == o.Name || other.fresh.Load() != nil || other.damaged.Load() {
			continue
		}
		t.others++
		_, err := s.fetch(ctx, other)
		if err == nil {
			read = append(read, name)
		} else if isUnreadable(err) {
			unread[other] = err
		}
	}
	t.manifest, t.read = s.probe(ctx, read)

	// A storage that fails as a whole, or for now, says nothing of its objects.
	if !t.isAlone() {
		return cause
	}

	// Each that could not be read has had a try.
	err := cause
	now := s.Now()
	for other, cause := range unread {
		if !s.Doubts.add(other.Name, now) {
			continue
		}
		lost := s.lose(ctx, other, nil, cause)
		if other == o {
			err = lost
		}
	}
	return err
}

// probe reports whether the manifest can be read, and how many objects can, of which some were.
func (s *Store) probe(ctx context.Context, read []string) (manifest bool, objects int) {
	if p, ok := s.storage.(Prober); ok {
		manifest, object := p.Probe(ctx, read)
		if !object {
			return manifest, 0
		}
		return manifest, len(read)
	}
	_, err := s.load(ctx, manifestName)
	return err == nil, len(read)
}
