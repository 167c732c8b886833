package announce

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"
)

// memory is a file in memory.
type memory struct {
	data   []byte // nil: there is none
	stores int
	fails  error
}

func (m *memory) Load(context.Context) ([]byte, error) {
	if m.fails != nil {
		return nil, m.fails
	}
	if m.data == nil {
		return nil, fs.ErrNotExist
	}
	return m.data, nil
}

func (m *memory) Save(_ context.Context, encode func() ([]byte, error)) error {
	data, err := encode()
	if err == nil && m.fails == nil {
		m.data = data
		m.stores++
	}
	return errors.Join(err, m.fails)
}

// publicly is the configuration of a site that tells one endpoint.
func publicly(kinds ...Kind) Config {
	c := Config{Origin: "https://example.com", Key: key, Daily: DefaultDaily}
	for _, kind := range kinds {
		c.Targets = append(c.Targets, Target{kind, "https://engine.invented/" + string(kind)})
	}
	return c
}

// loaded returns an announcer that has loaded a file.
func loaded(t *testing.T, file File, c Config) *Announcer {
	t.Helper()
	a := New(file)
	if damage, err := a.Load(t.Context(), c, false, epoch); damage != nil || err != nil {
		t.Fatal(damage, err)
	}
	return a
}

// TestKey: a key is made once, and kept; a configured one stands before it. It is used once it is stored.
func TestKey(t *testing.T) {
	unset := publicly(IndexNow)
	unset.Key = ""
	set := publicly(IndexNow)
	set.Key = "configured-1"
	file := new(memory)
	made := loaded(t, file, unset).Key()
	if len(made) != 32 || strings.Trim(made, "0123456789abcdef") != "" || !strings.Contains(string(file.data), made) {
		t.Errorf("key %q, stored %s", made, file.data)
	}
	for name, test := range map[string]struct {
		stored string
		config Config
		want   string // "": another one is made
	}{
		"a restart":         {stored: `{"key":"` + made + `"}`, config: unset, want: made},
		"configured":        {stored: `{"key":"` + made + `"}`, config: set, want: set.Key},
		"another site":      {config: unset},
		"no key":            {stored: `{"key":"../../etc/passwd"}`, config: unset},
		"a key of a number": {stored: `{"key":1}`, config: unset},
	} {
		file := new(memory)
		if test.stored != "" {
			file.data = []byte(test.stored)
		}
		a := New(file)
		damage, err := a.Load(t.Context(), test.config, false, epoch)
		got := a.Key()
		isDamaged := strings.Contains(name, "number")
		if err != nil || !IsKey(got) || test.want != "" && got != test.want || test.want == "" && got == made || (damage != nil) != isDamaged {
			t.Errorf("%s: got %q, want %q; %v, %v", name, got, test.want, damage, err)
		}
	}
	file = &memory{fails: fs.ErrPermission}
	a := New(file)
	if _, err := a.Load(t.Context(), unset, false, epoch); !errors.Is(err, fs.ErrPermission) || a.Key() != "" || a.Save(t.Context()) != nil {
		t.Errorf("unreadable: the key is %q, %v", a.Key(), err)
	}
	file.fails = nil
	if _, err := a.Load(t.Context(), unset, false, epoch); err != nil || a.Key() == "" {
		t.Errorf("readable again: the key is %q, %v", a.Key(), err)
	}
}

// TestConfigure: targets that stay go on, new ones are told what changes from now on, and private hosts tell no search engine.
func TestConfigure(t *testing.T) {
	const stored = `{"key":"` + key + `","targets":[null,
		{"kind":"indexnow","url":"https://engine.invented/indexnow","told":{"at":7,"path":"/a"},"accepted":3},
		{"kind":"hub","url":"https://engine.invented/hub","told":{"path":"digest"}}]}`
	c := publicly(IndexNow, IndexNow, Ping, Hub)
	a := loaded(t, &memory{data: []byte(stored)}, c)
	now := Change{At: epoch.Unix()}
	for i, want := range []Change{{7, "/a"}, {}, {Path: "digest"}} {
		if got := a.state.Targets[i]; got.Told != want {
			t.Errorf("target %d: told up to %v, want %v", i, got.Told, want)
		}
	}
	if n := len(a.state.Targets); n != 3 || a.state.Targets[0].Accepted != 3 {
		t.Errorf("%d targets: %+v", n, a.Status(epoch))
	}
	for name, test := range map[string]struct {
		told int64
		want Change
	}{
		"a clock that was ahead": {1 << 40, now},
		"of another version":     {0, now},
	} {
		data, _ := json.Marshal(state{Key: key, Targets: []*target{{Status: Status{Target: c.Targets[0]}, Told: Change{At: test.told}}}})
		if got := loaded(t, &memory{data: data}, c).state.Targets[0].Told; got != test.want {
			t.Errorf("%s: told up to %v, want %v", name, got, test.want)
		}
	}
	for _, origin := range []string{"http://localhost", "https://192.0.2.1", "https://wiki.internal"} {
		c.Origin = origin
		if got := loaded(t, new(memory), c).Status(epoch); len(got) != 2 || got[0].Kind != Ping {
			t.Errorf("%s: %+v", origin, got)
		}
	}
}

