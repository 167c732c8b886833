package visits

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestReadersResults: how a request ended, by the status of its response.
func TestReadersResults(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK:                           "served",
		http.StatusPartialContent:               "served",
		http.StatusMultipleChoices:              "redirected",
		http.StatusPermanentRedirect:            "redirected",
		http.StatusNotModified:                  "not_modified",
		http.StatusBadRequest:                   "refused",
		http.StatusRequestedRangeNotSatisfiable: "refused",
		http.StatusNotFound:                     "missing",
		http.StatusGone:                         "missing",
		http.StatusInternalServerError:          "unavailable",
		http.StatusServiceUnavailable:           "unavailable",
	} {
		var r Readers
		r.Count("", "robots", status, time.Unix(1e9, 0))
		if got := r.List(); len(got) != 1 || got[0].Result != want {
			t.Errorf("%d: got %+v, want %s", status, got, want)
		}
	}
}

// TestReaders: requests of a kind are counted together, and what was requested last comes first.
func TestReaders(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(1e9+seconds, 0).UTC() }
	crawler := classOf("")
	var r, others Readers
	for seconds := range int64(3) {
		r.Count("", "sitemap", http.StatusOK, at(seconds).Add(time.Millisecond))
	}
	r.Count("", "sitemap", http.StatusNotModified, at(4))
	r.Count("", "robots", http.StatusOK, at(2))
	r.Count("", "robots", http.StatusOK, at(1)) // a clock that was set back
	others.Count("", "sitemap", http.StatusOK, at(3))
	others.Count("", "html", http.StatusOK, at(2))
	r.Add(&others)
	want := []Reading{
		{crawler, "sitemap", "not_modified", 1, at(4)},
		{crawler, "sitemap", "served", 4, at(3)},
		{crawler, "robots", "served", 2, at(2)},
		{crawler, "html", "served", 1, at(2)},
	}
	if got := r.List(); !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
