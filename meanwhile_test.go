package sitemap

import (
	"net/http"
	"testing"
	"time"
)

// TestDueMeanwhile: while a refresh is under way, the site is due an interval after its begin, so that clients may keep what
// is published in parts.
func TestDueMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.handler.settings.interval = 10 * time.Minute
		b.lists(numbered(100)...)
		fast := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(time.Second)
			return fast(w, r)
		}
		s := b.site("named.example")
		begun := time.Now()
		go s.run()
		time.Sleep(20 * time.Second)
		if due := s.schedule.Due().Sub(begun); !s.schedule.IsRunning() || due != 10*time.Minute {
			t.Errorf("it is due %s after its begin", due)
		}
		time.Sleep(10 * time.Minute)
	})
}
