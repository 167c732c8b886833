package caddytest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// defaultSoak is long enough for most of what a soak does, each once.
const defaultSoak = 8 * time.Second

var (
	soakTime = flag.Duration("soak", defaultSoak, "for how long TestSoak changes files")
	soakSeed = flag.Uint64("seed", 0, "seed of TestSoak; 0: a random one")
)

// soakInterval is the interval of the site. Its changes show as soon as the system tells of them, or else by the interval.
func soakInterval() time.Duration {
	switch {
	case runtime.GOOS != "linux":
		return 5 * time.Second
	case *soakTime > defaultSoak:
		return longestLag + 5*time.Second // what the system does not tell of is too late
	}
	return quiet / 2 // a deployment is not over before two intervals are
}

// soakQuiet is for how long nothing changes until a deployment is over.
func soakQuiet() time.Duration { return max(quiet, 2*soakInterval()) }

func soakCaddyfile() string {
	return fmt.Sprintf("%s {\n root * {dir}/current\n sitemap {\n refresh %s\n }\n file_server\n}", harness.Local, soakInterval())
}

// soak changes a site at random while Caddy serves it.
type soak struct {
	*restartable
	*diskSite
	rand  *rand.Rand
	until time.Time
}

// TestSoak changes a site at random, kills and reloads Caddy, and has each sample of the sitemap judged by an oracle: what exists
// is listed, soon, and no date is false, at any moment.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed) // also where it does not come to its end
	s := &soak{restartable: prepareRestartable(t, soakCaddyfile()), rand: rand.New(rand.NewPCG(seed, 0))}
	s.diskSite = newDiskSite(t, s.Dir, s.rand, 15, 20)
	s.start()
	s.Eventually(func() bool { return s.isComplete(true) && s.isStored() }, s.SitemapLog)
	s.oracle.isUp(time.Now())
	stop := sampled(t, func() {
		at := time.Now()
		dates, err := s.dates()
		s.oracle.judge(at, dates, err)
	})
	s.until = time.Now().Add(*soakTime)
	for phase := 0; time.Now().Before(s.until); phase++ {
		if phase%2 == 0 {
			s.busy()
		} else {
			s.calm()
		}
		if time.Now().Before(s.until) {
			s.rest()
		}
	}
	changed := time.Now()
	s.restartable.until(changed.Add(soakQuiet() + quiet/8))
	s.within(datePatience, func() bool { return s.isComplete(false) }, func() string {
		dates, err := s.dates()
		return fmt.Sprintf("seed %d: at the end, got %q (%v), want %q\n%s", seed, pathsOf(dates), err, s.oracle.existing(), s.SitemapLog())
	})
	s.wantDated("corrections of deployments", s.corrections)
	s.wantDated("edits", s.edits)
	stop()
	t.Logf("seed %d: the longest difference between what is listed and what exists was %s", seed, s.oracle.longest)
	problems, counts := s.oracle.first()
	for what, n := range counts {
		t.Errorf("seed %d: %s: %d", seed, what, n)
	}
	for _, p := range problems {
		t.Errorf("%s: %s %s: %s\n%s", p.at.UTC().Format("15:04:05.000"), p.kind, p.path, p.text, s.oracle.describe(p.path))
	}
	s.printLog(problems)
}

func (s *soak) dates() (map[string]string, error) { return s.served("localhost:{port}", harness.Local) }

// isComplete reports whether all pages that exist are listed, and no other. At first, they are to have dates as well.
func (s *soak) isComplete(withDates bool) bool {
	dates, err := s.dates()
	if err != nil || !slices.Equal(pathsOf(dates), s.oracle.existing()) {
		return false
	}
	for _, date := range dates {
		if withDates && date == "" {
			return false
		}
	}
	return true
}

// isStored reports whether what is served is in the state, as a process that is killed before it is loses it.
func (s *soak) isStored() bool {
	documents, err := tryCommitted(s.Dir)
	served := s.Get(harness.Local + "/sitemap.xml").Text
	return err == nil && slices.Contains(slices.Collect(maps.Values(documents)), served)
}

// wantDated waits until nearly all changes have a date.
func (s *soak) wantDated(what string, changes []correction) {
	s.T.Helper()
	var counted, dated int
	var missing []correction
	s.within(datePatience, func() bool {
		counted, dated, missing = s.datedOf(changes)
		return 20*dated >= 18*counted
	}, func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %d of %d have a date of theirs:\n", what, dated, counted)
		for _, c := range missing {
			fmt.Fprintf(&b, "changed at %s\n%s\n%s\n", c.at.UTC(), s.oracle.describe(c.path), s.explain(harness.Local+c.path))
		}
		return b.String()
	})
	s.T.Logf("%s: %d of %d have a date of theirs", what, dated, counted)
}

