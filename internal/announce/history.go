package announce

import (
	"cmp"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// recent are the batches that a target has received, or may have, a short time ago, the oldest first.
type recent []batch

// batch is one of them: hashes of its paths.
type batch struct {
	At    time.Time `json:"at"`
	Pages []uint64  `json:"pages"`
}

func hash(path string) uint64 { return xxhash.Sum64String(path) }

// with returns the batches with another one.
func (r recent) with(now time.Time, paths ...list) recent {
	b := batch{At: now}
	for _, path := range slices.Concat(paths...) {
		b.Pages = append(b.Pages, hash(path))
	}
	return append(r, b)
}

// since returns the batches from after a time on.
func (r recent) since(first, now time.Time) recent {
	for i := range r {
		r[i].At = earlier(r[i].At, now)
	}
	return slices.DeleteFunc(r, func(b batch) bool { return !b.At.After(first) })
}

func (r recent) len() (n int) {
	for _, b := range r {
		n += len(b.Pages)
	}
	return n
}

// spent counts the URLs that a target has received in the last 24 hours, by the hour.
type spent []hour

// hour is one hour's part, which counts until a day after its end.
type hour struct {
	Hour  int64 `json:"hour"` // since 1970
	URLs  int   `json:"urls"`
	Added int   `json:"added,omitempty"` // of them, those of pages that were new to the target
}

const hoursCounted = 25 // the last one not whole

func (h hour) end() time.Time { return time.Unix((h.Hour+hoursCounted)*3600, 0) }

// until returns the hours that count at a time. What is stored may be damaged, and the clock set back.
func (s spent) until(now time.Time) spent {
	this := now.Unix() / 3600
	isDamaged := func(h hour) bool { return h.Added < 0 || h.URLs < h.Added || h.URLs > MaxDaily }
	s = slices.DeleteFunc(s, func(h hour) bool { return h.Hour <= this-hoursCounted || isDamaged(h) })
	slices.SortFunc(s, func(a, b hour) int { return cmp.Compare(a.Hour, b.Hour) })
	// Hours that lie in the future count as this one.
	var all spent
	for _, h := range s {
		all = all.with(min(h.Hour, this), h.URLs, h.Added)
	}
	return all
}

// with returns the hours with URLs of the last one.
func (s spent) with(at int64, urls, added int) spent {
	if len(s) == 0 || s[len(s)-1].Hour != at {
		s = append(s, hour{Hour: at})
	}
	last := &s[len(s)-1]
	last.URLs = min(last.URLs+urls, MaxDaily)
	last.Added = min(last.Added+added, MaxDaily)
	return s
}

// allowance is how many URLs a target may be sent now, and how many of these only if they are of added pages.
type allowance struct{ all, kept int }

// others returns how many may be of other pages, beside so many of added ones.
func (a allowance) others(added int) int {
	return max(a.all-added-max(a.kept-added, 0), 0)
}

// left returns what is left of what 24 hours allow.
func (s spent) left(daily int) allowance {
	a := allowance{all: daily, kept: daily / newShare}
	for _, h := range s {
		a.all -= h.URLs
		a.kept -= h.Added
	}
	return allowance{all: max(a.all, 0), kept: max(a.kept, 0)}
}

// frees returns when something is left again, for added pages or for others.
func (s spent) frees(daily int, isAdded bool) time.Time {
	for i, h := range s {
		left := s[i+1:].left(daily)
		if left.others(0) > 0 || isAdded && left.all > 0 {
			return h.end()
		}
	}
	return time.Time{}
}
