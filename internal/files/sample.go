package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Bounds of a sample: about 20 ms on a local disk.
const (
	sampleEntries = 16 << 10 // entries, after which no other folder is read
	maxInFolder   = 64 << 10 // entries of a folder: of one that has more, nothing else is known
	sizesEach     = 16       // files of a folder whose sizes count,
	maxSizes      = 512      // and of all folders
)

// Sample returns a digest of a sample of the files that Scan would look at. It is the same for equal trees, on whatever
// machine and under whatever root, and most probably another one where files are missing: each folder that is read counts
// with the names and the number of its files, and with the sizes of some. Which folders and files these are depends on
// their paths alone. Times do not count: of a release that is checked out twice they differ.
//
// A tree of more than 16,000 entries is not read as a whole: the folders near the root come first. The error is that of the
// root, or ctx's; a folder below it that cannot be read counts as such.
func Sample(ctx context.Context, o Options) (uint64, error) {
	root, err := rootOf(&o)
	if err != nil {
		return 0, err
	}
	s := &sampling{
		handle: root.newHandle(),
		root:   root.path,
		rules:  newRules(o, root.abs),
		digest: xxhash.New(),
	}
	return s.run(ctx)
}

// sampling is one run of Sample.
type sampling struct {
	handle handle
	root   string // path for the handle
	rules  *rules
	digest *xxhash.Digest
	level  []sampled // folders to be read that are equally deep, the first one first
	below  []sampled // folders in those that were read
	read   int       // entries
	sizes  int       // files examined
}

// sampled is a folder or file of the sample.
type sampled struct {
	place        // of a folder
	name  string // of a file
	depth int
	order uint64 // hash of the path below the root
}

// compare orders by hashes, so that a sample is spread over the tree.
func (s sampled) compare(t sampled) int {
	return cmp.Or(cmp.Compare(s.order, t.order), strings.Compare(s.rel, t.rel), strings.Compare(s.name, t.name))
}

// next returns the folder to be read; false: there is none. Those near the root come before others.
func (s *sampling) next() (f sampled, ok bool) {
	if len(s.level) == 0 {
		s.level = s.below
		s.below = nil
		slices.SortFunc(s.level, sampled.compare)
	}
	if len(s.level) == 0 || s.read >= sampleEntries {
		return f, false
	}
	f = s.level[0]
	s.level = s.level[1:]
	return f, true
}

func (s *sampling) run(ctx context.Context) (uint64, error) {
	s.below = []sampled{{place: s.rules.root()}}
	for {
		next, ok := s.next()
		if !ok {
			return s.digest.Sum64(), nil
		}
		err := s.folder(&next)
		if err == nil {
			err = ctx.Err()
		}
		isRoot := next.depth == 0
		if err != nil && (isRoot || ctx.Err() != nil) {
			return 0, err
		}
		wasRemoved := errors.Is(err, fs.ErrNotExist) // since its name was read
		if err != nil && !wasRemoved {
			s.hash("unreadable", next.rel, 0)
		}
	}
}

// hash adds something to the digest.
func (s *sampling) hash(what, rel string, n int64) {
	// No name holds a NUL, so what stands side by side is not taken for something else.
	_, _ = s.digest.WriteString(what)
	_, _ = s.digest.WriteString("\x00" + rel + "\x00")
	var number [8]byte
	for i := range number {
		number[i] = byte(n >> (8 * i))
	}
	_, _ = s.digest.Write(number[:])
}

// folder adds a folder, and queues those in it.
func (s *sampling) folder(f *sampled) error {
	_, err := s.handle.open(join(s.root, f.rel), f.depth == 0)
	defer s.handle.close()
	if err != nil {
		return err
	}
	var folders, files []sampled
	entries := 0
	err = s.handle.list(func(name string, mode fs.FileMode) bool {
		entries++
		s.addEntry(f, name, mode, &folders, &files)
		return entries <= maxInFolder
	})
	if err != nil {
		return err
	}
	s.read += entries
	// Which of its entries come first depends on the file system, so those that were read are none of the sample.
	if entries > maxInFolder {
		s.hash("large", f.rel, 0)
		return nil
	}
	s.files(f, files)
	s.below = append(s.below, folders...)
	return nil
}

// addEntry adds an entry of a folder to the folders or files, unless Scan would leave it out by its name. name is valid
// during the call only. A link counts as a file: where it leads is not read.
func (s *sampling) addEntry(f *sampled, name string, mode fs.FileMode, folders, files *[]sampled) {
	if mode.IsDir() {
		if s.rules.folder(&f.place, name) != listed {
			return
		}
		name = strings.Clone(name)
		child := sampled{place: s.rules.child(&f.place, name, page.Escape(name)), depth: f.depth + 1}
		child.order = xxhash.Sum64String(child.rel)
		*folders = append(*folders, child)
		return
	}
	isLink := mode&fs.ModeSymlink != 0
	isPage := s.rules.file(&f.place, name, page.Escape(name)) == listed
	isListed := isPage || isLink && s.rules.folder(&f.place, name) == listed // a folder, perhaps
	if isListed {
		name = strings.Clone(name)
		*files = append(*files, sampled{name: name, order: xxhash.Sum64String(join(f.rel, name))})
	}
}

// files adds the files of a folder: how many there are, their names, and the sizes of some. One that has vanished meanwhile has
// none.
func (s *sampling) files(f *sampled, files []sampled) {
	var names uint64
	for _, file := range files {
		names += file.order // in whatever order they are
	}
	s.hash("files", f.rel, int64(len(files)))
	s.hash("names", f.rel, int64(names))
	slices.SortFunc(files, sampled.compare)
	for _, file := range files[:min(len(files), sizesEach, maxSizes-s.sizes)] {
		s.sizes++
		in := info{size: -1}
		name := (file.name + "\x00")[:len(file.name)] // as system calls need it
		err := s.handle.stat(name, true, &in)
		if err != nil || !in.mode.IsRegular() {
			in.size = -1
		}
		s.hash("size", file.name, in.size)
	}
}
