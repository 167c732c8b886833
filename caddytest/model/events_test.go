package model

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// event is something that happens to the site, or to Caddy.
type event struct {
	after time.Duration
	kind  *kind
	seed  uint64 // of what it chooses, so that an event does the same if others are left out
}

// kind is a kind of events.
type kind struct {
	name   string
	weight int
	do     func(m *model, r *rand.Rand)
}

var kinds = []*kind{
	{"publish", 6, (*model).publish},
	{"correct", 8, (*model).correct},
	{"deny", 6, (*model).deny},
	{"restore", 2, (*model).restore},
	{"deploy", 2, (*model).deploy},
	{"fetch all", 1, (*model).fetchAll},
	{"reload", 5, (*model).loadNext},
	{"restart", 1, (*model).restart},
	{"kill", 1, (*model).kill},
	{"trouble", 6, (*model).trouble},
}

func (e *event) do(m *model) { e.kind.do(m, rand.New(rand.NewPCG(e.seed, 2))) }

// draw returns the events of a seed.
func draw(seed uint64) []event {
	r := rand.New(rand.NewPCG(seed, 0))
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	events := make([]event, 5+r.IntN(20))
	for i := range events {
		n := r.IntN(total)
		k := 0
		for ; n >= kinds[k].weight; k++ {
			n -= kinds[k].weight
		}
		events[i] = event{after: longTail(r, time.Second, 3*time.Hour), kind: kinds[k], seed: r.Uint64()}
	}
	return events
}

// longTail returns a time that is as often short as long.
func longTail(r *rand.Rand, least, most time.Duration) time.Duration {
	ratio := float64(most) / float64(least)
	return time.Duration(float64(least) * math.Pow(ratio, r.Float64())).Round(time.Second)
}

// pick returns one of several; false: there are none.
func pick[T any](r *rand.Rand, all []T) (one T, ok bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[r.IntN(len(all))], true
}

// saved notes that a page has become another, and writes its file.
func (m *model) saved(p *page) {
	if err := m.site.write(p); err != nil {
		m.oracle.fail(0, "writing %s: %v", p.path, err)
	}
	m.oracle.turned(p)
	m.oracle.written(p)
}

func (m *model) publish(r *rand.Rand) {
	for range 1 + r.IntN(3) {
		m.names++
		m.saved(m.site.add(r, fmt.Sprintf("page-%d", m.names)))
	}
}

func isIndexable(p *page) bool { return p.condition == indexable }

func (m *model) correct(r *rand.Rand) {
	p, ok := pick(r, m.site.some(isIndexable))
	if !ok || m.confuses {
		return
	}
	m.site.mu.Lock()
	if r.IntN(4) == 0 {
		p.title = words(r, 3)
	} else {
		p.text[r.IntN(len(p.text))] = words(r, 15)
	}
	m.site.mu.Unlock()
	m.saved(p)
	m.oracle.changed(p)
}

func (m *model) become(p *page, c condition) {
	m.site.mu.Lock()
	p.condition = c
	m.site.mu.Unlock()
	m.saved(p)
}

func (m *model) restore(r *rand.Rand) {
	p, ok := pick(r, m.site.some(func(p *page) bool { return !isIndexable(p) }))
	if !ok {
		return
	}
	if p.isFile && p.condition == missing {
		m.oracle.mayBeDated(p) // a file that is there again is a new one
	}
	m.become(p, indexable)
}

// deny removes a page, or has it not be indexable.
func (m *model) deny(r *rand.Rand) {
	p, ok := pick(r, m.site.some(isIndexable))
	if !ok {
		return
	}
	conditions := []condition{missing, hidden}
	if !p.isFile {
		conditions = append(conditions, moved, refused)
	}
	c, _ := pick(r, conditions)
	m.become(p, c)
}

// fewestShared are the fewest pages, with a margin for those that are corrected as well, of which it shows that what they have
// in common is the template's.
const fewestShared = 10

// deploy renders all pages anew, at a pace: often with another template, and with some corrections.
func (m *model) deploy(r *rand.Rand) {
	if m.deployments > 0 {
		return
	}
	pages := m.site.all()
	pace := longTail(r, time.Second, 30*time.Minute)
	adds := r.IntN(3)
	of := make(map[bool]int) // pages that are files, and others
	for _, p := range pages {
		if isIndexable(p) {
			of[p.isFile]++
		}
	}
	// Of so few pages, it does not show which change is the template's, and which the page's own.
	isFew := func(n int) bool { return 0 < n && n < fewestShared }
	m.confuses = adds > 0 && (isFew(of[true]) || isFew(of[false]))
	m.deployments++
	m.note("%d pages each %s, another template: %v", len(pages), pace, adds > 0)
	for i, p := range pages {
		corrects := r.IntN(10) == 0
		m.in(time.Duration(i)*pace, func() {
			m.site.mu.Lock()
			p.template += adds
			isThere := p.condition == indexable
			isCorrected := corrects && isThere && !m.confuses
			if isCorrected {
				p.text[0] = words(r, 15)
			}
			m.site.mu.Unlock()
			if p.condition != missing {
				m.saved(p)
			}
			if adds > 0 {
				m.oracle.mayBeTold(p.path) // until it shows that it is the template's, which takes five pages
			}
			if of[p.isFile] < fewestShared {
				m.oracle.mayBeDated(p)
			}
			if isCorrected {
				m.oracle.changed(p)
			}
		})
	}
	m.in(time.Duration(len(pages))*pace, func() {
		m.note("deployed")
		m.deployments--
		m.confuses = false
		m.deployed = time.Now()
	})
}

func (m *model) fetchAll(*rand.Rand) {
	if m.faults.over() == 0 {
		return // an operator is believed, also if all pages fail
	}
	var s status
	if err := admin("POST", "/sitemap/refresh?fetch=all", &s); err != nil {
		m.oracle.fail(5, "refreshing: %v", err)
	}
}

// loadNext loads a next configuration: the same one, another one, or one that fails to start.
func (m *model) loadNext(r *rand.Rand) {
	s := m.settings
	switch r.IntN(5) {
	case 0:
		s.fails = true
	case 1:
		s.refresh = longTail(r, 10*time.Second, time.Hour)
	case 2:
		// In a shared storage, settings that have been in use before go on from the records of that time: what has changed
		// since is announced once more.
		if !m.isShared {
			s.html = !s.html
		}
	}
	m.reload(s)
}

// troubles are the faults of each place.
var troubles = [places][]fault{
	ofDisk:     {gone, half, broken, hanging, panicking},
	ofUpstream: {broken, hanging, panicking, slow, tooMany, unavailable, cut},
	ofStorage:  {broken, hanging, panicking},
}

// trouble has a place be faulty for a while.
func (m *model) trouble(r *rand.Rand) {
	p := place(r.IntN(int(places)))
	f, _ := pick(r, troubles[p])
	if is, _ := m.faults.of(p); is != none {
		return // one at a time
	}
	m.note("%s: %s", p, f)
	m.faults.set(p, f)
	m.in(longTail(r, 10*time.Second, 3*time.Hour), func() {
		m.note("%s: fine again", p)
		m.faults.set(p, none)
	})
	if p == ofDisk {
		m.oracle.mayBeTold("/", "/") // see judgeVanished
	}
	if p == ofDisk || f == cut {
		// They are removed, and come back.
		all := slices.Collect(maps.Keys(m.site.pages))
		m.oracle.mayBeTold(all...)
		m.oracle.mayBeTold(all...)
	}
}
