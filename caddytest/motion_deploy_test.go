package caddytest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// deployed is a site of which all files are written anew, one by one.
type deployed struct {
	*restartable
	host, folder string
	rand         *rand.Rand
	template     template
	texts        []text

	before map[string]string   // dates before the deployment, by path
	also   map[string][]string // dates that are true besides, for pages that have changed or are new
	now    map[string]bool     // pages that are listed, at the end
	isSeen atomic.Bool         // the sitemap was sampled
	wrong  failures
}

// deployedPages is how many pages such a site has.
const deployedPages = 60

// stillWatched is for how long dates are judged once a deployment has ended: until they are decided, and a little longer.
const stillWatched = quiet + quiet/8

// sites is the Caddyfile of hosts, each with a folder of its name.
func sites(hosts ...string) string {
	var b strings.Builder
	for _, host := range hosts {
		fmt.Fprintf(&b, "http://%s.localhost:{port} {\n root * {dir}/%s\n sitemap {\n refresh 3s\n }\n file_server\n}\n", host, host)
	}
	return b.String()
}

func pageName(i int) string { return fmt.Sprintf("/page-%02d.html", i) }

// newDeployed makes the files of a site. Some of its pages declare dates.
func newDeployed(s *restartable, folder string, declares func(i int) string) *deployed {
	s.T.Helper()
	d := &deployed{
		restartable: s,
		host:        folder + ".localhost:{port}",
		folder:      folder,
		rand:        rand.New(rand.NewPCG(3, 4)),
		template:    firstTemplate,
		before:      make(map[string]string),
		also:        make(map[string][]string),
		now:         make(map[string]bool),
	}
	for i := range deployedPages {
		x := newText(d.rand, pageName(i))
		x.declares = declares(i)
		d.texts = append(d.texts, x)
		s.Put(folder+pageName(i), d.template.html(x), longAgo(i))
		d.before[pageName(i)] = harness.Stamp(longAgo(i))
		d.now[pageName(i)] = true
	}
	return d
}

// dates are those that are served now; nil: none are.
func (d *deployed) dates() map[string]string {
	dates, err := d.served(d.host, "http://"+d.host)
	if err != nil {
		return nil
	}
	return dates
}

// begin starts Caddy, waits until all pages are dated, and has each date judged that is served from then on, until it is stopped.
func (d *deployed) begin() (stop func()) {
	d.T.Helper()
	d.start()
	d.Eventually(func() bool { return maps.Equal(d.dates(), d.before) }, func() string {
		return fmt.Sprintf("%s, at first: got %v, want %v\n%s", d.folder, d.dates(), d.before, d.SitemapLog())
	})
	return sampled(d.T, func() { d.judge(d.dates()) })
}

// judge reports false dates. It is called while nothing else is done with d.
func (d *deployed) judge(dates map[string]string) {
	for path, date := range dates {
		d.isSeen.Store(true)
		if date != d.before[path] && !slices.Contains(d.also[path], date) {
			d.wrong.add("%s%s has the date %q, had %q, and %q are true as well", d.folder, path, date, d.before[path], d.also[path])
		}
	}
}

// write writes a page anew, with the template of now.
func (d *deployed) write(i int) {
	d.T.Helper()
	d.WriteRaw(d.folder+pageName(i), d.template.html(d.texts[i]))
	if len(d.also[pageName(i)]) > 0 {
		d.allowTime(pageName(i))
	}
}

// allowTime lets a page that is new, or whose text has changed, have the time of its file.
func (d *deployed) allowTime(path string) {
	d.T.Helper()
	info, err := os.Stat(filepath.Join(d.Dir, d.folder, path))
	harness.Must(d.T, err)
	d.also[path] = append(d.also[path], harness.Stamp(info.ModTime()))
}

// deploy writes all pages, at a pace at which it takes some time, and calls a function before each.
func (d *deployed) deploy(lasts time.Duration, before func(i int)) {
	d.T.Helper()
	d.template = d.template.next()
	begun := time.Now()
	for i := range deployedPages {
		before(i)
		if d.now[pageName(i)] {
			d.write(i)
		}
		d.until(begun.Add(lasts * time.Duration(i+1) / deployedPages))
	}
}

// wantDated waits until a page has one of the dates that are true once the deployment is over.
func (d *deployed) wantDated(path string, want ...string) {
	d.T.Helper()
	d.within(datePatience, func() bool { return slices.Contains(want, d.dates()[path]) }, func() string {
		return fmt.Sprintf("%s%s has the date %q, want one of %q\n%s", d.folder, path, d.dates()[path], want, d.SitemapLog())
	})
}

// wantKept reports false dates that were served at any moment, pages that do not have the date any more that they had, save some, and
// pages that are not listed.
func (d *deployed) wantKept(changed ...string) {
	d.T.Helper()
	if !d.isSeen.Load() {
		d.T.Error("no sample was taken")
	}
	d.wrong.report(d.T)
	dates := d.dates()
	for path := range d.now {
		date, isListed := dates[path]
		isKept := date == d.before[path] || slices.Contains(changed, path)
		if !isListed || !isKept {
			d.T.Errorf("%s%s: listed %t, with the date %q, had %q", d.folder, path, isListed, date, d.before[path])
		}
	}
}

