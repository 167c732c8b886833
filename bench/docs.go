package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Of each documentation site, so many pages are taken, and so many are corrected in each deployment.
const (
	docPages       = 400
	docCorrections = 20 // a tenth of the pages of smaller ones
	fewestDocPages = 30
	fewestProse    = 300 // bytes of a paragraph that is corrected
)

// template is what a generator puts around the pages of a site.
type template struct {
	year   int
	stamp  string
	banner string
}

var (
	bodyStart = regexp.MustCompile(`(?i)<body[^>]*>`)
	bodyEnd   = regexp.MustCompile(`(?i)</body>|\z`)
	paragraph = regexp.MustCompile(`(?i)<p(\s[^>]*)?>`)
	canonical = regexp.MustCompile(`(?i)rel="?canonical"?`)
)

// longestParagraph returns where the longest paragraph of a page begins: no menu or footer has it. 0: the page has no prose.
func longestParagraph(page []byte) (at int) {
	longest := fewestProse
	lower := bytes.ToLower(page)
	for _, begin := range paragraph.FindAllIndex(page, -1) {
		size := bytes.Index(lower[begin[1]:], []byte("</p>"))
		if size > longest {
			longest = size
			at = begin[1]
		}
	}
	return at
}

// around returns a page of another site's with this template, and with so many corrections.
func (t template) around(page []byte, i, corrections int) []byte {
	foot := fmt.Sprintf("<div>© %d The authors. <p>Last updated on %s</p></div>", t.year, t.stamp)
	if t.banner != "" {
		head := "<div><p>" + t.banner + "</p></div>"
		if at := bodyStart.FindIndex(page); at != nil {
			page = slices.Concat(page[:at[1]], []byte(head), page[at[1]:])
		}
	}
	if corrections > 0 {
		if at := longestParagraph(page); at > 0 {
			text := fmt.Sprintf("Correction %d of page %d: read %d. ", corrections, i, scramble(i+corrections*docPages)%9973)
			page = slices.Concat(page[:at], []byte(text), page[at:])
		}
	}
	end := bodyEnd.FindIndex(page)
	return slices.Concat(page[:end[0]], []byte(foot), page[end[0]:])
}

// docSite is a documentation site that is deployed again and again.
type docSite struct {
	*moving
	name      string
	root      string
	paths     []string // of its files
	sources   [][]byte
	first     []time.Time
	corrected []int // how often
	changes   [][]time.Time
	template  template
}

// docSites reads the sites in these folders.
func (b *bench) docSites(folders []string) (all []*docSite) {
	for _, folder := range folders {
		s := &docSite{
			moving:   newMoving(filepath.Base(filepath.Dir(folder))+"-"+filepath.Base(folder), newBlog(realTime(), 1, 0, 0)),
			template: template{year: 2025, stamp: "2025-06-01 10:00"},
		}
		s.name = s.moving.name
		s.root = b.path("docs/" + s.name)
		check(os.RemoveAll(s.root))
		check(filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			isPage := strings.HasSuffix(name, ".html") && !strings.HasPrefix(filepath.Base(name), "404")
			if err != nil || !entry.Type().IsRegular() || !isPage || len(s.paths) == docPages {
				return err
			}
			page, err := os.ReadFile(name)
			if err != nil || len(page) > 1<<20 || bodyStart.Find(page) == nil || longestParagraph(page) == 0 {
				return err
			}
			page = canonical.ReplaceAll(page, []byte("rel=former-canonical")) // which is on another site
			rel, err := filepath.Rel(folder, name)
			s.paths = append(s.paths, filepath.ToSlash(rel))
			s.sources = append(s.sources, page)
			return err
		}))
		if len(s.paths) < fewestDocPages {
			b.say("  docs: %s has only %d pages", folder, len(s.paths))
			continue
		}
		n := len(s.paths)
		s.corrected = make([]int, n)
		s.changes = make([][]time.Time, n)
		s.first = make([]time.Time, n)
		for i := range n {
			s.write(i)
			s.first[i] = s.clock.epoch.Truncate(time.Second).AddDate(0, 0, -10-i)
			check(os.Chtimes(filepath.Join(s.root, s.paths[i]), s.first[i], s.first[i]))
		}
		all = append(all, s)
	}
	return all
}

func (s *docSite) write(i int) {
	name := filepath.Join(s.root, s.paths[i])
	page := s.template.around(s.sources[i], i, s.corrected[i])
	check(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, page, 0o644))
}

