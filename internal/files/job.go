package files

import (
	"fmt"
	"slices"
	"sync"
)

// examineTogether shares a large folder's files out.
func (s *scan) examineTogether(r *reader) {
	j := &job{f: r.f, l: r.l, h: r.h}
	s.mu.Lock()
	s.jobs = append(s.jobs, j)
	s.work.Broadcast()
	s.ready.Broadcast()
	s.mu.Unlock()
	j.help(r, r.h)
	s.mu.Lock()
	s.jobs = slices.DeleteFunc(s.jobs, func(other *job) bool { return other == j })
	s.mu.Unlock()
	// Nobody joins from here on.
	j.helpers.Wait()
	j.mu.Lock()
	r.f.err = j.err
	j.mu.Unlock()
}

// job is a large folder whose files several goroutines examine.
type job struct {
	f       *folder
	l       *listing
	h       handle
	helpers sync.WaitGroup

	mu   sync.Mutex
	next int
	err  error
}

// help examines shares of the folder until none is left.
func (j *job) help(r *reader, h handle) {
	for {
		j.mu.Lock()
		from, to := j.next, min(j.next+share, len(j.l.entries))
		j.next = to
		stop := j.err != nil || from >= to
		j.mu.Unlock()
		if stop {
			return
		}
		var err error
		if thrown := caught(func() { err = r.examineRange(h, j.f, j.l, from, to) }); thrown != nil {
			err = thrown
		}
		if err != nil {
			j.mu.Lock()
			j.err = fmt.Errorf("examining files: %w", err)
			j.mu.Unlock()
			return
		}
	}
}

func (j *job) left() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err == nil && j.next < len(j.l.entries)
}
