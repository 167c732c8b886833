package fleet

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	siteA  = "example.com-00000000000000ff"
	groupA = "sitemap/example.com-00000000000000aa"
	groupB = "sitemap/example.com-00000000000000bb"
	groupC = "sitemap/example.com-00000000000000cc"
)

func TestDecodeGroups(t *testing.T) {
	for name, test := range map[string]struct {
		data string
		want map[string]time.Duration
	}{
		"nothing":       {"", nil},
		"another site":  {`{"site":"other","clock":9,"used":{"` + groupA + `":1}}`, nil},
		"another value": {`{"version":1,"generation":9}`, nil},
		"used":          {`{"site":"` + siteA + `","clock":9,"used":{"` + groupA + `":1}}`, map[string]time.Duration{groupA: 1}},
		"other keys":    {`{"site":"` + siteA + `","clock":9,"used":{"certificates":1,"sitemap/":1,"sitemap/announce/example.com-00000000000000aa":1}}`, nil},
		"another host":  {`{"site":"` + siteA + `","clock":9,"used":{"sitemap/example.org-00000000000000aa":1}}`, nil},
		"in the future": {`{"site":"` + siteA + `","clock":9,"used":{"` + groupA + `":10}}`, nil},
	} {
		if got := decodeGroups([]byte(test.data), siteA).Used; !maps.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	g := groups{Clock: 40 * day, Used: map[string]time.Duration{groupA: 10 * day, groupB: 10*day + 1}}
	if got := g.unused(); !slices.Equal(got, []string{groupA}) {
		t.Errorf("unused: %q", got)
	}
}

// TestGroupUsedAgain: the keys of settings are not deleted that a node has begun to use again since it was noted which are used.
func TestGroupUsedAgain(t *testing.T) {
	r := register{file: persist.NewFile(store.NewMemory(), valueKey)}
	for _, test := range []struct {
		used time.Duration // of group B
		want bool
	}{{0, true}, {40 * day, false}} {
		g := groups{Site: siteA, Clock: 40 * day, Used: map[string]time.Duration{groupA: 40 * day, groupB: test.used}}
		err := r.file.Save(t.Context(), func() ([]byte, error) { return json.Marshal(g) })
		if err != nil {
			t.Fatal(err)
		}
		if got := r.isUnused(t.Context(), siteA, groupB); got != test.want {
			t.Errorf("used at %s: unused %t, want %t", test.used, got, test.want)
		}
	}
}

// refreshEvery is how often a process refreshes its site: more often would only take longer.
const refreshEvery = 2 * time.Hour

// memberOf returns a process of a site by some settings, and its storage.
func memberOf(f *fake, group string) *Member {
	m := NewMember(MemberOptions{Site: siteA, Group: strings.TrimPrefix(group, "sitemap/"), Interval: refreshEvery, RecordsPrefix: "any", Now: time.Now})
	m.Configure(folderList{&client{fake: f}}, 0)
	return m
}

// refresh commits a change, as a process does every two hours.
func (m *Member) refresh(t *testing.T, content string) {
	t.Helper()
	_ = m.Poll(t.Context())
	follow(t, m.Node)
	_, err := m.Commit(t.Context(), persist.Commit{Next: refreshEvery}, func() error { return commit(m.Node, "kept", content) })
	if err != nil {
		t.Fatal(err)
	}
	err = m.Look(t.Context(), content, refreshEvery)
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Poll(t.Context())
}

// below returns the keys below a prefix.
func (f *fake) below(prefix string) []string {
	return slices.DeleteFunc(f.stored(), func(key string) bool { return !strings.HasPrefix(key, prefix+"/") })
}

// TestGroups: the keys of settings that no node has used for thirty days are deleted, also where the storage lists nothing
// and processes are restarted daily. Those that a node uses are not.
func TestGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("a month of refreshes")
	}
	for name, test := range map[string]struct {
		isUsed bool
		others bool // nodes of two other groups run
		want   bool // keys of group B are left
	}{"left": {false, false, false}, "used": {true, false, true}, "left by one of three": {false, true, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.others = true
				b := memberOf(f, groupB)
				b.refresh(t, "by b")
				a, c := memberOf(f, groupA), memberOf(f, groupC)
				_ = a.Inherited(t.Context())
				pass := func(days int) {
					for hour := 0; hour < days*24; hour += int(refreshEvery / time.Hour) {
						if hour%24 == 22 { // a deployment
							a = memberOf(f, groupA)
						}
						time.Sleep(refreshEvery)
						a.refresh(t, time.Now().String())
						if test.isUsed {
							b.refresh(t, time.Now().String())
						}
						if test.others {
							c.refresh(t, time.Now().String())
						}
					}
				}
				pass(29)
				if len(f.below(groupB)) == 0 {
					t.Fatal("deleted too early")
				}
				pass(4)
				if got := f.below(groupB); len(got) > 0 != test.want {
					t.Errorf("left: %q", got)
				}
				if got := f.below(groupA); len(got) < 4 {
					t.Errorf("of the settings that are used: %q", got)
				}
				back := memberOf(f, groupB)
				back.refresh(t, "again")
				pass(2)
				if got := f.below(groupB); len(got) < 4 {
					t.Errorf("of settings that came back: %q", got)
				}
			})
		})
	}
}
