package model

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"
)

// fault is what is wrong with the disk, the application or the storage.
type fault string

const (
	none        fault = ""
	gone        fault = "gone"        // the root does not exist
	half        fault = "half"        // folders of the root do not exist
	broken      fault = "broken"      // each call fails
	hanging     fault = "hanging"     // each call waits until that ends
	panicking   fault = "panicking"   // each call panics
	slow        fault = "slow"        // each response takes five seconds
	tooMany     fault = "too many"    // 429 with Retry-After
	unavailable fault = "unavailable" // 503
	cut         fault = "cut"         // the list of pages ends amid the first URL
)

// place is what has a fault.
type place uint8

const (
	ofDisk place = iota
	ofUpstream
	ofStorage
	places
)

func (p place) String() string { return [...]string{"disk", "upstream", "storage"}[p] }

// faults are what is wrong now.
type faults struct {
	mu    sync.Mutex // never held while anything waits
	are   [places]fault
	last  [places]fault // also if it is over
	since [places]time.Time
	ended [places]time.Time     // when the last one was
	until [places]chan struct{} // closed when what hangs goes on
	retry time.Time             // before which nothing is to be requested
}

// set begins or ends a fault.
func (f *faults) set(p place, to fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.are[p] != none {
		f.ended[p] = time.Now()
	}
	if f.until[p] != nil {
		close(f.until[p])
		f.until[p] = nil
	}
	f.are[p] = to
	if to != none {
		f.last[p] = to
		f.since[p] = time.Now()
	}
	if to == hanging {
		f.until[p] = make(chan struct{})
	}
}

// of returns the fault of a place, and what ends it.
func (f *faults) of(p place) (fault, chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.are[p], f.until[p]
}

// call is a call of the disk or the storage.
func (f *faults) call(ctx context.Context, p place) error {
	is, until := f.of(p)
	switch is {
	case broken:
		return errOnPurpose
	case panicking:
		panic(errOnPurpose)
	case hanging:
		select {
		case <-until:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// disk is a call that opens a name.
func (f *faults) disk(name string) error {
	is, _ := f.of(ofDisk)
	isGone := is == gone || is == half && strings.Contains(name, "guide")
	if isGone {
		return fs.ErrNotExist
	}
	return f.call(context.Background(), ofDisk)
}

// upstream is a request of the application, which it may respond to.
func (f *faults) upstream(w http.ResponseWriter, r *http.Request) (isDone bool, err error) {
	is, _ := f.of(ofUpstream)
	switch is {
	case slow:
		return false, sleep(r.Context(), 5*time.Second)
	case tooMany:
		w.Header().Set("Retry-After", "300")
		if !isProbe(r.URL.Path) {
			f.retryAfter(5 * time.Minute)
		}
		w.WriteHeader(http.StatusTooManyRequests)
		return true, nil
	case cut:
		if !strings.HasSuffix(r.URL.Path, "list.txt") {
			return false, nil
		}
		_, err := io.WriteString(w, origin+"/sho")
		return true, err
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
		return true, nil
	}
	return false, f.call(r.Context(), ofUpstream)
}

// retryAfter notes that the application wants no requests for a while; 0: a new process does not know of it.
func (f *faults) retryAfter(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retry = time.Now().Add(d)
}

// pausedUntil is until when the application wants no requests.
func (f *faults) pausedUntil() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.retry
}

// over is for how long there has been no fault; 0: there is one.
func (f *faults) over() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	least := 100_000 * time.Hour
	for p := range places {
		if f.are[p] != none {
			return 0
		}
		ago := time.Since(f.ended[p])
		// A refresh that hung for a minute has the next one come twenty minutes later.
		if f.last[p] == hanging || f.last[p] == slow {
			ago -= 25 * time.Minute
		}
		least = min(least, max(ago, 1))
	}
	return least
}

// sleep waits, unless the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// excuse reports whether a fault of late explains that pages are not listed any more: that a folder is gone is believed at
// once, as is the 400 that Caddy's file server returns where a disk fails; all else after a while.
func (f *faults) excuse() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range places {
		ended := f.ended[p]
		if f.are[p] != none {
			ended = time.Now()
		}
		isBelieved := f.last[p] == half || p == ofDisk && f.last[p] == broken
		isLong := isBelieved || ended.Sub(f.since[p]) > lossPatience
		if !f.since[p].IsZero() && isLong && time.Since(ended) < failPatience {
			return true
		}
	}
	return false
}