// url returns the path by which a page is listed.
func (s *docSite) url(i int) string {
	path := "/" + s.paths[i]
	return strings.TrimSuffix(path, "index.html")
}

// deploy writes all pages, some of them corrected, in some time.
func (s *docSite) deploy(ctx context.Context, round int, lasts time.Duration) {
	begun := s.clock.now()
	n := len(s.paths)
	corrections := min(docCorrections, n/10)
	every := n / corrections
	for i := range n {
		if i%every == round%every && i/every < corrections {
			s.corrected[i]++
			s.changes[i] = append(s.changes[i], s.clock.now())
		}
		s.write(i)
		if next := begun.Add(lasts * time.Duration(i) / time.Duration(n)); next.After(s.clock.now()) {
			s.clock.until(ctx, next)
		}
	}
}

// judge counts the listed pages, the false dates among all that were served, and the pages that were corrected and of these, those
// that have a date of a correction.
func (s *docSite) judge(say func(format string, args ...any)) (listed, falseDates, corrected, seen int) {
	s.seen.Lock()
	defer s.seen.Unlock()
	for i := range s.paths {
		if _, isListed := s.listed[s.url(i)]; !isListed {
			continue
		}
		listed++
		isSeen := false
		for _, d := range s.dates[s.url(i)] {
			isOwn := slices.ContainsFunc(s.changes[i], d.follows)
			switch {
			case d.lastmod.Equal(s.first[i]):
			case isOwn:
				isSeen = true
			default:
				say("  docs: %s%s has the false date %s", s.name, s.url(i), d.lastmod)
				falseDates++
			}
		}
		if len(s.changes[i]) == 0 {
			continue
		}
		corrected++
		if isSeen {
			seen++
			continue
		}
		say("  docs: %s%s was corrected and has no date of it", s.name, s.url(i))
	}
	return listed, falseDates, corrected, seen
}

// docRows measure what deployments do to the dates of real documentation: each site is deployed with nothing new, a new year, another
// build time and a banner, at once and over a minute and a half, and pages are corrected in each.
func (b *bench) docRows(ctx context.Context) []*row {
	folders := strings.Split(b.docs, ",")
	if b.docs == "" {
		folders = must(filepath.Glob("/usr/share/doc/*/html"))
	}
	sites := b.docSites(folders)
	if len(sites) == 0 {
		b.say("  docs: no folder with documentation is given or installed")
		return nil
	}
	var config strings.Builder
	addr := freeAddr()
	for i, s := range sites {
		at := addr
		if i > 0 {
			at = freeAddr()
		}
		config.WriteString(site(at, files(s.root, "sitemap")...))
		s.server = &server{addr: at}
	}
	check(os.RemoveAll(b.path("docs-server")))
	server := b.start("docs-server", addr, config.String())
	must(server.first(ctx, server.sitemap()))
	watching, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, s := range sites {
		group.Go(func() {
			for watching.Err() == nil {
				s.look(ctx)
				select {
				case <-time.After(time.Second):
				case <-watching.Done():
				}
			}
		})
	}
	realTime().until(ctx, time.Now().Add(2*time.Minute))
	changes := []func(t *template){
		func(*template) {},
		func(t *template) { t.year++ },
		func(t *template) { t.stamp = time.Now().Format("2006-01-02 15:04:05") },
		func(t *template) { t.banner = "Version 4 was released today: read what is new. " + t.banner },
	}
	round := 0
	for _, lasts := range []time.Duration{time.Second, 90 * time.Second} {
		for _, change := range changes {
			var deploying sync.WaitGroup
			for _, s := range sites {
				change(&s.template)
				deploying.Go(func() { s.deploy(ctx, round, lasts) })
			}
			deploying.Wait()
			realTime().until(ctx, time.Now().Add(150*time.Second))
			round++
			b.say("  docs: deployed %d times (%s)", round, load())
		}
	}
	stop()
	group.Wait()
	var rows []*row
	for _, s := range sites {
		listed, falseDates, corrected, seen := s.judge(b.say)
		if listed == 0 {
			b.say("  docs: %s lists nothing", s.name)
			continue
		}
		share := &row{what: fmt.Sprintf("%s, %d pages, %d deployments: false dates a page and deployment", s.name, listed, round), show: percent, reach: atMost(0.01)}
		share.add(float64(falseDates) / float64(listed*round))
		dated := &row{what: fmt.Sprintf("… of %d pages corrected, dated", corrected), show: percent, reach: atLeast(0.9)}
		dated.add(float64(seen) / float64(max(corrected, 1)))
		rows = append(rows, share, dated)
	}
	return rows
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
