package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	maxWatched = 50_000      // folders, in the process
	quietFor   = time.Second // after a change, before it is told
)

// Watch waits for changes below roots. It need not be told of all of them: scans find what it misses. A nil Watch waits for
// nothing.
type Watch struct {
	changed chan struct{} // has room for one
	isStale atomic.Bool   // paths may be those of other folders by now
	failed  error         // why not all folders are watched; under kernel
}

// told is who is told of changes of the entries of a folder, or of the one with a name.
type told struct {
	*Watch
	name string
}

// kernel tells all watches of the process, by one instance of inotify: a user has 128 of them, as a rule.
var kernel struct {
	sync.Mutex
	notify  *fsnotify.Watcher // nil: nothing is watched
	most    int               // folders
	folders map[string][]told // that are watched
}

// NewWatch returns a Watch of nothing yet.
func NewWatch() *Watch { return &Watch{changed: make(chan struct{}, 1)} }

// Wait waits for changes, and until there was none for a second. It returns false if the context ends before.
func (w *Watch) Wait(ctx context.Context) bool {
	var quiet <-chan time.Time // nil: nothing has changed
	for {
		select {
		case <-w.changed:
			quiet = time.After(quietFor)
		case <-quiet:
			return true
		case <-ctx.Done():
			if quiet != nil {
				w.tell() // the next one who waits
			}
			return false
		}
	}
}

func (w *Watch) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Renew prepares for scans: if folders were removed, renamed or replaced since the last ones, all are added anew.
func (w *Watch) Renew() {
	if w.isStale.Load() {
		w.Close()
	}
}

// Forget has the next Renew drop what is watched, as the roots may be others.
func (w *Watch) Forget() { w.isStale.Store(true) }

// Err returns why not all folders of the last scans are watched; nil: they are.
func (w *Watch) Err() error {
	kernel.Lock()
	defer kernel.Unlock()
	return w.failed
}

// addRoot has changes of a path itself told: it, and each folder above, may be a link.
func (w *Watch) addRoot(path string) {
	for filepath.Dir(path) != path {
		parent := filepath.Dir(path)
		real, err := filepath.EvalSymlinks(parent)
		if err == nil {
			w.add(real, filepath.Base(path))
		}
		path = parent
	}
}

// add has changes in a folder told from now on; of its entry with a name, if that is not "". The folder's path has no links.
func (w *Watch) add(folder, name string) {
	if w == nil {
		return
	}
	kernel.Lock()
	defer kernel.Unlock()
	all := kernel.folders[folder]
	if slices.Contains(all, told{w, name}) {
		return
	}
	if len(all) == 0 {
		err := watchFolder(folder)
		isGone := errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)
		if err != nil && !isGone {
			w.failed = err
		}
		if err != nil {
			return
		}
	}
	kernel.folders[folder] = append(all, told{w, name})
}

// watchFolder has the kernel watch a folder. Under kernel.
func watchFolder(folder string) error {
	if runtime.GOOS != "linux" {
		return errors.New("only Linux tells of changes")
	}
	if kernel.notify == nil {
		notify, err := fsnotify.NewWatcher()
		if err != nil {
			return err
		}
		kernel.notify = notify
		kernel.most = mayWatch()
		kernel.folders = make(map[string][]told)
		go tellOf(notify)
		go tellOfLosses(notify)
	}
	if len(kernel.folders) >= kernel.most {
		return fmt.Errorf("%d folders are watched, which is the maximum", kernel.most)
	}
	return kernel.notify.Add(folder)
}

// mayWatch returns how many folders may be watched: other programs of the user need some, too.
func mayWatch() int {
	most := 2 * maxWatched
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &most)
	}
	return min(most/2, maxWatched)
}

// Close has nothing watched. The Watch can be used again.
func (w *Watch) Close() {
	kernel.Lock()
	defer kernel.Unlock()
	for folder, all := range kernel.folders {
		others := slices.DeleteFunc(all, func(t told) bool { return t.Watch == w })
		kernel.folders[folder] = others
		if len(others) == 0 {
			delete(kernel.folders, folder)
			_ = kernel.notify.Remove(folder) // an error means that it is gone
		}
	}
	w.isStale.Store(false)
	w.failed = nil
	if len(kernel.folders) == 0 && kernel.notify != nil {
		_ = kernel.notify.Close()
		kernel.notify = nil
	}
}

// tellOf tells who watches of changes.
func tellOf(notify *fsnotify.Watcher) {
	for event := range notify.Events {
		isWrite := event.Has(fsnotify.Write) || event.Has(fsnotify.Chmod)
		kernel.Lock()
		for _, t := range kernel.folders[event.Name] {
			if !isWrite {
				t.Forget()
			}
		}
		for _, t := range kernel.folders[filepath.Dir(event.Name)] {
			isRoot := t.name == filepath.Base(event.Name)
			if isRoot {
				t.Forget()
			}
			if isRoot || t.name == "" {
				t.tell()
			}
		}
		kernel.Unlock()
	}
}

// tellOfLosses tells all when something was missed. It must not wait for kernel: fsnotify may wait for it while a folder is added.
func tellOfLosses(notify *fsnotify.Watcher) {
	for range notify.Errors {
		go func() {
			kernel.Lock()
			defer kernel.Unlock()
			for _, all := range kernel.folders {
				for _, t := range all {
					t.Forget()
					t.tell()
				}
			}
		}()
	}
}
