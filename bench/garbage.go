package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

const (
	garbagePages   = 200_000
	garbageMinutes = 24 * 60
	garbageSite    = "example.com-0123456789abcdef"
)

// garbageRows measure what a shared storage keeps of a site one page of which changes each minute, after a day. The nodes
// go by a clock that makes a day in minutes; the storage is Caddy's file storage.
func (b *bench) garbageRows(ctx context.Context) []*row {
	var rows []*row
	for _, day := range []garbageDay{
		{what: "an application, one node", isProxied: true, nodes: 1},
		{what: "an application, List lies, two nodes in turn", isProxied: true, lies: true, nodes: 2},
		{what: "an application, List lies, a node is killed every seven minutes", isProxied: true, lies: true, kills: true, nodes: 1},
		{what: "files, one node", nodes: 1},
	} {
		begun := time.Now()
		w := newGarbageWorld(b.path("garbage"), day)
		w.run(ctx)
		live, stored := w.sizes(ctx)
		kept := &row{what: "200,000 pages, a change a minute: kept in a shared storage after a day, over live: " + day.what, show: bytesOf, reach: atMost(3)}
		kept.add(float64(stored), float64(live))
		rows = append(rows, kept)
		b.say("  garbage, %s: at most %s; written by a change: %v bytes; %d calls a minute; took %s",
			day.what, bytesOf(float64(w.most)), w.perChange(), w.calls/garbageMinutes, time.Since(begun).Round(time.Second))
		check(os.RemoveAll(b.path("garbage")))
	}
	return rows
}

func bytesOf(v float64) string { return fmt.Sprintf("%.1f MB", v/1e6) }

// garbageDay is what happens in a day.
type garbageDay struct {
	what      string
	isProxied bool // records have what responses of an application have
	lies      bool // List gives only the folder
	kills     bool
	nodes     int
}

// garbageWorld is a site of a storage, and its nodes.
type garbageWorld struct {
	*certmagic.FileStorage
	garbageDay

	now      time.Time // the nodes' clock
	deadline int       // of calls until the process is dead; -1: it lives
	calls    int
	written  int64            // bytes by changes, in all
	kinds    map[string]int64 // of them, by kind of key
	most     int64            // bytes stored at a time

	records   []store.Record
	processes []*garbageNode
}

// garbageNode is one process.
type garbageNode struct {
	member *fleet.Member
	site   *persist.Site
	of     *publish.Snapshot
}

var errKilled = errors.New("the process is dead")

func newGarbageWorld(folder string, day garbageDay) *garbageWorld {
	check(os.RemoveAll(folder))
	w := &garbageWorld{
		FileStorage: &certmagic.FileStorage{Path: folder},
		garbageDay:  day,
		now:         time.Now(),
		deadline:    -1,
		kinds:       make(map[string]int64),
	}
	at := w.now.Unix() - 90*24*3600
	for i := range garbagePages {
		modified := at + rand.Int64N(80*24*3600)
		r := store.Record{
			Path: fmt.Sprintf("/section-%03d/page-%06d.html", i/200, i), Flags: store.Named | store.HTML | store.Document,
			ModTime: modified, Version: rand.Uint32(), Fetched: at + int64(i), Due: at + int64(i) + 8*24*3600, Wait: 8 * 24 * 3600,
			Status: 200, Text: rand.Uint64(), Blocks: rand.Uint64(), First: at,
		}
		r.Selected.Listed = true
		r.Selected.LastMod = modified
		r.Selected.Text = modified
		r.Selected.Dated = at
		if day.isProxied {
			r.Flags |= store.Proxied
			r.Version = 0
			r.ETag = fmt.Sprintf(`W/"%x-%016x"`, rand.IntN(1<<16), rand.Uint64())
			r.Modified = modified
			r.Linked = at + int64(i) + rand.Int64N(24*3600)
			r.Followed = r.Linked
			r.Finder = fmt.Sprintf("/section-%03d/", i/200)
			r.Before = at + rand.Int64N(24*3600)
			r.Fetched = at + rand.Int64N(24*3600)
			r.Due = r.Fetched + rand.Int64N(8*24*3600)
			r.Title = fmt.Sprintf("Page %x of the section %d", rand.Uint64(), i/200)
			r.Canonical = r.Path
		}
		w.records = append(w.records, r)
	}
	return w
}

// call reports whether the process is still alive.
func (w *garbageWorld) call() error {
	w.calls++
	if w.deadline == 0 {
		return errKilled
	}
	if w.deadline > 0 {
		w.deadline--
	}
	return nil
}

func (w *garbageWorld) Store(ctx context.Context, key string, value []byte) error {
	if err := w.call(); err != nil {
		return err
	}
	w.written += int64(len(value))
	kind := strings.TrimPrefix(key, "sitemap/"+garbageSite+"/")
	w.kinds[strings.SplitN(kind, "/", 2)[0]] += int64(len(value))
	return w.FileStorage.Store(ctx, key, value)
}

func (w *garbageWorld) Load(ctx context.Context, key string) ([]byte, error) {
	if err := w.call(); err != nil {
		return nil, err
	}
	return w.FileStorage.Load(ctx, key)
}

func (w *garbageWorld) Delete(ctx context.Context, key string) error {
	if err := w.call(); err != nil {
		return err
	}
	return w.FileStorage.Delete(ctx, key)
}