// datedOf counts the changes of pages that were there before, are still, and were not changed again, and those of them that have a
// date. It describes the others.
func (s *soak) datedOf(changes []correction) (counted, dated int, missing []correction) {
	s.T.Helper()
	dates, err := s.dates()
	harness.Must(s.T, err)
	for _, c := range changes {
		isThere := slices.Contains(s.files, c.file) && c.file.path() == c.path
		last := c.file.moments[len(c.file.moments)-1]
		if !isThere || !last.at.Equal(c.at) || !s.oracle.isSettled(c.path, c.at) {
			continue
		}
		counted++
		if dates[c.path] >= day(c.at) {
			dated++
			continue
		}
		missing = append(missing, c)
	}
	return counted, dated, missing
}

// busy does one of everything, and several of what is frequent, in a random order.
func (s *soak) busy() {
	var actions []func()
	add := func(n int, action func()) {
		for range n {
			actions = append(actions, action)
		}
	}
	add(3, s.create)
	add(6, s.edit)
	add(2, s.remove)
	add(2, s.rename)
	add(1, s.moveFolder)
	add(1, s.swapFolders)
	add(1, s.copyFolder)
	add(1, s.removeFolder)
	add(3, s.touch)
	add(3, s.writeLog)
	add(1, s.release)
	add(1, s.redeployed)
	add(1, s.killed)
	add(1, s.reloaded)
	s.rand.Shuffle(len(actions), func(i, j int) { actions[i], actions[j] = actions[j], actions[i] })
	for _, action := range actions {
		if time.Now().After(s.until) {
			return
		}
		action()
		s.pause(quiet / 32)
	}
}

// calm does what an editor does.
func (s *soak) calm() {
	for range 1 + s.rand.IntN(6) {
		s.small()()
		s.pause(quiet / 4)
	}
}

// small is an action that concerns one page.
func (s *soak) small() func() {
	return pick(s.rand, []func(){s.create, s.edit, s.edit, s.edit, s.remove, s.rename, s.touch, s.writeLog})
}

// rest is a time without changes: too short for dates to be decided, or long enough for those of edits, or for all.
func (s *soak) rest() {
	rest := pick(s.rand, []time.Duration{quiet / 8, quiet/4 + 10*time.Second, soakQuiet() + 20*time.Second, soakQuiet() + 20*time.Second})
	ends := time.Now().Add(rest)
	if ends.After(s.until) {
		ends = s.until
	}
	s.restartable.until(ends)
}

func (s *soak) pause(most time.Duration) {
	time.Sleep(time.Duration(s.rand.Int64N(int64(most))))
}

// redeployed is a deployment in the place of the files, amid which other things happen.
func (s *soak) redeployed() {
	lasts := min(5*time.Second+time.Duration(s.rand.Int64N(int64(quiet))), *soakTime/4)
	kills := s.rand.IntN(2) == 0
	s.redeploy(lasts, func(done, of int) {
		if kills && done == of/3 {
			s.killed()
		}
		if s.rand.IntN(40) == 0 {
			s.small()()
		}
	})
}

// killed ends Caddy as kill -9 does, and starts it again, maybe after more has happened.
func (s *soak) killed() {
	s.oracle.everywhere("Caddy is killed", time.Now())
	s.oracle.isUp(time.Time{})
	s.child.Kill()
	for range s.rand.IntN(3) {
		s.small()()
	}
	s.start()
	s.oracle.isUp(time.Now())
	s.oracle.everywhere("Caddy has started", time.Now())
}

// reloaded has Caddy load its configuration anew.
func (s *soak) reloaded() {
	s.T.Helper()
	config, err := s.Adapt(s.caddyfile)
	harness.Must(s.T, err)
	url := s.Expand("http://localhost:{admin}/load")
	request, err := http.NewRequestWithContext(s.T.Context(), http.MethodPost, url, bytes.NewReader(config))
	harness.Must(s.T, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Cache-Control", "must-revalidate")
	response, err := harness.Client.Do(request)
	harness.Must(s.T, err)
	harness.Must(s.T, response.Body.Close())
	if response.StatusCode != http.StatusOK {
		s.T.Fatalf("a reload has status %d", response.StatusCode)
	}
	s.oracle.everywhere("a reload", time.Now())
}

// printLog prints what Caddy has logged of the sitemap, and of the page, shortly before each problem.
func (s *soak) printLog(problems []problem) {
	if len(problems) == 0 {
		return
	}
	data, err := os.ReadFile(s.Log)
	harness.Must(s.T, err)
	for line := range bytes.Lines(data) {
		var entry struct {
			Logger string
			TS     float64
		}
		if json.Unmarshal(line, &entry) != nil {
			continue
		}
		at := time.UnixMilli(int64(entry.TS * 1000))
		isOurs := strings.HasPrefix(entry.Logger, "http.handlers.sitemap")
		isAbout := slices.ContainsFunc(problems, func(p problem) bool {
			isNear := at.After(p.at.Add(-30*time.Second)) && at.Before(p.at.Add(time.Second))
			return isNear && (isOurs || p.path != "" && bytes.Contains(line, []byte(p.path)))
		})
		if isAbout {
			s.T.Logf("%s %s", at.UTC().Format("15:04:05.000"), line)
		}
	}
}
