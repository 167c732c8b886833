package caddytest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// diskSite is a site on disk: a folder of releases, and a link to the one that is served. What it does, it tells the oracle.
type diskSite struct {
	t        *testing.T
	dir      string
	rand     *rand.Rand
	oracle   *oracle
	template template
	files    []*file
	releases int // so far
	names    int // given so far

	corrections []correction
	edits       []correction // by a single write each
}

// file is a page on disk.
type file struct {
	name    string // from the site's folder, with slashes
	text    text
	moments []moment // at which the text changed
}

// correction is a change of a page's text, which is to have a date.
type correction struct {
	file *file
	path string
	at   time.Time
}

func (f *file) path() string { return "/" + f.name }

func (f *file) folder() string { return strings.Split(f.name, "/")[0] }

// newDisk makes a site of pages in folders, which were written on days long ago.
func newDiskSite(t *testing.T, dir string, r *rand.Rand, folders, pages int) *diskSite {
	t.Helper()
	d := &diskSite{t: t, dir: dir, rand: r, oracle: newOracle(), template: firstTemplate}
	harness.Must(t, os.MkdirAll(filepath.Join(dir, "releases", "0"), 0o755))
	harness.Symlink(t, filepath.Join("releases", "0"), filepath.Join(dir, "current"))
	for i := range folders * pages {
		name := fmt.Sprintf("folder-%d/%s", i/pages, d.newName())
		at := longAgo(i)
		f := &file{name: name, text: newText(r, name), moments: []moment{{at: at}}}
		d.files = append(d.files, f)
		harness.Must(t, os.MkdirAll(filepath.Dir(d.on(name)), 0o755))
		harness.Must(t, os.WriteFile(d.on(name), d.html(f), 0o644))
		harness.Must(t, os.Chtimes(d.on(name), at, at))
		d.appears(f, "is one of the first", at)
	}
	return d
}

// on is where a file is on disk.
func (d *diskSite) on(name string) string {
	return filepath.Join(d.dir, "current", filepath.FromSlash(name))
}

func (d *diskSite) html(f *file) []byte { return []byte(d.template.html(f.text)) }

func (d *diskSite) newName() string {
	d.names++
	return fmt.Sprintf("%s-%d.html", words[d.rand.IntN(len(words))], d.names)
}

func (d *diskSite) newFolder() string {
	d.names++
	return fmt.Sprintf("%s-%d", words[d.rand.IntN(len(words))], d.names)
}

