package announce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
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
	if err := a.Load(t.Context(), c, false, epoch); err != nil {
		t.Fatal(err)
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
		err := a.Load(t.Context(), test.config, false, epoch)
		got := a.Key()
		isDamaged := strings.Contains(name, "number")
		if !IsKey(got) || test.want != "" && got != test.want || test.want == "" && got == made || (err != nil) != isDamaged {
			t.Errorf("%s: got %q, want %q; %v", name, got, test.want, err)
		}
		if err := a.Load(t.Context(), test.config, false, epoch); err != nil || a.Key() != got {
			t.Errorf("%s: loaded again, got %q, want %q; %v", name, a.Key(), got, err)
		}
	}
	file = &memory{fails: fs.ErrPermission}
	a := New(file)
	if err := a.Load(t.Context(), unset, false, epoch); !errors.Is(err, fs.ErrPermission) || a.Key() != "" || a.Save(t.Context()) != nil {
		t.Errorf("unreadable: the key is %q, %v", a.Key(), err)
	}
	file.fails = nil
	if err := a.Load(t.Context(), unset, false, epoch); err != nil || a.Key() == "" {
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
	for i, want := range []Change{{7, "/a"}, {}, {Path: "digest"}} {
		if got := a.state.Targets[i]; got.Told != want {
			t.Errorf("target %d: told up to %v, want %v", i, got.Told, want)
		}
	}
	if n := len(a.state.Targets); n != 3 || a.state.Targets[0].Accepted != 3 {
		t.Errorf("%d targets: %+v", n, a.Status(epoch))
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
		documents := map[Kind]string{Ping: step.sitemap, Hub: "feed of " + step.sitemap}
		a.Published(Publication{step.first, step.complete, documents})
		for _, s := range a.state.Targets {
			b, err := a.choose(t.Context(), nil, s, epoch)
			isThere := step.sitemap != "" || s.Kind == Ping
			if err != nil || isThere && b.waiting != step.want {
				t.Errorf("step %d: %s waits for %d, %v, want %d", i, s.Kind, b.waiting, err, step.want)
			}
			if step.accepts {
				s.tell(&b, epoch)
			}
		}
	}
	feedless := loaded(t, new(memory), publicly(Hub))
	feedless.state.Known = true
	feedless.Published(Publication{Complete: true, Documents: map[Kind]string{Hub: "feed"}})
	if got := feedless.state.Targets[0].Told.Path; got != "feed" {
		t.Errorf("a new hub was told of %q", got)
	}
}

// TestLeadAgain: a process that leads again does not tell of what it published before another one led.
func TestLeadAgain(t *testing.T) {
	now := epoch
	e := newEngine(t)
	config := e.config(Ping)
	file := new(memory)
	publish := func(a *Announcer, sitemap string) {
		a.Published(Publication{Complete: true, Documents: map[Kind]string{Ping: sitemap}})
	}
	r, _, _ := runner(&now, nil)
	first := loaded(t, file, config)
	publish(first, "one")
	if err := first.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := loaded(t, file, config)
	for i, step := range []struct {
		a        *Announcer
		sitemap  string // "": it has published nothing since
		requests int
	}{
		{second, "two", 1},
		{first, "", 1},
		{first, "two", 1},
		{first, "three", 2},
	} {
		now = now.Add(2 * time.Hour)
		if step.sitemap == "" {
			if err := step.a.Load(t.Context(), config, true, now); err != nil {
				t.Fatal(err)
			}
		} else {
			publish(step.a, step.sitemap)
		}
		step.a.tellAll(t.Context(), r)
		if e.requests != step.requests {
			t.Errorf("step %d: %d requests, want %d", i, e.requests, step.requests)
		}
	}
}

