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
	gathered Stored // whose visits a refresh was given; it is not changed
	isNew    bool   // read, since Gather
	changed  bool   // gathered, since TakeChanged
}

// Stored is how far the logs of each source were read, for JSON.
type Stored map[int]SourcePositions

// SourcePositions is how far the logs of a source were read, with its settings.
type SourcePositions struct {
	Settings uint64    `json:"settings"`
	Files    Positions `json:"files"`
}

// Get returns from where a source is to be read; nil: from the beginning, as with other settings.
func (p *Progress) Get(source int, settings uint64) Positions {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.read[source]; at.Settings == settings {
		return at.Files
	}
	return nil
}

// Set notes how far a source was read, once its visits were noted.
func (p *Progress) Set(source int, settings uint64, files Positions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read = make(Stored)
	}
	p.read[source], p.isNew = SourcePositions{settings, files}, true
}

// Gather notes that a refresh takes the visits that were noted so far: what is read only later may not be lost
// with this process.
func (p *Progress) Gather() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isNew {
		p.gathered, p.isNew, p.changed = maps.Clone(p.read), false, true
	}
}

// Stored returns what is to be written with the site's records.
func (p *Progress) Stored() Stored {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gathered
}

// Restore takes over what was written. What was read since stands.
func (p *Progress) Restore(stored Stored) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read, p.gathered = maps.Clone(stored), stored
	}
}

// TakeChanged reports whether there is something new to store since the last call.
func (p *Progress) TakeChanged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.changed
	p.changed = false
	return changed
}
