package sitemap

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/evidence"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// Of what pages that cannot exist answer.
const (
	maxAbsences  = 10_000
	absenceLast  = 24 * time.Hour
	absenceAgain = time.Hour // after it was not to be had
)

// absence is what a page that cannot exist answers.
type absence struct {
	at      time.Time
	unknown bool   // an error, which may be over soon
	soft    bool   // a 200
	text    uint64 // its fingerprint
}

// softness is whether a page is a soft 404.
type softness uint8

const (
	isNotSoft softness = iota
	isSoft
	mayBeSoft
)

// softness tells whether a page that only visitors and links name answers with what a
// page that cannot exist beside it gets, too.
func (st *student) softness(ctx context.Context, rec *state.Record, answer *Answer, e *evidence.Evidence) softness {
	path := rec.Page.Path
	if rec.Flags&verdict.FlagDiscovered == 0 || answer.Status != http.StatusOK || e == nil || path == st.site.front() {
		return isNotSoft
	}
	none := st.absent(ctx, absentBeside(path, st.site.app.absentName), answer.Proxied)
	switch {
	case none.unknown:
		return mayBeSoft
	case none.soft && none.text == e.Fingerprint:
		return isSoft
	}
	return isNotSoft
}

// absentBeside is a path like another one that cannot exist: in its folder, or where a
// query tells pages apart, with another value.
func absentBeside(path, name string) string {
	if strings.Contains(path, "?") {
		return path[:strings.LastIndexByte(path, '=')+1] + name
	}
	return verdict.Folder(path) + name
}

// absent asks for a page that cannot exist.
func (st *student) absent(ctx context.Context, path string, proxied bool) absence {
	s, now := st.site, st.site.app.now()
	key := verdict.Hash(path)
	last, known := s.absences.get(key)
	switch age := now.Sub(last.at); {
	case !known, age < 0:
	case !last.unknown && age < absenceLast, last.unknown && age < absenceAgain:
		return last
	}
	if proxied && s.pace.turn(ctx, s.app.now) != nil {
		return absence{unknown: true}
	}
	begun := s.app.now()
	answer, err := s.askPage(ctx, st.runner, http.MethodGet, path, evidence.MaxBody, nil)
	if ctx.Err() != nil {
		return absence{unknown: true}
	}
	if proxied {
		s.pace.end(begun, s.app.now(), answer)
	}
	found := absence{at: now}
	switch {
	case err != nil, answer.Status >= 500, answer.Status == http.StatusForbidden, answer.Status == http.StatusTooManyRequests, answer.Status == http.StatusRequestTimeout:
		found.unknown = !known || !last.unknown // an application that fails each time fails for what it has not got
	case answer.Status == http.StatusOK && !answer.Unhandled:
		e := st.evidence(path, answer.Body, answer.Header, now)
		found.soft, found.text = true, e.Fingerprint
	}
	s.absences.put(key, found)
	return found
}

// absences remembers what pages that cannot exist answer.
type absences struct {
	mu     sync.Mutex
	byPath map[uint64]absence // by its hash
}

func (a *absences) get(path uint64) (absence, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.byPath[path]
	return found, ok
}

func (a *absences) put(path uint64, found absence) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byPath == nil || len(a.byPath) >= maxAbsences {
		a.byPath = make(map[uint64]absence)
	}
	a.byPath[path] = found
}
