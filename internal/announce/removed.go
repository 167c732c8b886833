package announce

import (
	"context"
	"slices"
	"time"
)

// removal is a removed page that may be gone.
type removal struct {
	Path  string    `json:"path"`
	At    time.Time `json:"at"`              // when it was removed
	Tries int       `json:"tries,omitempty"` // times that requests for it have failed since
	Stays bool      `json:"stays,omitempty"` // it responds, or goes on to fail, so that its removal is not announced
}

// due is when it is requested again.
func (r removal) due() time.Time { return r.At.Add(goneFor << min(max(r.Tries, 0), maxTries)) }

// remove adds removed pages. dropped is how many of the oldest ones have no room.
func (s *state) remove(paths list, at time.Time) (dropped int) {
	s.back(paths)
	for _, path := range paths {
		s.Removed = append(s.Removed, removal{Path: path, At: at})
	}
	// Of those that are too many, the oldest go.
	size := 0
	for i, r := range slices.Backward(s.Removed) {
		size += len(r.Path)
		if len(s.Removed)-i > maxPaths || size > maxBytes {
			s.Removed = slices.Delete(s.Removed, 0, i+1)
			return i + 1
		}
	}
	return 0
}

// back forgets the removal of pages, and returns those of which one was known.
func (s *state) back(paths list) (back list) {
	if len(s.Removed) == 0 {
		return nil
	}
	isOne := paths.set()
	s.Removed = slices.DeleteFunc(s.Removed, func(r removal) bool {
		if isOne[r.Path] {
			back = append(back, r.Path)
		}
		return isOne[r.Path]
	})
	return back
}

// unchecked returns how many removed pages are still to be requested, and when the first of them is.
func (s *state) unchecked() (n int, next time.Time) {
	for _, r := range s.Removed {
		if r.Stays {
			continue
		}
		if due := r.due(); n == 0 || due.Before(next) {
			next = due
		}
		n++
	}
	return n, next
}

// check requests removed pages again that are due, and queues those that are gone.
func (q *Queue) check(ctx context.Context, r *Runner) {
	begun := r.Now()
	var gone, stays, unknown list
	for _, path := range q.toCheck(begun) {
		isGone, err := r.Gone(ctx, path)
		if ctx.Err() != nil {
			return // all of them are checked again
		}
		switch {
		case err != nil:
			unknown = append(unknown, path)
		case isGone:
			gone = append(gone, path)
		default:
			stays = append(stays, path)
		}
		// What is due is not to wait for a slow site. The others are checked next time; clocks jump, in either
		// direction.
		if r.Now().Sub(begun).Abs() > checkFor {
			break
		}
	}
	q.checked(gone, stays, unknown)
}

// toCheck returns some of the removed pages that are to be requested.
func (q *Queue) toCheck(now time.Time) (due list) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.correct(now)
	for _, r := range q.state.Removed {
		if len(due) < maxChecks && !r.Stays && !r.due().After(now) {
			due = append(due, r.Path)
		}
	}
	return due
}

// checked notes which removed pages are gone, which respond again, and of which requests have shown nothing, unless
// they were listed again meanwhile.
func (q *Queue) checked(gone, stays, unknown list) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.state
	isBack := stays.set()
	isUnknown := unknown.set()
	stays = nil
	for i := range s.Removed {
		r := &s.Removed[i]
		if isUnknown[r.Path] {
			r.Tries++
		}
		// A page that goes on to fail may be back any time.
		isGivenUp := isUnknown[r.Path] && r.Tries >= maxTries
		if isBack[r.Path] || isGivenUp {
			r.Stays = true
			stays = append(stays, r.Path)
		}
	}
	gone = s.back(gone) // without those that were listed again meanwhile
	for _, t := range s.Targets {
		if t.Kind.ofPages() {
			t.remove(stays)
			t.Dropped += t.add(nil, gone)
		}
	}
}
