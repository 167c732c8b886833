package sitemap

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
)

// TestAnnounced: each announcement is counted and emitted; accepted ones are logged, and each problem once.
func TestAnnounced(t *testing.T) {
	b := newBench(t, nil)
	s, target := b.site("named.example"), announce.Status{Target: announce.Target{Kind: announce.IndexNow, URL: announce.DefaultEndpoint}}
	failed, refused := target, target
	failed.Reason, refused.Reason, refused.Stopped = "status 503", "status 422", true
	for i, step := range []struct {
		status                               int
		target                               announce.Status
		result                               string
		urls, accepted, problems, ofThisKind int
	}{
		{202, target, "accepted", 3, 1, 0, 3},
		{503, failed, "failed", 3, 1, 1, 3},
		{503, failed, "failed", 2, 1, 1, 5},
		{200, target, "accepted", 2, 2, 1, 5},
		{503, failed, "failed", 1, 2, 2, 6},
		{422, refused, "refused", 1, 2, 3, 1},
	} {
		before := len(b.app.events.queue)
		s.announced(&announce.Job{URLs: step.urls}, announce.Outcome{Status: step.status}, step.target)
		counted := testutil.ToFloat64(b.app.counts.announced.WithLabelValues("indexnow", step.result))
		if b.logged("changes announced") != step.accepted || b.logged("changes were not announced") != step.problems || int(counted) != step.ofThisKind || len(b.app.events.queue) != before+1 {
			t.Errorf("step %d: %d and %d lines, %v counted, %d events", i, b.logged("changes announced"), b.logged("changes were not announced"), counted, len(b.app.events.queue)-before)
		}
	}
}
