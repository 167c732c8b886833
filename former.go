package sitemap

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// formerPatience is how long a site without records looks for those of a former one, and copies them.
const formerPatience = 30 * time.Second

// traits are what a site is recognized by under another name. They are stored with its records.
type traits struct {
	names
	Root    string `json:"root,omitempty"`    // "": not known
	FS      string `json:"fs,omitempty"`      // of the root
	Proxied bool   `json:"proxied,omitempty"` // an upstream returns the front page
}

// names are the traits that the configuration tells.
type names struct {
	Origin   string `json:"origin"`   // as visitors know it
	Internal string `json:"internal"` // as the server knows it: base_url may make the two differ
	Scope    string `json:"scope"`    // of its pages' paths
}

func (i *identity) names() names { return names{i.origin, i.internalOrigin, i.scope} }

// traits are the names with what a probe has found.
func (n names) traits(probed *probeResult) traits {
	return traits{names: n, Root: probed.root, FS: probed.fs, Proxied: probed.proxied}
}

// likeness is by what a former site is evidently the one that a site is now. A greater one is better evidence.
type likeness uint8

const (
	unlike    likeness = iota
	sameFiles          // another host, with the same files
	sameHost           // the same host by another scheme, with or without www or a base URL
)

// likenessTo decides whether a former site is evidently the same as this one. It would be a lie to date a page by what another
// one was at its path, so in doubt it is not: an application may have another site for each host, and ports of one host are
// sites that have nothing to do with each other.
func (t traits) likenessTo(former traits) likeness {
	isSamePlace := t.Scope == former.Scope && t.Root == former.Root && t.FS == former.FS
	if !isSamePlace {
		return unlike
	}
	isSameOrigin := hostOnly(t.Origin) == hostOnly(former.Origin)
	isSameListener := hostOnly(t.Internal) == hostOnly(former.Internal)
	switch {
	case isSameOrigin, isSameListener:
		return sameHost
	case t.Root != "" && !t.Proxied && !former.Proxied:
		return sameFiles
	}
	return unlike
}

// hostOnly returns an origin's host and port, without www.
func hostOnly(origin string) string {
	_, host, _ := strings.Cut(origin, "://")
	return strings.TrimPrefix(host, "www.")
}

// isKept reports whether the page of a record is evidently the same under another name. Of a site with another host, only its
// files are: what routes or an application make of another path may depend on the host.
func (l likeness) isKept(rec *store.Record) bool {
	return l == sameHost || rec.IsFile()
}

// former is a site that this one may have been.
type former struct {
	traits
	likeness
	confirmed time.Time // when it was last refreshed
	records   *store.Generation
}

// isBetterThan reports whether a former site is to be preferred to another one: of two that are as like, the one that was
// refreshed last has the later dates.
func (f *former) isBetterThan(other *former) bool {
	if other == nil || f.likeness != other.likeness {
		return other == nil || f.likeness > other.likeness
	}
	return f.confirmed.After(other.confirmed)
}

// inherit has a site without records begin with a copy of those of a former one, if that is evidently the same under another
// name: so pages keep the dates that only records tell. The former site may come back, and then goes on from its own. No error
// is fatal: the site begins anew then.
func (s *site) inherit(ctx context.Context, records *persist.Records, probed *probeResult) {
	// Former sites hold their records in memory, so they are let go as soon as they are not needed.
	if s.handler.settings.crawl.Off || records.Generation.Len() > 0 {
		s.state.formers.Store(nil)
		return
	}
	// Until it has records: this refresh may yet be canceled.
	formers := s.state.formers.Load()
	if formers == nil || !records.IsBare() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, formerPatience)
	defer cancel()
	var before *former
	var taken *store.Generation
	// The configuration before may still have the former site, and may replace its records while they are read.
	for range 2 {
		before = s.findFormer(ctx, records, s.names().traits(probed), *formers)
		if before == nil {
			return
		}
		var err error
		taken, err = crawl.Inherit(ctx, records.Generation, before.records, before.isKept)
		if err != nil {
			s.warnOfFormer(before.Origin, err)
			continue
		}
		if !before.records.Lost() {
			break
		}
	}
	if taken == nil || taken.Len() == 0 {
		return
	}
	records.Generation = taken
	s.logger.Info("the site had another name: its pages keep their dates",
		zap.String("former", before.Origin), zap.Int("pages", taken.Len()))
}

