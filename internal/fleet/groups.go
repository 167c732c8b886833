package fleet

import (
	"context"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	noteEvery   = time.Hour       // that settings are in use
	forgetAfter = 30 * day        // of settings that no node has used
	removeFor   = 5 * time.Second // at a time
)

var groupPattern = regexp.MustCompile(`^sitemap/[^/]+-[0-9a-f]{16}$`)

// groups is the value that says which settings nodes of a site use or have used, each by the prefix of its keys. Its
// clock is that of a [ledger]: what nodes have observed, added up.
type groups struct {
	Site  string                   `json:"site"` // a storage may return another key's value
	Clock time.Duration            `json:"clock"`
	Used  map[string]time.Duration `json:"used"` // by prefix: when a node has used it last
}

// decodeGroups returns those of a site; with none if it cannot read them.
func decodeGroups(data []byte, site string) groups {
	var g groups
	err := json.Unmarshal(data, &g)
	if err != nil || g.Site != site || g.Clock < 0 || g.Used == nil {
		return groups{Site: site, Used: make(map[string]time.Duration)}
	}
	for prefix, at := range g.Used {
		if !isGroupOf(site, prefix) || at < 0 || at > g.Clock {
			delete(g.Used, prefix)
		}
	}
	return g
}

// isGroupOf reports whether a prefix may be that of a site by some settings. What a storage returns in the place of the
// value of this site must not have the keys of another one deleted.
func isGroupOf(site, prefix string) bool {
	withoutDigest := func(name string) string { return name[:max(strings.LastIndex(name, "-"), 0)] }
	return groupPattern.MatchString(prefix) && withoutDigest(prefix) == Prefix(withoutDigest(site))
}

// unused returns the prefixes that no node has used for thirty days.
func (g groups) unused() (prefixes []string) {
	for prefix, at := range g.Used {
		if g.Clock-at >= forgetAfter {
			prefixes = append(prefixes, prefix)
		}
	}
	slices.Sort(prefixes)
	return prefixes
}

// register notes that the settings of a Member are in use, and knows which are not any more.
type register struct {
	turn wait.Slots // of who uses it
	file *persist.File
	now  func() time.Time

	noted   time.Time     // when that was; zero: never
	clock   time.Duration // as it was read or written last,
	clockAt time.Time     // and since when it is so
	unused  []string
	removed map[string]bool
}

// note notes that a prefix is in use, once an hour. What fails is tried again by the next commit.
func (r *register) note(ctx context.Context, site, prefix, former string) {
	now := r.now()
	if !r.noted.IsZero() && now.Sub(r.noted) < noteEvery {
		return
	}
	var stored []byte
	_ = r.file.Load(ctx, func(data []byte) { stored = data }) // if it fails, storing does
	g := decodeGroups(stored, site)
	isObserved := !r.noted.IsZero() && g.Clock == r.clock // else another process has advanced it
	if isObserved {
		g.Clock += max(now.Sub(r.clockAt), 0)
	}
	_, isKnown := g.Used[former]
	if isGroupOf(site, former) && !isKnown {
		g.Used[former] = g.Clock
	}
	g.Used[prefix] = g.Clock
	// What was removed in the meantime is in use by nobody, unless another process says so.
	for _, unused := range g.unused() {
		if r.removed[unused] {
			delete(g.Used, unused)
		}
	}
	err := r.file.Save(ctx, func() ([]byte, error) { return json.Marshal(g) })
	if err != nil {
		return
	}
	r.noted = now
	r.clock = g.Clock
	r.clockAt = now
	r.unused = g.unused()
	r.removed = make(map[string]bool)
}

// isUnused reports whether still no node uses a prefix. What was noted may be an hour old: a node that goes back to
// earlier settings notes that after its first commit.
func (r *register) isUnused(ctx context.Context, site, prefix string) bool {
	var g groups
	err := r.file.Load(ctx, func(data []byte) { g = decodeGroups(data, site) })
	return err == nil && slices.Contains(g.unused(), prefix)
}

// keepRegister notes that the settings of this process are in use, and deletes the keys of those that no node has used
// for thirty days, for five seconds at most. The process that has committed last does so.
func (m *Member) keepRegister(ctx context.Context) {
	r := &m.register
	if !m.isWriter() || !r.turn.Take(ctx) {
		return
	}
	defer r.turn.Release()
	former := ""
	if name := m.former.Load(); name != nil {
		former = *name
	}
	r.note(ctx, m.o.Site, m.Prefix, former)
	for _, prefix := range r.unused {
		if r.removed[prefix] || !r.isUnused(ctx, m.o.Site, prefix) {
			continue
		}
		o := m.Options
		o.Local = nil
		o.Prefix = prefix
		r.removed[prefix] = New(o).remove(ctx)
		return
	}
}

// remove deletes all keys of a site that nobody uses. False: there is more, or the site is used again.
func (n *Node) remove(ctx context.Context) (isDone bool) {
	ctx, cancel := context.WithTimeout(ctx, removeFor)
	defer cancel()
	l, err := n.readLedger(ctx)
	if err != nil {
		return false
	}
	c, err := n.readCurrent(ctx)
	if err != nil {
		return false
	}

	// At first all is condemned, and deleted later: a node that comes back to these settings in between finds out.
	if c.Generation > 0 {
		n.condemnAll(ctx, l, c)
		return false // what is condemned now is deleted by a later poll
	}
	left := maxDeletions
	for name, e := range l.Entries {
		if e.State != condemned { // a node needs it
			return false
		}
		if left == 0 || n.deleteObject(ctx, name) != nil {
			break
		}
		delete(l.Entries, name)
		left--
	}
	if len(l.Entries) > 0 {
		_ = n.write(ctx, ledgerKey, l.encode())
		return false
	}
	for _, key := range []string{garbageKey, viewsKey, ledgerKey} {
		err := n.write(ctx, key, nil)
		if err != nil {
			return false
		}
	}
	return true
}

// condemnAll writes all objects of a site that nobody uses into the ledger, and deletes current. If a node uses the
// site meanwhile, it finds them condemned.
func (n *Node) condemnAll(ctx context.Context, l *ledger, c current) {
	names := n.namesOf(ctx, c.Manifest) // nil if it is lost
	for name := range names {
		l.Entries[name] = l.entered(condemned)
	}
	for name := range l.Entries {
		l.Entries[name] = l.entered(condemned)
	}
	// What no ledger knows, where the storage lists it.
	keys, _ := do(ctx, n, callList, "", func(ctx context.Context, s Shared) ([]string, error) {
		return s.List(ctx, path.Join(n.Prefix, folder), false)
	})
	for _, key := range keys {
		part := path.Base(key)
		name, _, _ := strings.Cut(part, ".")
		if partPattern.MatchString(part) && len(l.Entries) < maxEntries {
			l.Entries[name] = l.entered(condemned)
		}
	}
	l.Generation = c.Generation
	l.Node = n.ID
	err := n.write(ctx, ledgerKey, l.encode())
	if err == nil {
		_ = n.write(ctx, currentKey, nil)
	}
}
