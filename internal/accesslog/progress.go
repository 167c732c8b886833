package accesslog

import (
	"maps"
	"sync"
)

// Progress is how far logs were read for a site, by their source. It is safe for concurrent use; the zero
// value is ready.
type Progress struct {
	mu       sync.Mutex
	read     Stored
	isNew    bool   // read, since Gather
	gathers  Stored // whose visits a refresh gathers; nil: those of gathered
	gathered Stored // whose visits a refresh has gathered; immutable
}

// Stored is how far the logs of each source were read, by the source's number. It is stored as JSON.
type Stored map[int]SourcePositions

// SourcePositions is how far the logs of a source were read, with its settings.
type SourcePositions struct {
	Settings uint64    `json:"settings"`
	Files    Positions `json:"files"`
}

// Get returns the positions from which a source is to be read; nil: from the beginning, as after a change of settings.
func (p *Progress) Get(source int, settings uint64) Positions {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.read[source]; at.Settings == settings {
		return at.Files
	}
	return nil
}

// Set records how far a source was read, once its visits were recorded.
func (p *Progress) Set(source int, settings uint64, files Positions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read = make(Stored)
	}
	p.read[source] = SourcePositions{settings, files}
	p.isNew = true
}

// Gather says that a refresh gathers the visits recorded so far.
func (p *Progress) Gather() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isNew {
		p.gathers = maps.Clone(p.read)
		p.isNew = false
	}
}

// Stored returns the positions to be stored with the site's records, and whether they are others than before. all says
// that the refresh has gathered all pages. A restart loses the visits that were not gathered, and has to read them again.
func (p *Progress) Stored(all bool) (stored Stored, changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed = all && p.gathers != nil
	if changed {
		p.gathered = p.gathers
		p.gathers = nil
	}
	return p.gathered, changed
}

// Restore takes over stored positions, unless something was read already.
func (p *Progress) Restore(stored Stored) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read = maps.Clone(stored)
		p.gathered = stored
	}
}