func (w *garbageWorld) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	if w.lies {
		return []string{folder}, w.call()
	}
	return w.FileStorage.List(ctx, folder, recursive)
}

func (w *garbageWorld) perChange() map[string]int64 {
	each := make(map[string]int64)
	for kind, n := range w.kinds {
		each[kind] = n / garbageMinutes
	}
	return each
}

// start starts a process in the place of another one.
func (w *garbageWorld) start(i int) {
	w.deadline = -1
	member := fleet.NewMember(fleet.MemberOptions{
		Site: garbageSite + "-site", Group: garbageSite, Interval: time.Minute, RecordsPrefix: "sites/" + garbageSite,
		Now: func() time.Time { return w.now },
	})
	member.Configure(w, 0)
	w.processes[i] = &garbageNode{member, persist.NewSite(member, "sites/"+garbageSite), nil}
}

// run changes a page each minute for a day.
func (w *garbageWorld) run(ctx context.Context) {
	w.processes = make([]*garbageNode, w.nodes)
	for i := range w.nodes {
		w.start(i)
	}
	w.commit(ctx, 0, -1)
	w.written = 0
	clear(w.kinds)
	for minute := range garbageMinutes {
		i := minute % w.nodes
		if w.kills && minute%7 == 6 {
			w.deadline = rand.IntN(30) // in the midst of a commit, or of a collection
		}
		w.commit(ctx, i, rand.IntN(garbagePages))
		for range 4 {
			w.now = w.now.Add(15 * time.Second)
			for _, n := range w.processes {
				_ = n.member.Poll(ctx) // a dead one's fails
			}
		}
		if w.deadline >= 0 {
			w.start(i)
			_ = w.processes[i].member.Poll(ctx)
		}
		if minute%60 == 59 {
			_, stored := w.sizes(ctx)
			w.most = max(w.most, stored)
		}
		check(ctx.Err())
	}
}

// commit has a process commit that a page has changed; -1: all are new.
func (w *garbageWorld) commit(ctx context.Context, node, changed int) {
	n := w.processes[node]
	r := must(n.site.Acquire(ctx))
	defer r.Release()
	if changed >= 0 {
		rec := &w.records[changed]
		rec.Version++
		rec.Text = rand.Uint64()
		rec.ModTime = w.now.Unix()
		rec.Changed = w.now.Unix()
		rec.Selected.LastMod = w.now.Unix()
		rec.Selected.Text = w.now.Unix()
		rec.Selected.Dated = w.now.Unix()
	}
	meta := new(struct{})
	snapshot, err := r.Open(ctx, meta, n.of, nil)
	if err != nil {
		return // a dead one's
	}
	if snapshot != nil {
		n.of = snapshot
	}
	begun := r.Begin(w.now)
	w.update(r, changed)
	s := must(publish.Build(ctx, w.pages, n.of, publish.Options{
		Options: webpage.Options{Base: "https://example.com", Sitemap: "https://example.com/sitemap"}, Now: begun,
	}))
	_, err = r.Share(ctx, s, meta, persist.Commit{Next: time.Minute})
	if err == nil {
		n.of = s
	}
}

// update puts the records of each chunk that differ.
func (w *garbageWorld) update(r *persist.Records, changed int) {
	g := r.Generation
	writer := g.Writer()
	chunks := g.Chunks()
	for i, c := range chunks {
		from := w.index(c.First)
		to := len(w.records)
		if i+1 < len(chunks) {
			to = w.index(chunks[i+1].First)
		}
		if g.Len() > 0 && (changed < from || changed >= to) {
			writer.Keep(i)
			continue
		}
		writer.Put(c.First, w.records[from:to], nil, nil)
	}
	r.Generation = must(writer.Generation())
}

// index is that of the record with a path.
func (w *garbageWorld) index(first string) int {
	if first == "" {
		return 0
	}
	var section, i int
	_ = must(fmt.Sscanf(first, "/section-%d/page-%d.html", &section, &i))
	return i
}

func (w *garbageWorld) pages(yield func(page.Page, error) bool) {
	for i := range w.records {
		r := &w.records[i]
		p := page.Page{Path: r.Path, LastMod: r.Selected.LastMod}
		if !yield(p, nil) {
			return
		}
	}
}

var objectName = regexp.MustCompile(`"name":"store/([0-9a-f]{32})"`)

// sizes returns how many bytes the newest generation has, and how many are stored.
func (w *garbageWorld) sizes(ctx context.Context) (live, stored int64) {
	prefix := "sitemap/" + garbageSite
	var current struct{ Manifest string }
	data := must(w.FileStorage.Load(ctx, prefix+"/current"))
	check(json.Unmarshal(data, &current))
	live = int64(len(data))
	load := func(name string) (all []byte) {
		for i := 0; ; i++ {
			part, err := w.FileStorage.Load(ctx, path.Join(prefix, "objects", fmt.Sprintf("%s.%d", name, i)))
			if err != nil {
				return all
			}
			all = append(all, part...)
		}
	}
	manifest := load(current.Manifest)
	live += int64(len(manifest))
	names := make(map[string]bool)
	for _, match := range objectName.FindAllSubmatch(manifest, -1) {
		names[string(match[1])] = true
	}
	for name := range names {
		live += int64(len(load(name)))
	}
	check(filepath.WalkDir(w.Path, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			stored += info.Size()
		}
		return err
	}))
	return live, stored
}