// TestSelect: a selection is later than what was told, or is being told, and nothing is told that it may find.
func TestSelect(t *testing.T) {
	a := loaded(t, new(memory), publicly(IndexNow))
	s := a.state.Targets[0]
	s.Told = Change{100, "/a"}
	s.Until = Change{At: 200}
	if n := a.Select(epoch); n.Told != 200 || n.Now != epoch.Unix() || n.Behind != 100 || a.Behind() != 100 {
		t.Errorf("got %+v, behind %d", n, a.Behind())
	}
	now := epoch.Add(time.Minute)
	records := moved(t, Change{epoch.Unix() - 1, "/before"}, Change{epoch.Unix(), "/found"})
	r := &Runner{Records: func() *record.Generation { return records }}
	for _, want := range []int{1, 2} {
		b, err := a.choose(t.Context(), r, s, now)
		if err != nil || len(b.changes) != want || b.changes[0].Path != "/before" {
			t.Errorf("got %v, %v, want %d", b.changes, err, want)
		}
		a.Published(Publication{})
	}
}

// TestSelectFailing: a target that fails for long does not have the others be told more than they need, and is still told all that changed.
func TestSelectFailing(t *testing.T) {
	config := publicly(IndexNow)
	config.Targets = append(config.Targets, Target{IndexNow, DefaultEndpoint})
	a := loaded(t, new(memory), config)
	a.state.Targets[0].Told.At = 100
	a.state.Targets[1].Told.At = 200
	for _, test := range []struct {
		failures []int
		want     int64
	}{
		{[]int{0, 0}, 100},
		{[]int{5, 0}, 100},
		{[]int{6, 0}, 200},
		{[]int{0, 6}, 100},
		{[]int{6, 6}, 100},
	} {
		for i, n := range test.failures {
			a.state.Targets[i].Failures = n
		}
		if n := a.Select(epoch); n.Behind != test.want || n.Told != 200 || a.Behind() != 100 {
			t.Errorf("failures %v: got %+v, behind %d, want %d", test.failures, n, a.Behind(), test.want)
		}
	}
}

