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
	gathered Stored // whose visits a refresh has gathered; immutable
	isNew    bool   // read, since Gather
	changed  bool   // gathered, since TakeChanged
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
	p.read[source], p.isNew = SourcePositions{settings, files}, true
}

// Gather says that a refresh gathers the visits recorded so far. Only these positions are stored: a restart loses
// later visits, and has to read them again.
func (p *Progress) Gather() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isNew {
		p.gathered, p.isNew, p.changed = maps.Clone(p.read), false, true
	}
}

// Stored returns the positions to be stored with the site's records.
func (p *Progress) Stored() Stored {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gathered
}

// Restore takes over stored positions, unless something was read already.
func (p *Progress) Restore(stored Stored) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read, p.gathered = maps.Clone(stored), stored
	}
}

// TakeChanged reports whether Stored has changed since the last call, and resets that.
func (p *Progress) TakeChanged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.changed
	p.changed = false
	return changed
}
