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
}

// due is when it is requested again.
func (r removal) due() time.Time { return r.At.Add(goneFor << min(max(r.Tries, 0), maxTries)) }

// remove adds removed pages. dropped is how many of the oldest ones have no room.
func (s *state) remove(paths list, at time.Time) (dropped int) {
	s.back(paths)
	for _, path := range paths {
		s.Removed = append(s.Removed, removal{Path: path, At: at})
	}
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

// nextCheck returns when a removed page is to be requested; zero: there is none.
func (q *Queue) nextCheck() (next time.Time) {
	for _, r := range q.state.Removed {
		if due := r.due(); next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next
}

// check requests removed pages again that are due, and queues those that are gone.
func (q *Queue) check(ctx context.Context, r *Runner) {
	begun := r.Now()
	var gone, isBack, unknown list
	for _, path := range q.toCheck(begun) {
		isGone, err := r.Gone(ctx, path)
		switch {
		case ctx.Err() != nil:
			return // they are checked again
		case err != nil:
			unknown = append(unknown, path)
		case isGone:
			gone = append(gone, path)
		default:
			isBack = append(isBack, path)
		}
		if r.Now().Sub(begun).Abs() > checkFor {
			break
		}
	}
	q.checked(gone, isBack, unknown)
}

// toCheck returns some of the removed pages that are to be requested.
func (q *Queue) toCheck(now time.Time) (due list) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.correct(now)
	for _, r := range q.state.Removed {
		if len(due) < maxChecks && !r.due().After(now) {
			due = append(due, r.Path)
		}
	}
	return due
}

// checked notes which removed pages are gone, which respond again, and of which requests have shown nothing.
func (q *Queue) checked(gone, isBack, unknown list) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.state
	isUnknown := unknown.set()
	for i := range s.Removed {
		if isUnknown[s.Removed[i].Path] {
			s.Removed[i].Tries++
		}
	}
	for _, r := range s.Removed {
		if r.Tries >= maxTries {
			isBack = append(isBack, r.Path) // perhaps
		}
	}
	gone = s.back(gone) // others were listed again meanwhile
	isBack = s.back(isBack)
	for _, t := range s.Targets {
		if t.Kind == IndexNow {
			t.remove(isBack)
			t.Dropped += t.add(nil, gone)
		}
	}
}
