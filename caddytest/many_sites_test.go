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

const namedShops = 60

// startMany runs many named sites, of which one fails and one lists nothing, and some that only visitors name. All of them
// have been refreshed.
func startMany(t *testing.T) *server {
	t.Helper()
	s := prepareWithAdmin(t, nil)
	var hosts []string
	for i := range namedShops {
		shop := fmt.Sprintf("shop-%02d", i)
		hosts = append(hosts, "http://"+shop+".example:{port}")
		if i > 0 { // the first one has no files
			s.Write(map[string]string{shop + "/index.html": harness.HTML(shop), shop + "/page.html": harness.HTML("page")})
		}
	}
	s.Write(map[string]string{"red/index.html": harness.HTML("red"), "blue/index.html": harness.HTML("blue")})
	// Nothing watches the file system, so that none is refreshed by itself once it was.
	s.Load("{\n metrics\n filesystem shops test_hooked {dir}\n}\n" + strings.Join(hosts, ", ") + " {\n root {labels.1}\n fs shops\n sitemap {\n refresh 1h\n }\n file_server\n}\n" +
		"http://failing.example:{port} {\n route {\n respond /sitemap.xml 502\n sitemap\n }\n}\n" +
		"http://*.tenants.example:{port} {\n root {labels.2}\n fs shops\n sitemap\n file_server\n}")
	for _, tenant := range []string{"red", "blue", "made-up"} {
		s.Get("http://" + tenant + ".tenants.example:{port}/sitemap.xml")
	}
	s.Eventually(func() bool {
		all := s.statuses(http.MethodGet, "/sitemap/sites")
		return len(all) == namedShops+4 && !slices.ContainsFunc(all, isSettling)
	}, s.SitemapLog)
	return s
}

// isSettling reports whether a site was not refreshed yet, or is being refreshed.
func isSettling(st status) bool { return st.LastRefresh == nil || st.Refreshing != nil }

// TestManySites: among many sites, an operator sees those with a problem, and names one by a part of its URL.
func TestManySites(t *testing.T) {
	s := startMany(t)
	r := s.command("status")
	r.want(t, 1, nil, []string{s.Expand("2 sites have a problem; http://failing.example:{port}: the last refresh failed: ")},
		`problem +the last refresh failed: `, `problem +source 1 \(files\) could not be read: .*shop-00`)
	lines := strings.Split(r.stdout, "\n")
	const summary = "sites: 64, pages: 120, problems: 2"
	isSorted := strings.Index(r.stdout, "failing.example") < strings.Index(r.stdout, "shop-00.example")
	isCounted := lines[0] == summary && strings.HasPrefix(lines[len(lines)-2], "not shown: 62 sites; --site shows one, ")
	if !isCounted || strings.Count(r.stdout, "\nsites\n") != 2 || !isSorted {
		t.Errorf("got\n%s\nwant %s, two sites, and how many are not shown", r.stdout, summary)
	}
	if size := len(r.stdout); size > 3000 {
		t.Errorf("%d bytes are printed for two sites", size)
	}

	var all struct {
		Summary struct {
			Sites, Pages, Problems int
		}
		Sites []struct{ Site, Problem string }
	}
	asJSON := s.command("status", "--json")
	if err := json.Unmarshal([]byte(asJSON.stdout), &all); err != nil || len(all.Sites) != 64 || asJSON.status != 1 {
		t.Errorf("--json: got %d sites, %v, status %d", len(all.Sites), err, asJSON.status)
	}
	isRight := all.Summary.Sites == 64 && all.Summary.Pages == 120 && all.Summary.Problems == 2
	if !isRight || all.Sites[1].Problem == "" || all.Sites[2].Problem != "" {
		t.Errorf("--json: got %v, %v", all.Summary, all.Sites)
	}

	s.command("status", "--site", "shop-01").want(t, 0, nil, nil, `^sites\n +site +http://shop-01\.example:`)
	if got := s.statuses(http.MethodGet, "/sitemap/sites?site=blue.tenants"); len(got) != 1 {
		t.Errorf("the API has %d sites, want one", len(got))
	}
	s.command("status", "--site", "shpo-").want(t, 1, nil, []string{"no site has a URL with 'shpo-'; sites: http://blue.tenants.example:", ", and 54 more"})
	s.command("status", "--site", "shop-1").want(t, 1, nil, []string{"'shop-1' is part of the URLs of several sites; sites: http://shop-10.example:", "http://shop-19.example:"})
}

// TestManySitesExplain explains a path of a site.
func TestManySitesExplain(t *testing.T) {
	s := startMany(t)
	s.command("explain", "--site", "shop-17", "/page.html").want(t, 0, nil, nil, `^url +http://shop-17\.example:\d+/page\.html\n`, `\nlisted +true\n`)
}

// TestManySitesRefresh refreshes the site that is named, and no others.
func TestManySitesRefresh(t *testing.T) {
	s := startMany(t)
	type refreshed struct {
		Site        string
		LastRefresh struct{ At string } `json:"last_refresh"`
	}
	sites := func() (all struct{ Sites []refreshed }) {
		harness.Must(t, json.Unmarshal([]byte(s.Get(api+"/sitemap/sites").Text), &all))
		return all
	}
	before := make(map[string]string)
	for _, st := range sites().Sites {
		before[st.Site] = st.LastRefresh.At
	}
	var others []string
	s.Eventually(func() bool { // the time of a refresh is that of its second
		s.command("refresh", "--site", "shop-17").want(t, 0, nil, nil, `\n +pages +2\n`)
		isRefreshed := false
		others = nil
		for _, st := range sites().Sites {
			isMeant := strings.HasPrefix(st.Site, "http://shop-17")
			isChanged := st.LastRefresh.At != before[st.Site]
			isRefreshed = isRefreshed || isMeant && isChanged
			if isChanged && strings.HasPrefix(st.Site, "http://shop-") && !isMeant {
				others = append(others, st.Site)
			}
		}
		return isRefreshed
	}, s.SitemapLog)
	if len(others) > 0 {
		t.Errorf("other sites were refreshed: %q\n%s", others, s.SitemapLog())
	}
	s.command("refresh", "--site", "http://shop-17", "--fetch").want(t, 0, nil, nil, `\n +pages +2\n`, `\n +pages due +0\n`)
}

// TestManySitesMetrics: each named site has one value of the label site, and all others have one in common.
func TestManySitesMetrics(t *testing.T) {
	s := startMany(t)
	for i := range 100 {
		s.Get(fmt.Sprintf("http://made-up-%d.tenants.example:{port}/robots.txt", i))
	}
	want := map[string]bool{"visitors": true, s.Expand("failing.example:{port}"): true}
	for i := range namedShops {
		want[s.Expand(fmt.Sprintf("shop-%02d.example:{port}", i))] = true
	}
	for name, family := range s.families(api + "/metrics") {
		series := make(map[string]int)
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "site" {
					series[l.GetValue()]++
				}
				if strings.Contains(l.GetValue(), "tenants") {
					t.Errorf("%s has the label %s=%q", name, l.GetName(), l.GetValue())
				}
			}
		}
		for site := range series {
			if !want[site] {
				t.Errorf("%s has a site %q", name, site)
			}
		}
		if name == "caddy_sitemap_pages" && len(series) != len(want) {
			t.Errorf("%s has %d sites, want %d", name, len(series), len(want))
		}
		if len(family.GetMetric()) > len(want) {
			t.Errorf("%s has %d series", name, len(family.GetMetric()))
		}
	}
}
