package sitemap

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
)

// TestPrivateSite: what only visitors with a client certificate can read is not announced, and log and status say why.
func TestPrivateSite(t *testing.T) {
	const site = " {\n root * /srv\n sitemap\n file_server\n tls internal {\n %s\n }\n}\n"
	var caddyfile string
	for host, mode := range map[string]string{"open": "", "required": "mode require", "verified": "mode require_and_verify", "asked": "mode request"} {
		clients := ""
		if mode != "" {
			clients = "client_auth {\n " + mode + "\n }"
		}
		caddyfile += "https://" + host + ".example:9443" + fmt.Sprintf(site, clients)
	}
	server := serverOf(t, caddyfile, "Caddyfile", ":9443")
	f := &serverFetcher{server: server, port: 9443, tls: server.TLSConnPolicies.TLSConfig(emptyContext(t))}
	for host, want := range map[string]bool{"open.example": false, "required.example": true, "verified.example": true, "asked.example": false, "other.example": false} {
		if got := f.needsCertificate(host); got != want {
			t.Errorf("%s needs a certificate: %t, want %t", host, got, want)
		}
	}
	for name, test := range map[string]struct {
		host      string
		scheme    string
		trusts    bool // a proxy
		configure func(*Handler)
		want      bool
	}{
		"required":            {"required.example", "https", false, nil, true},
		"open":                {"open.example", "https", false, nil, false},
		"by http":             {"required.example", "http", false, nil, false},
		"of a proxy":          {"required.example", "https", true, nil, false},
		"nothing to announce": {"required.example", "https", false, func(h *Handler) { h.IndexNow = nil }, false},
	} {
		b := newBench(t, func(h *Handler) {
			h.IndexNow = new(IndexNow)
			h.listener = address{scheme: test.scheme}
			h.mounts = mounts{{hosts: []string{test.host}}}
			h.server.TrustedProxiesUnix = test.trusts
			if test.configure != nil {
				test.configure(h)
			}
		})
		b.app.fetchers[b.handler.server].tls = f.tls
		b.app.serving = make(chan struct{})
		s := b.site(test.host)
		s.cancel() // it announces nothing in this test
		s.runAnnouncements()
		logged := b.logged("changes are not announced: "+whyUnannounced) == 1
		if st := s.status(); logged != test.want || (st.NotAnnounced != "") != test.want || s.announces() && test.want {
			t.Errorf("%s: logged %t, status %q, announces: %t", name, logged, st.NotAnnounced, s.announces())
		}
	}
}

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