// moved are records with these changes.
func moved(t *testing.T, changes ...Change) *record.Generation {
	t.Helper()
	s := record.New(record.NewMemory(), "")
	if err := s.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var records []record.Record
	for _, c := range changes {
		records = append(records, record.Record{Path: c.Path, Moved: uint32(c.At)})
	}
	w := s.Last().Writer()
	w.Put("", records, nil, nil)
	g, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTell: what a target is told is noted before and after. What may have been received, as Caddy was stopped or there was no
// response, is sent again after the interval; while nothing can be stored, nothing is sent.
func TestTell(t *testing.T) {
	now := epoch
	var outcomes []string
	var failed error
	file := new(memory)
	e := newEngine(t)
	config := e.config(IndexNow)
	config.Daily = DefaultDaily
	a := loaded(t, file, config)
	a.Published(Publication{Complete: true, Documents: make(map[Kind]string)})
	records := moved(t, Change{epoch.Unix() + 1, "/a"}, Change{epoch.Unix() + 2, "/b"})
	r := &Runner{
		Client:  NewClient("test", 1),
		Now:     func() time.Time { return now },
		Fetch:   site,
		Records: func() *record.Generation { return records },
		Done:    func(urls int, o Outcome, _ Status) { outcomes = append(outcomes, fmt.Sprint(urls, o.Reason == "")) },
		Failed:  func(err error) { failed = err },
	}
	stopped, stop := context.WithCancel(t.Context())
	for i, step := range []struct {
		ctx     context.Context
		at      time.Duration
		saves   error
		respond http.HandlerFunc
		waiting int
		pause   time.Duration
		sent    int // requests so far
		done    string
	}{
		{t.Context(), time.Second, nil, nil, 2, time.Second, 0, ""},
		{t.Context(), 3 * time.Second, fs.ErrPermission, nil, 2, time.Minute, 0, ""},
		{t.Context(), 603 * time.Second, nil, hijack(""), 2, 0, 1, "2 false"},
		{t.Context(), 1202 * time.Second, nil, nil, 2, time.Second, 1, ""},
		{stopped, 1203 * time.Second, nil, func(http.ResponseWriter, *http.Request) { stop() }, 2, time.Minute, 2, ""},
		{t.Context(), 1802 * time.Second, nil, nil, 2, time.Second, 2, ""},
		{t.Context(), 1803 * time.Second, nil, nil, 0, 0, 3, "2 true"},
		{t.Context(), 1804 * time.Second, nil, nil, 0, time.Minute, 3, ""},
	} {
		now = epoch.Add(step.at)
		outcomes = nil
		file.fails = step.saves
		e.mu.Lock()
		e.respond = step.respond
		e.mu.Unlock()
		pause := a.tellAll(step.ctx, r)
		s := a.Status(now)[0]
		done := strings.Join(outcomes, ", ")
		if s.Waiting != step.waiting || pause != step.pause || e.requests != step.sent || done != step.done || !errors.Is(failed, step.saves) {
			t.Errorf("step %d: %d wait, pause %s, %d requests, %q, %v, want %+v", i, s.Waiting, pause, e.requests, done, failed, step)
		}
	}
}

// runner is one of a site with some records. It counts how often they are read, and collects the reasons of failures.
func runner(now *time.Time, records *record.Generation) (r *Runner, reads *int, reasons *[]string) {
	reads = new(int)
	reasons = new([]string)
	return &Runner{
		Client: NewClient("test", 1),
		Now:    func() time.Time { return *now },
		Fetch:  site,
		Records: func() *record.Generation {
			*reads++
			return records
		},
		Done:   func(_ int, o Outcome, _ Status) { *reasons = append(*reasons, o.Reason) },
		Failed: func(error) {},
	}, reads, reasons
}

// TestRest: until a target is due, which is on the next day once it was told all of a day's URLs, records are read once for each
// publication. So what waits is always known.
func TestRest(t *testing.T) {
	for name, test := range map[string]struct {
		daily   int
		respond http.HandlerFunc
		waiting int
		next    time.Duration
	}{
		"the day is used up": {1, nil, 1, 12 * time.Hour},
		"it fails":           {9, reply(503, "", "Retry-After", "7200"), 2, 2*time.Hour + time.Minute},
		"nothing waits":      {9, nil, 0, 0},
	} {
		now := epoch.Add(time.Minute)
		e := newEngine(t)
		e.respond = test.respond
		config := e.config(IndexNow)
		config.Daily = test.daily
		a := loaded(t, new(memory), config)
		r, reads, _ := runner(&now, moved(t, Change{epoch.Unix() + 1, "/a"}, Change{epoch.Unix() + 2, "/b"}))
		for i := range 3 {
			a.Published(Publication{Documents: make(map[Kind]string)})
			for range 3 {
				pause := a.tellAll(t.Context(), r)
				if e.requests > 1 || i > 0 && pause != time.Minute {
					t.Errorf("%s: %d requests, pause %s", name, e.requests, pause)
				}
			}
		}
		var next time.Time
		if test.waiting > 0 {
			next = epoch.Add(test.next)
		}
		s := a.Status(now)[0]
		if *reads != 3 || s.Waiting != test.waiting || !s.Next.Equal(next) {
			t.Errorf("%s: records are read %d times; %+v", name, *reads, s)
		}
		now = now.Add(12 * time.Hour)
		e.respond = nil
		a.tellAll(t.Context(), r)
		if s := a.Status(now)[0]; s.Waiting != 0 || s.Accepted != 2 {
			t.Errorf("%s: once it is due: %+v", name, s)
		}
	}
}

// TestUnpublished: while a selection goes on for long, what waits for its end is not looked for each second.
func TestUnpublished(t *testing.T) {
	now := epoch.Add(time.Minute)
	e := newEngine(t)
	config := e.config(IndexNow)
	config.Daily = DefaultDaily
	a := loaded(t, new(memory), config)
	a.Published(Publication{Documents: make(map[Kind]string)})
	r, _, _ := runner(&now, moved(t, Change{epoch.Unix() + 90, "/a"}))
	a.Select(now)
	now = now.Add(time.Hour)
	if pause := a.tellAll(t.Context(), r); pause != time.Minute || e.requests != 0 {
		t.Errorf("amid a selection: %d requests, pause %s", e.requests, pause)
	}
	a.Published(Publication{Documents: make(map[Kind]string)})
	a.tellAll(t.Context(), r)
	if e.requests != 1 {
		t.Errorf("once it is published: %d requests", e.requests)
	}
}