// TestFormer: what was stored by queues has its key and what was accepted. What waited is dropped.
func TestFormer(t *testing.T) {
	const stored = `{"key":"` + key + `","known":true,"fresh":["/new"],"fresh_by":"2026-11-22T11:59:00Z","hold":"2026-11-22T12:00:30Z",
		"removed":[{"path":"/gone","at":"2026-11-22T11:58:00Z"}],"targets":[{"kind":"indexnow","url":"https://engine.invented/indexnow",
		"waiting":0,"sent":9,"accepted":7,"refused":1,"dropped":1,"failures":2,"reason":"status 503","last":"2026-11-22T11:00:00Z",
		"next":"2026-11-22T13:00:00Z","added":["/b"],"queued":["/a"],"noted":["/c"],"resent":true,
		"recent":[{"at":"2026-11-22T11:00:00Z","pages":[17293822569102704640]}],"spent":[{"hour":497123,"urls":9}]}]}`
	a := loaded(t, &memory{data: []byte(stored)}, publicly(IndexNow))
	s := a.state.Targets[0]
	if a.Key() != key || !a.state.Known || s.Accepted != 7 || s.Failures != 2 || s.Told != (Change{At: epoch.Unix()}) || s.Until != (Change{}) {
		t.Errorf("known %t, %+v", a.state.Known, s)
	}
}

// TestPublished: documents are told of once the site was crawled once, and when they are others than the target was told.
func TestPublished(t *testing.T) {
	a := loaded(t, new(memory), publicly(Ping, Hub))
	r := &Runner{Now: func() time.Time { return epoch }}
	publish := func(sitemap string, first, complete bool) (waiting []int) {
		a.Published(Publication{first, complete, map[Kind]string{Ping: sitemap, Hub: "feed of " + sitemap}})
		for _, s := range a.state.Targets {
			b, err := a.choose(t.Context(), r, s)
			if err != nil {
				t.Fatal(err)
			}
			waiting = append(waiting, b.waiting)
			s.Until = b.end
		}
		return waiting
	}
	for i, step := range []struct {
		sitemap         string
		first, complete bool
		accepts         bool
		want            int
	}{
		{"some", true, false, false, 0},
		{"more", false, false, false, 0},
		{"all", false, true, false, 0},
		{"all", false, true, false, 0},
		{"another", false, true, false, 1},
		{"all", false, true, false, 0}, // what was told is back
		{"another", false, true, true, 1},
		{"another", false, true, false, 0},
		{"", false, true, false, 0}, // there is none
		{"new", true, true, false, 0},
		{"next", false, false, false, 1},
	} {
		if got := publish(step.sitemap, step.first, step.complete); got[0] != step.want || step.sitemap != "" && got[1] != step.want {
			t.Errorf("step %d: %v wait, want %d", i, got, step.want)
		}
		for _, s := range a.state.Targets {
			if step.accepts {
				s.told(1, epoch)
			}
			s.Until = Change{}
		}
	}
	feedless := loaded(t, new(memory), publicly(Hub))
	feedless.state.Known = true
	feedless.Published(Publication{Complete: true, Documents: map[Kind]string{Hub: "feed"}})
	if got := feedless.state.Targets[0].Told.Path; got != "feed" {
		t.Errorf("a new hub was told of %q", got)
	}
}

// TestSelect: a selection is later than what was told, or is being told, and nothing is told that it may find.
func TestSelect(t *testing.T) {
	a := loaded(t, new(memory), publicly(IndexNow))
	s := a.state.Targets[0]
	s.Told = Change{100, "/a"}
	s.Until = Change{At: 200}
	if n := a.Select(epoch); n.Told != 200 || n.Now != epoch.Unix() || a.Behind() != 100 {
		t.Errorf("got %+v, behind %d", n, a.Behind())
	}
	s.Until = Change{}
	now := epoch.Add(time.Minute)
	r := &Runner{
		Now: func() time.Time { return now },
		Changes: func(context.Context, int64) iter.Seq2[Change, error] {
			return func(yield func(Change, error) bool) {
				_ = yield(Change{epoch.Unix() - 1, "/before"}, nil) && yield(Change{epoch.Unix(), "/found"}, nil)
			}
		},
	}
	for _, want := range [][]string{{"/before"}, {"/before", "/found"}} {
		b, err := a.choose(t.Context(), r, s)
		if err != nil || !slices.Equal(b.paths, want) {
			t.Errorf("got %q, %v, want %q", b.paths, err, want)
		}
		a.Published(Publication{})
	}
	s.Stopped = true
	if a.Behind() != 0 {
		t.Error("a target that is stopped is behind")
	}
}
