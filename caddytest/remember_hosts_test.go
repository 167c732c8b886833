package caddytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// platform is a Caddy process whose tenants only visitors name: each has a folder of its own.
type platform struct {
	*server
	caddyfile string
	child     *harness.Child
}

func startPlatform(t *testing.T, options, hosts string) *platform {
	t.Helper()
	p := &platform{server: &server{harness.PrepareChildren(t, map[string]string{
		"often/index.html":  harness.HTML("often"),
		"often/page.html":   harness.HTML("page"),
		"more/index.html":   harness.HTML("more"),
		"seldom/index.html": harness.HTML("seldom"),
	})}}
	p.OpenAdmin()
	p.configure(options, hosts)
	p.start()
	return p
}

// configure sets the options of the sitemap app, and the hosts of the platform.
func (p *platform) configure(options, hosts string) {
	p.caddyfile = "{\n sitemap {\n state {dir}/state\n " + options + "\n }\n}\n" + hosts + " {\n root {dir}/{labels.1}\n sitemap\n file_server\n}"
}

// start starts the process, and waits until it responds. No tenant is requested.
func (p *platform) start() {
	p.T.Helper()
	p.child = p.Child(p.caddyfile)
	p.Eventually(func() bool {
		_, err := p.Try(http.MethodGet, api+"/config/")
		return err == nil
	}, func() string { return "no answer\n" + p.child.Output() + p.SitemapLog() })
}

func (p *platform) stop() {
	p.T.Helper()
	if err := p.child.Stop(); err != nil {
		p.T.Errorf("stopping: %v\n%s", err, p.child.Output())
	}
}

// sites are the hosts of all sites, with the number of their pages.
func (p *platform) sites() string {
	p.T.Helper()
	var all struct{ Sites []status }
	r, err := p.Try(http.MethodGet, api+"/sitemap/sites")
	if err == nil {
		err = json.Unmarshal([]byte(r.Text), &all)
	}
	harness.Must(p.T, err)
	var hosts []string
	for _, st := range all.Sites {
		host, _, _ := strings.Cut(strings.TrimPrefix(st.Site, "http://"), ".")
		hosts = append(hosts, fmt.Sprint(host, ":", st.Pages))
	}
	slices.Sort(hosts)
	return strings.Join(hosts, " ")
}

// wantSites waits for these sites, though nobody requests them.
func (p *platform) wantSites(want string) {
	p.T.Helper()
	got := ""
	p.Eventually(func() bool {
		got = p.sites()
		return got == want
	}, func() string { return fmt.Sprintf("got sites %q, want %q\n%s", got, want, p.SitemapLog()) })
}

// visit requests the sitemap of a tenant so many times.
func (p *platform) visit(host string, times int) {
	p.T.Helper()
	for range times {
		p.Get("http://" + host + ".example:{port}/sitemap.xml")
	}
}

// stored is what the state folder has of visitors' hosts.
func (p *platform) stored() string { return read(p.T, p.Dir, "state", "hosts.json") }

// wantStored wants just these hosts in the state folder, in order.
func (p *platform) wantStored(want ...string) {
	p.T.Helper()
	var all struct{ Hosts []struct{ Site string } }
	var got []string
	err := json.Unmarshal([]byte(p.stored()), &all)
	for _, host := range all.Hosts {
		name, _, _ := strings.Cut(strings.TrimPrefix(host.Site, "http://"), ".")
		got = append(got, name)
	}
	if err != nil || !slices.Equal(got, want) {
		p.T.Errorf("%v: got %q, want %q: %s", err, got, want, p.stored())
	}
}

const anyHost = "http://*.example:{port}"

// TestRememberHosts: after a restart, the tenants that were requested most have sitemaps before anybody requests them.
func TestRememberHosts(t *testing.T) {
	p := startPlatform(t, "remember_hosts 2", anyHost)
	p.visit("seldom", 1)
	p.visit("often", 9)
	p.visit("more", 5)
	p.visit("made-up", 20) // which lists nothing
	p.wantSites("made-up:0 more:1 often:2 seldom:1")
	p.stop()
	p.wantStored("often", "more")

	p.start()
	p.wantSites("more:1 often:2")
	p.child.Kill()

	// A process that is killed has lost nothing of it. Named hosts are not remembered, nor those that are gone.
	p.configure("remember_hosts 2", "http://often.example:{port}, "+anyHost)
	p.start()
	p.wantSites("more:1 often:2")
	p.visit("seldom", 1)
	p.wantSites("more:1 often:2 seldom:1")
	p.stop()
	p.wantStored("more", "seldom")

	p.configure("remember_hosts 2", "http://*.other.example:{port}")
	// A process that ends before it has read the names, which nothing shows here, forgets none.
	for try := 0; try < 10 && strings.Contains(p.stored(), "more.example"); try++ {
		p.start()
		p.wantSites("")
		p.stop()
	}
	p.wantStored()
	if lines := p.LogLines(`"level":"warn"`, "remember"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}
}

// TestRememberNowhere: without a folder for the state, nothing of visitors' hosts is remembered, which is a warning.
func TestRememberNowhere(t *testing.T) {
	p := startPlatform(t, "", anyHost)
	p.visit("often", 3)
	p.stop()
	if p.stored() != "" {
		t.Errorf("by default, hosts are stored: %s", p.stored())
	}
	p.configure("state off\n remember_hosts 10", anyHost)
	p.caddyfile = strings.Replace(p.caddyfile, "state {dir}/state\n", "", 1)
	p.start()
	p.visit("often", 3)
	p.stop()
	if len(p.LogLines(`"level":"warn"`, "'remember_hosts' has no effect")) != 1 {
		t.Errorf("no warning: %s", p.SitemapLog())
	}
}

// TestRememberHostsDamaged begins anew where the file is damaged, and says so once.
func TestRememberHostsDamaged(t *testing.T) {
	p := startPlatform(t, "remember_hosts 10", anyHost)
	p.visit("often", 1)
	p.stop()
	write(t, p.Dir, map[string]string{"state/hosts.json": p.stored()[:20]})
	p.start()
	p.Eventually(func() bool { return len(p.LogLines("the remembered hosts are damaged")) == 1 }, p.SitemapLog)
	p.visit("more", 1)
	p.stop()
	p.wantStored("more")
}

// TestRememberHostsReload goes on counting after a reload, whose configuration alone stores what is counted.
func TestRememberHostsReload(t *testing.T) {
	s := prepareWithAdmin(t, map[string]string{"often/index.html": harness.HTML("often"), "more/index.html": harness.HTML("more")})
	p := &platform{server: s}
	p.configure("remember_hosts 1", anyHost)
	p.Load(p.caddyfile)
	p.visit("often", 5)
	p.visit("more", 2)
	p.wantSites("more:1 often:1")
	p.Reload(p.caddyfile)
	p.visit("more", 4)
	p.visit("often", 2)
	p.Stop()
	p.wantStored("often")
	p.Load(p.caddyfile)
	p.wantSites("often:1")
	p.configure("", anyHost)
	p.Reload(p.caddyfile)
	p.Eventually(func() bool { return p.stored() == "" }, p.stored)
	p.Stop()
	if p.stored() != "" {
		t.Errorf("the configuration before has stored %s", p.stored())
	}
}