// findFormer returns the former site that is evidently the same, of those in memory and in the state folder; nil: there is
// none. What those in memory know may not be written yet.
func (s *site) findFormer(ctx context.Context, records *persist.Records, now traits, inMemory []*siteState) (found *former) {
	prefixes, err := s.app.neighbors(ctx, records)
	if err != nil {
		s.warnOfFormer("", err)
	}
	all := make(map[string]*former)
	for _, st := range inMemory {
		all[st.prefix] = st.former()
	}
	inUse := s.app.prefixesInUse()
	for _, prefix := range unused(prefixes, inUse) {
		if all[prefix] == nil {
			all[prefix] = s.readFormer(ctx, records, prefix)
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(all)) {
		f := all[prefix]
		if f == nil || inUse[prefix] {
			continue
		}
		f.likeness = now.likenessTo(f.traits)
		if f.likeness != unlike && f.isBetterThan(found) {
			found = f
		}
	}
	return found
}

// maxFormers is how many sites of the state folder are looked at: it has one for each name that was ever configured.
const maxFormers = 1000

// unused returns the prefixes that are not in use, up to maxFormers. Those that are do not count: there may be thousands.
func unused(prefixes []string, inUse map[string]bool) (some []string) {
	for _, prefix := range prefixes {
		if !inUse[prefix] && len(some) < maxFormers {
			some = append(some, prefix)
		}
	}
	return some
}

// neighborsFor is how long the names of the sites in the state folder are relied on: those of this configuration are in use,
// and others come seldom.
const neighborsFor = time.Minute

// neighbors are the prefixes of the sites in the state folder. A thousand new sites look for former ones at once.
func (a *App) neighbors(ctx context.Context, records *persist.Records) ([]string, error) {
	if !a.listing.Take(ctx) {
		return nil, ctx.Err()
	}
	defer a.listing.Release()
	now := time.Now()
	if now.Sub(a.listed).Abs() < neighborsFor {
		return a.prefixes, nil
	}
	prefixes, err := records.Neighbors(ctx)
	if err == nil {
		a.prefixes = prefixes
		a.listed = now
	}
	return prefixes, err
}

// readFormer returns a site of the state folder; nil: it has no records that can be read.
func (s *site) readFormer(ctx context.Context, records *persist.Records, prefix string) *former {
	var m meta
	g, err := records.Peek(ctx, prefix, &m)
	if err != nil {
		s.warnOfFormer(prefix, err)
		return nil
	}
	if g == nil || m.Site == nil {
		return nil
	}
	return &former{traits: *m.Site, confirmed: m.History.Confirmed, records: g}
}

func (s *site) warnOfFormer(name string, err error) {
	s.logger.Once(zap.WarnLevel, "former "+name,
		"cannot read the records of a former site: if it is this one under another name, dates are lost",
		s.app.stateFields(err)...)
}

// former returns the site as one that another one may have been; nil: it has no records, or they are not known yet.
func (st *siteState) former() *former {
	p := st.published.Load()
	if p.generation == nil || p.probed == nil {
		return nil
	}
	return &former{
		traits:    st.names.traits(p.probed),
		confirmed: p.history.Confirmed,
		records:   p.generation,
	}
}

// prefixesInUse are those of the records of this configuration's sites, without those that are aliases of others.
func (a *App) prefixesInUse() map[string]bool {
	inUse := make(map[string]bool)
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, s := range a.sites {
		if s.main.Load() == nil {
			inUse[s.state.prefix] = true
		}
	}
	return inUse
}