// folders returns the folders of the site, in order.
func (d *diskSite) folders() []string {
	var folders []string
	for _, f := range d.files {
		folders = append(folders, f.folder())
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// save writes a file in one of the ways of editors: in place, or beside it first. It returns the time of the file.
func (d *diskSite) save(f *file) time.Time {
	d.t.Helper()
	name := d.on(f.name)
	harness.Must(d.t, os.MkdirAll(filepath.Dir(name), 0o755))
	if d.rand.IntN(2) == 0 {
		harness.Must(d.t, os.WriteFile(name, d.html(f), 0o644))
	} else {
		harness.Must(d.t, os.WriteFile(name+".part", d.html(f), 0o644))
		harness.Must(d.t, os.Rename(name+".part", name))
	}
	info, err := os.Stat(name)
	harness.Must(d.t, err)
	return info.ModTime()
}

func (d *diskSite) create() {
	d.t.Helper()
	name := pick(d.rand, d.folders()) + "/" + d.newName()
	f := &file{name: name, text: newText(d.rand, name)}
	at := d.save(f)
	f.moments = []moment{{at: at}}
	d.files = append(d.files, f)
	d.appears(f, "is written", at)
}

func (d *diskSite) edit() {
	d.t.Helper()
	f := pick(d.rand, d.files)
	f.text = f.text.corrected(d.rand)
	at := d.save(f)
	m := moment{at: at}
	f.moments = append(f.moments, m)
	d.oracle.changes(f.path(), "is edited", m)
	d.edits = append(d.edits, correction{f, f.path(), at})
}

func (d *diskSite) remove() {
	d.t.Helper()
	i := d.rand.IntN(len(d.files))
	f := d.files[i]
	d.files = slices.Delete(d.files, i, i+1)
	harness.Must(d.t, os.Remove(d.on(f.name)))
	d.oracle.disappears(f.path(), "is removed", time.Now())
}

func (d *diskSite) rename() {
	d.t.Helper()
	d.move(pick(d.rand, d.files), pick(d.rand, d.folders())+"/"+d.newName())
}

func (d *diskSite) move(f *file, to string) {
	d.t.Helper()
	harness.Must(d.t, os.Rename(d.on(f.name), d.on(to)))
	d.isMoved(f, to)
}

// appears notes that a page is at a URL that is new to it. There, its date may also be the time of its file, which a deployment may
// have written since the text changed.
func (d *diskSite) appears(f *file, how string, at time.Time) {
	d.t.Helper()
	info, err := os.Stat(d.on(f.name))
	harness.Must(d.t, err)
	written := moment{at: info.ModTime()}
	d.oracle.appears(f.path(), how, at, append(slices.Clone(f.moments), written))
}

// isMoved notes that a file has another name.
func (d *diskSite) isMoved(f *file, to string) {
	now := time.Now()
	d.oracle.disappears(f.path(), "is moved to "+to, now)
	from := f.name
	f.name = to
	d.appears(f, "is moved from "+from, now)
}

// in returns the files of a folder.
func (d *diskSite) in(folder string) []*file {
	var files []*file
	for _, f := range d.files {
		if f.folder() == folder {
			files = append(files, f)
		}
	}
	return files
}

func (d *diskSite) moveFolder() {
	d.t.Helper()
	from := pick(d.rand, d.folders())
	to := d.newFolder()
	harness.Must(d.t, os.Rename(d.on(from), d.on(to)))
	for _, f := range d.in(from) {
		d.isMoved(f, to+strings.TrimPrefix(f.name, from))
	}
}

// swapFolders has two folders change their names. The pages of the one, whose names are given to some of the other, show at the
// URLs of these: there, the text has changed at that time.
func (d *diskSite) swapFolders() {
	d.t.Helper()
	folders := d.folders()
	if len(folders) < 2 {
		return
	}
	a := pick(d.rand, folders)
	b := pick(d.rand, folders)
	if a == b {
		return
	}
	d.haveCommonNames(a, b)
	ofA := d.in(a)
	ofB := d.in(b)
	harness.Must(d.t, os.Rename(d.on(a), d.on("swapped")))
	harness.Must(d.t, os.Rename(d.on(b), d.on(a)))
	harness.Must(d.t, os.Rename(d.on("swapped"), d.on(b)))
	now := time.Now()
	for _, f := range slices.Concat(ofA, ofB) {
		d.oracle.disappears(f.path(), "has its folder swapped", now)
	}
	for _, f := range ofA {
		f.name = b + strings.TrimPrefix(f.name, a)
	}
	for _, f := range ofB {
		f.name = a + strings.TrimPrefix(f.name, b)
	}
	for _, f := range slices.Concat(ofA, ofB) {
		d.appears(f, "comes from a swapped folder", now)
	}
}

// haveCommonNames renames a file of a folder, so that two folders have a name in common.
func (d *diskSite) haveCommonNames(a, b string) {
	d.t.Helper()
	first := pick(d.rand, d.in(a))
	second := pick(d.rand, d.in(b))
	name := b + strings.TrimPrefix(first.name, a)
	if slices.ContainsFunc(d.files, func(f *file) bool { return f.name == name }) {
		return
	}
	d.move(second, name)
}

// copyFolder is `cp -a`, which keeps the times of files.
func (d *diskSite) copyFolder() {
	d.t.Helper()
	from := pick(d.rand, d.folders())
	to := d.newFolder()
	harness.Must(d.t, os.Mkdir(d.on(to), 0o755))
	for _, f := range d.in(from) {
		data, err := os.ReadFile(d.on(f.name))
		harness.Must(d.t, err)
		info, err := os.Stat(d.on(f.name))
		harness.Must(d.t, err)
		c := &file{name: to + strings.TrimPrefix(f.name, from), text: f.text, moments: slices.Clone(f.moments)}
		harness.Must(d.t, os.WriteFile(d.on(c.name), data, 0o644))
		harness.Must(d.t, os.Chtimes(d.on(c.name), info.ModTime(), info.ModTime()))
		d.files = append(d.files, c)
		d.appears(c, "is a copy of "+f.name, time.Now())
	}
}

// removeFolder removes a folder with its pages, if the site has grown too large.
func (d *diskSite) removeFolder() {
	d.t.Helper()
	folder := pick(d.rand, d.folders())
	if len(d.folders()) < 12 || len(d.in(folder)) > len(d.files)/8 {
		return
	}
	harness.Must(d.t, os.RemoveAll(d.on(folder)))
	for _, f := range d.in(folder) {
		d.oracle.disappears(f.path(), "is removed with its folder", time.Now())
	}
	d.files = slices.DeleteFunc(d.files, func(f *file) bool { return f.folder() == folder })
}

// touch gives a file another time, or writes it again as it is.
func (d *diskSite) touch() {
	d.t.Helper()
	f := pick(d.rand, d.files)
	now := time.Now()
	if d.rand.IntN(2) == 0 {
		harness.Must(d.t, os.Chtimes(d.on(f.name), now, now))
		d.oracle.happens(f.path(), "is touched", now)
		return
	}
	data, err := os.ReadFile(d.on(f.name))
	harness.Must(d.t, err)
	harness.Must(d.t, os.WriteFile(d.on(f.name), data, 0o644))
	d.oracle.happens(f.path(), "is written as it is", now)
}

// writeLog writes to a log in the root.
func (d *diskSite) writeLog() {
	d.t.Helper()
	log, err := os.OpenFile(d.on("error.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	harness.Must(d.t, err)
	_, err = fmt.Fprintln(log, "an error at", time.Now())
	harness.Must(d.t, err)
	harness.Must(d.t, log.Close())
}

// correctSome corrects some pages, as a part of a deployment that writes all files. It returns them.
func (d *diskSite) correctSome() map[*file]bool {
	some := make(map[*file]bool)
	for range 3 {
		f := pick(d.rand, d.files)
		if !some[f] {
			f.text = f.text.corrected(d.rand)
		}
		some[f] = true
	}
	return some
}

// isCorrected notes that a deployment has corrected a page.
func (d *diskSite) isCorrected(f *file, at time.Time) {
	m := moment{at: at, isRelease: true}
	f.moments = append(f.moments, m)
	d.oracle.changes(f.path(), "is corrected", m)
	d.corrections = append(d.corrections, correction{f, f.path(), at})
}

// release writes the site into a new folder, with another template and some corrections, and serves that instead.
func (d *diskSite) release() {
	d.t.Helper()
	d.template = d.template.next()
	corrected := d.correctSome()
	d.releases++
	folder := filepath.Join("releases", fmt.Sprint(d.releases))
	for _, f := range d.files {
		name := filepath.Join(d.dir, folder, filepath.FromSlash(f.name))
		harness.Must(d.t, os.MkdirAll(filepath.Dir(name), 0o755))
		harness.Must(d.t, os.WriteFile(name, d.html(f), 0o644))
	}
	harness.Symlink(d.t, folder, filepath.Join(d.dir, "next"))
	harness.Must(d.t, os.Rename(filepath.Join(d.dir, "next"), filepath.Join(d.dir, "current")))
	now := time.Now()
	d.oracle.everywhere("a release", now)
	for f := range corrected {
		d.isCorrected(f, now)
	}
	// The release before stays for one more, as where it can be gone back to.
	harness.Must(d.t, os.RemoveAll(filepath.Join(d.dir, "releases", fmt.Sprint(d.releases-2))))
}

// redeploy writes all files anew in their places, with another template and some corrections, in some time. What is called between
// them may change the site.
func (d *diskSite) redeploy(lasts time.Duration, between func(done, of int)) {
	d.t.Helper()
	d.template = d.template.next()
	corrected := d.correctSome()
	d.oracle.everywhere(fmt.Sprintf("a deployment begins, of %s", lasts), time.Now())
	files := slices.Clone(d.files)
	begun := time.Now()
	for i, f := range files {
		if slices.Contains(d.files, f) {
			harness.Must(d.t, os.WriteFile(d.on(f.name), d.html(f), 0o644))
			d.oracle.happens(f.path(), "is written anew", time.Now())
			if corrected[f] {
				d.isCorrected(f, time.Now())
			}
		}
		between(i, len(files))
		if next := begun.Add(lasts * time.Duration(i+1) / time.Duration(len(files))); time.Until(next) > 0 {
			time.Sleep(time.Until(next))
		}
	}
	d.oracle.everywhere("a deployment ends", time.Now())
}