// TestSlowDeployment: 60 files are written anew, one after another. No false date is served, at any moment. Pages that are new or
// removed meanwhile show at once, corrections have the time of their files.
func TestSlowDeployment(t *testing.T) {
	const (
		declaring = 25 // page that is corrected, and declares a date
		stamped   = 30 // page that declares when it was built, and
		restamped = 31 // one that did so before
		oldStamp  = "2021-03-04T05:06:07Z"
		declared  = "2026-01-02T03:04:05Z"
		added     = "/added.html"
		removed   = 50
	)
	corrected := []int{5, declaring, 45}
	s := prepareRestartable(t, sites("plain"))
	d := newDeployed(s, "plain", func(i int) string {
		if i == restamped {
			return oldStamp
		}
		return ""
	})
	d.before[pageName(restamped)] = oldStamp
	begun := time.Now()
	for _, i := range corrected {
		d.also[pageName(i)] = days(begun)
	}
	d.also[added] = append(days(begun), "")
	stop := d.begin()
	d.deploy(quiet/4, func(i int) {
		switch i {
		case 20:
			s.WriteRaw(d.folder+added, d.template.html(newText(d.rand, "added")))
			d.allowTime(added)
			harness.Must(t, os.Remove(filepath.Join(s.Dir, d.folder, pageName(removed))))
			delete(d.now, pageName(removed))
		case stamped, restamped:
			d.texts[i].declares = time.Now().UTC().Format(time.RFC3339)
		case declaring:
			d.texts[i].declares = declared
		}
		if slices.Contains(corrected, i) {
			d.texts[i] = d.texts[i].corrected(d.rand)
		}
	})
	ended := time.Now()
	s.Eventually(func() bool {
		dates := d.dates()
		_, isAdded := dates[added]
		_, isRemoved := dates[pageName(removed)]
		return isAdded && !isRemoved
	}, func() string { return fmt.Sprintf("amid the deployment, got %v\n%s", d.dates(), s.SitemapLog()) })
	if time.Since(ended) >= quiet {
		t.Errorf("new pages and removals show only once the deployment is over")
	}
	if got := s.explain("http://" + d.host + added); !strings.Contains(got, "not decided yet") {
		t.Errorf("explain says:\n%s", got)
	}
	d.wantDated(pageName(5), d.also[pageName(5)]...)
	if took := time.Since(ended); took < quiet-3*time.Second {
		t.Errorf("a correction is dated after %s without a change", took)
	}
	d.wantDated(pageName(45), d.also[pageName(45)]...)
	d.wantDated(pageName(declaring), d.also[pageName(declaring)]...)
	s.until(ended.Add(stillWatched))
	stop()
	d.wantKept(pageName(5), pageName(declaring), pageName(45))
}

// TestStampedDeployment: all pages declare when they were built. Those dates are never served, also while half of the pages have
// that of the build before.
func TestStampedDeployment(t *testing.T) {
	const corrected = 15
	s := prepareRestartable(t, sites("stamped"))
	d := newDeployed(s, "stamped", func(i int) string { return fmt.Sprintf("2025-02-03T04:05:%02dZ", i) })
	begun := time.Now()
	d.also[pageName(corrected)] = days(begun)
	stop := d.begin()
	d.deploy(quiet/4, func(i int) {
		d.texts[i].declares = time.Now().UTC().Format(time.RFC3339)
		if i == corrected {
			d.texts[i] = d.texts[i].corrected(d.rand)
		}
	})
	ended := time.Now()
	d.wantDated(pageName(corrected), d.also[pageName(corrected)]...)
	s.until(ended.Add(stillWatched))
	stop()
	d.wantKept(pageName(corrected))
}

// TestKilledAmidDeployment: a Caddy that starts anew amid a deployment knows that one is under way, and what has changed before.
func TestKilledAmidDeployment(t *testing.T) {
	const early, late = 8, 52 // pages that are corrected
	s := prepareRestartable(t, sites("killed"))
	d := newDeployed(s, "killed", func(int) string { return "" })
	begun := time.Now()
	for _, i := range []int{early, late} {
		d.also[pageName(i)] = days(begun)
	}
	stop := d.begin()
	d.deploy(quiet/4, func(i int) {
		if i == early || i == late {
			d.texts[i] = d.texts[i].corrected(d.rand)
		}
		if i == 30 {
			s.child.Kill()
			s.start()
		}
	})
	ended := time.Now()
	d.wantDated(pageName(early), d.also[pageName(early)]...)
	d.wantDated(pageName(late), d.also[pageName(late)]...)
	s.until(ended.Add(stillWatched))
	stop()
	d.wantKept(pageName(early), pageName(late))
}
