package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// trouble is what is wrong with a place for a while.
type trouble struct {
	place, kind  string
	begun, ended time.Time     // ended is zero: it goes on
	over         chan struct{} // closed when it ends
	isBelieved   bool          // what is lost by it is removed at once
}

// kinds are what may be wrong with each place.
var kinds = map[string][]string{
	"disk":        {"gone", "half gone", "broken", "hanging", "panicking"},
	"application": {"broken", "hanging", "panicking", "slow", "429", "503", "list is cut"},
	"storage":     {"broken", "hanging", "panicking"},
}

var errOnPurpose = errors.New("it fails on purpose")

// begin has a place be in trouble.
func (w *world) begin(place, kind string) *trouble {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &trouble{place: place, kind: kind, begun: time.Now(), over: make(chan struct{}), isBelieved: kind == "half gone"}
	w.troubles = append(w.troubles, t)
	return t
}

// end ends it.
func (w *world) end(t *trouble) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.ended.IsZero() {
		t.ended = time.Now()
		close(t.over)
	}
}

// now returns what is wrong with a place; "": nothing.
func (w *world) now(place string) (kind string, over chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.troubles {
		if t.place == place && t.ended.IsZero() {
			return t.kind, t.over
		}
	}
	return "", nil
}

// call is a call of a place.
func (w *world) call(ctx context.Context, place string) error {
	kind, over := w.now(place)
	switch kind {
	case "broken":
		return errOnPurpose
	case "panicking":
		panic(errOnPurpose)
	case "slow":
		return await(ctx, time.After(5*time.Second))
	case "hanging":
		return await(ctx, over)
	}
	return nil
}

func await[T any](ctx context.Context, done <-chan T) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refuse responds for the application, if it is in a trouble with which it responds.
func (w *world) refuse(rw http.ResponseWriter, path string) (isDone bool) {
	kind, _ := w.now("application")
	switch {
	case kind == "429":
		w.askedToWait(path)
		rw.Header().Set("Retry-After", "300")
		rw.WriteHeader(http.StatusTooManyRequests)
	case kind == "503":
		rw.WriteHeader(http.StatusServiceUnavailable)
	case kind == "list is cut" && strings.HasSuffix(path, "list.txt"):
		fmt.Fprint(rw, origin+"/sho")
	default:
		return false
	}
	return true
}

// fine is for how long nothing has been wrong; 0: something is. A refresh that hung for a minute has the next one come
// twenty minutes later.
func (w *world) fine() time.Duration {
	least := 100_000 * time.Hour
	for _, t := range w.troubles {
		if t.ended.IsZero() {
			return 0
		}
		ago := time.Since(t.ended)
		if t.kind == "hanging" || t.kind == "slow" {
			ago -= 25 * time.Minute
		}
		least = min(least, max(ago, 1))
	}
	return least
}

// calm is for how long this process has run with nothing wrong.
func (w *world) calm() time.Duration { return min(w.fine(), time.Since(w.started)) }

// isExcused reports whether a trouble of late explains that a page is not listed any more: that folders are gone is believed
// at once, as is all when other settings are loaded, and else after a while. The front page is requested at each refresh: that
// it returns 404 as its file is gone counts at once, although pages of a source that cannot be read are to stay.
func (w *world) isExcused(path string) bool {
	for _, t := range w.troubles {
		ended := t.ended
		if ended.IsZero() {
			ended = time.Now()
		}
		isLong := ended.Sub(t.begun) > lossPatience
		isFront := path == "/" && t.kind == "gone"
		if (t.isBelieved || isLong || isFront) && time.Since(ended) < failPatience {
			return true
		}
	}
	return false
}
