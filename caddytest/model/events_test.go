package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// event is something that happens to the site, or to Caddy.
type event struct {
	name   string
	weight int // how often
	do     func(w *world, r *rand.Rand)
}

var events = []event{
	{"publish", 6, (*world).publishSome},
	{"correct", 8, (*world).correct},
	{"deny", 6, (*world).deny},
	{"restore", 2, (*world).restore},
	{"deploy", 2, (*world).deploy},
	{"write", 10, (*world).write},
	{"fetch all", 1, (*world).fetchAll},
	{"reload", 5, (*world).loadNext},
	{"restart", 1, (*world).restart},
	{"kill", 1, (*world).kill},
	{"trouble", 6, (*world).trouble},
}

// step is an event of a run.
type step struct {
	after time.Duration
	*event
	seed uint64 // of what it chooses, so that it does the same if others are left out
}

// draw returns the steps of a seed.
func draw(seed uint64) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	var bag []*event
	for i := range events {
		for range events[i].weight {
			bag = append(bag, &events[i])
		}
	}
	steps := make([]step, 5+r.IntN(20))
	for i := range steps {
		steps[i] = step{longTail(r, time.Second, 3*time.Hour), bag[r.IntN(len(bag))], r.Uint64()}
	}
	return steps
}

// longTail returns a time that is as often short as long.
func longTail(r *rand.Rand, least, most time.Duration) time.Duration {
	ratio := float64(most) / float64(least)
	return time.Duration(float64(least) * math.Pow(ratio, r.Float64())).Round(time.Second)
}

func isGood(p *page) bool { return p.is == good }

// one returns a page that is no hub and meets a condition; nil: there is none.
func (w *world) one(r *rand.Rand, is func(p *page) bool) *page {
	some := w.all(func(p *page) bool { return !p.isHub && is(p) })
	if len(some) == 0 {
		return nil
	}
	return some[r.IntN(len(some))]
}

func (w *world) publishSome(r *rand.Rand) {
	for range 1 + r.IntN(3) {
		w.publish(r)
	}
}

func (w *world) correct(r *rand.Rand) {
	p := w.one(r, isGood)
	if p != nil {
		w.edit(p, func() { p.text[r.IntN(len(p.text))] = words(r) })
	}
}

// deny removes a page, or has it not be indexable.
func (w *world) deny(r *rand.Rand) {
	p := w.one(r, isGood)
	if p == nil {
		return
	}
	conditions := []condition{missing, hidden, copied}
	if !p.isFile {
		conditions = append(conditions, moved, refused)
	}
	w.edit(p, func() { p.is = conditions[r.IntN(len(conditions))] })
}

func (w *world) restore(r *rand.Rand) {
	p := w.one(r, func(p *page) bool { return p.is != good })
	if p == nil {
		return
	}
	if p.isFile && p.is == missing {
		p.written = append(p.written, time.Now()) // a file that is there again is a new one
	}
	w.edit(p, func() { p.is = good })
}

// deploy renders all pages anew, at a pace: often with another template, and with some corrections.
func (w *world) deploy(r *rand.Rand) {
	if w.deployments > 0 {
		return
	}
	pages := w.all(func(*page) bool { return true })
	pace := longTail(r, time.Second, 30*time.Minute)
	adds := r.IntN(3)
	for _, isFile := range []bool{true, false} {
		n := len(w.all(func(p *page) bool { return p.is == good && p.isFile == isFile }))
		// Of a few pages, it does not show which change is the template's, and which the page's own.
		if n < 10 && n > 0 {
			adds = 0
		}
	}
	w.deployments++
	w.note("%d pages each %s, %d other templates", len(pages), pace, adds)
	for i, p := range pages {
		corrects := r.IntN(10) == 0
		w.in(time.Duration(i)*pace, func() {
			if adds > 0 {
				w.mayBeTold(1, p) // until it shows that it is the template's, which takes five pages
			}
			w.edit(p, func() {
				p.template += adds
				if corrects && p.is == good {
					p.text[1] = words(r)
				}
			})
		})
	}
	w.in(time.Duration(len(pages))*pace, func() {
		w.note("deployed")
		w.deployments--
		w.deployed = time.Now()
	})
}

// write has somebody who is signed in send a request, which most often saves something.
func (w *world) write(r *rand.Rand) {
	switch r.IntN(6) {
	case 0, 1:
		w.correct(r)
	case 2:
		w.publishSome(r)
	case 3:
		w.deny(r)
	case 4:
		w.redesign()
	}
	w.post(fmt.Sprintf("/shop/admin/%d", r.IntN(3)))
}

// redesign renders all pages of the application with another template, in a moment.
func (w *world) redesign() {
	pages := w.all(func(p *page) bool { return !p.isFile })
	n := len(w.all(func(p *page) bool { return !p.isFile && p.is == good }))
	if n < 10 || w.deployments > 0 {
		return // see deploy
	}
	for _, p := range pages {
		w.edit(p, func() { p.template++ })
	}
}

func (w *world) fetchAll(*rand.Rand) {
	if w.fine() == 0 {
		return // an operator is believed, also if all pages fail
	}
	var answer any
	if err := admin("POST", "/sitemap/refresh?fetch=all", &answer); err != nil {
		w.fail(5, "refreshing: %v", err)
	}
}

// loadNext loads a next configuration: the same one, another one, or one that fails to start.
func (w *world) loadNext(r *rand.Rand) {
	s := w.settings
	switch r.IntN(5) {
	case 0:
		s.fails = true
	case 1:
		s.refresh = longTail(r, 10*time.Second, time.Hour)
	case 2:
		// In a shared storage, settings that have been in use before go on from the records of that time: what has changed
		// since is announced once more.
		if !w.isShared {
			s.html = !s.html
		}
	}
	w.reload(s)
}

// trouble has a place be in trouble for a while.
func (w *world) trouble(r *rand.Rand) {
	place := []string{"disk", "application", "storage"}[r.IntN(3)]
	kind := kinds[place][r.IntN(len(kinds[place]))]
	if now, _ := w.now(place); now != "" {
		return // one at a time
	}
	w.note("%s: %s", place, kind)
	t := w.begin(place, kind)
	w.in(longTail(r, 10*time.Second, 3*time.Hour), func() {
		w.note("%s: fine again", place)
		w.end(t)
	})
	if place == "disk" {
		w.mayBeTold(2, w.pages["/"]) // see isExcused
	}
	if place == "disk" || kind == "list is cut" {
		// Pages are removed, and come back.
		w.mayBeTold(2, w.all(func(*page) bool { return true })...)
	}
}
