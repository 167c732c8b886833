package sitemap

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// TestAbsences: what is remembered has a bound.
func TestAbsences(t *testing.T) {
	var a absences
	if _, ok := a.get(1); ok {
		t.Error("found before it was put there")
	}
	for i := range uint64(maxAbsences + 10) {
		a.put(i, absence{soft: true})
		if got, ok := a.get(i); !ok || !got.soft {
			t.Fatalf("%d is forgotten at once", i)
		}
		if len(a.byPath) > maxAbsences {
			t.Fatalf("%d are remembered", len(a.byPath))
		}
	}
}

func TestAbsentBeside(t *testing.T) {
	for path, want := range map[string]string{
		"/a":                       "/none",
		"/a/":                      "/none",
		"/a/b":                     "/a/none",
		"/a/b/":                    "/a/none",
		"/index.php?page=b":        "/index.php?page=none",
		"/index.php?page=b&lang=d": "/index.php?page=b&lang=none",
	} {
		if got := absentBeside(path, "none"); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// TestSoftness asks an application that answers to whatever is made up in one of the
// ways in which applications do.
func TestSoftness(t *testing.T) {
	var answer atomic.Pointer[http.HandlerFunc]
	var probes atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.String(), "no-such-page-") {
			probes.Add(1)
		}
		(*answer.Load())(w, r)
	}))
	defer app.Close()
	say := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if strings.Contains(r.URL.String(), "no-such-page-") {
				w.WriteHeader(status)
			}
			_, _ = fmt.Fprintf(w, "<!doctype html><title>x</title><main>%s</main>", strings.ReplaceAll(text, "{path}", r.URL.String()))
		}
	}
	for _, test := range []struct {
		name, path string
		answer     http.HandlerFunc
		want       []verdict.Reason // of asks two hours apart
	}{
		{"the same for all", "/a", say(200, "sorry"), []verdict.Reason{verdict.SoftNotFound}},
		{"another text for each", "/a/b", say(200, "this is {path}"), []verdict.Reason{verdict.Good}},
		{"by query", "/index.php?page=b", say(200, "no such thing"), []verdict.Reason{verdict.SoftNotFound}},
		{"not found", "/a", say(404, "sorry"), []verdict.Reason{verdict.Good}},
		{"gone", "/a", say(410, "sorry"), []verdict.Reason{verdict.Good}},
		{"too many asks, as long as the page is not known", "/a", say(429, "sorry"), []verdict.Reason{verdict.Unknown, verdict.Good}},
		{"an error each time", "/a", say(500, "sorry"), []verdict.Reason{verdict.Unknown, verdict.Good}},
	} {
		t.Run(test.name, func(t *testing.T) {
			none := http.NotFoundHandler().ServeHTTP
			answer.Store((*http.HandlerFunc)(&none))
			u := hush(t, ":8080 {\n\tsitemap {\n\t\tbase_url http://localhost:8080\n\t\task {\n\t\t\trate 1000/s\n\t\t}\n\t\tlinks {\n\t\t\tquery page\n\t\t}\n\t}\n\treverse_proxy "+app.Listener.Addr().String()+"\n}")
			var s *site
			for _, s = range u.app.sites {
			}
			<-s.ready
			answer.Store(&test.answer)
			students, err := newStudents(s, nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer dismiss(students)
			rec := &state.Record{Page: page.Page{Path: test.path}, Flags: verdict.FlagDiscovered}
			for i, want := range test.want {
				if i > 0 {
					key := verdict.Hash(absentBeside(test.path, u.app.absentName))
					last, _ := s.absences.get(key)
					last.at = last.at.Add(-2 * time.Hour)
					s.absences.put(key, last)
				}
				before := probes.Load()
				for range 2 { // the second time it is known what does not exist answers
					s.pace.mu.Lock()
					s.pace.next = time.Time{}
					s.pace.mu.Unlock()
					students[0].ask(t.Context(), rec)
					if got := verdict.Reason(rec.Answer); got != want {
						t.Errorf("ask %d: got %q, want %q", i, got, want)
					}
				}
				if got := probes.Load() - before; got != 1 {
					t.Errorf("ask %d: %d probes, want 1", i, got)
				}
			}
		})
	}
}

// TestSoftnessCutShort: a page of which it is not known yet whether it is one, because
// asking ended, is one that was not asked for; else it would wait for an hour.
func TestSoftnessCutShort(t *testing.T) {
	var cut atomic.Pointer[context.CancelFunc]
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if cancel := cut.Load(); cancel != nil && strings.Contains(r.URL.Path, "no-such-page-") {
			(*cancel)()
		}
		_, _ = fmt.Fprintf(w, "<!doctype html><title>x</title><main>%s</main>", r.URL.Path)
	}))
	defer app.Close()
	u := hush(t, ":8080 {\n\tsitemap {\n\t\tbase_url http://localhost:8080\n\t\task {\n\t\t\trate 1000/s\n\t\t}\n\t\tlinks\n\t}\n\treverse_proxy "+app.Listener.Addr().String()+"\n}")
	var s *site
	for _, s = range u.app.sites {
	}
	<-s.ready
	students, err := newStudents(s, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer dismiss(students)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cut.Store(&cancel)
	rec := &state.Record{Page: page.Page{Path: "/folder/a"}, Flags: verdict.FlagDiscovered}
	if students[0].ask(ctx, rec) {
		t.Errorf("it counts as asked for, with the answer %q", verdict.Reason(rec.Answer))
	}
}
