package sitemap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// asking is an asker of a server that is one handler.
func asking(handler func(http.ResponseWriter, *http.Request) error) *asker {
	return &asker{server: new(caddyhttp.Server), routes: caddyhttp.HandlerFunc(handler)}
}

var home = question{method: http.MethodGet, base: "http://example.com", path: "/", limit: 100}

// TestAskAnswers is what becomes of what a handler does.
func TestAskAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		handler func(http.ResponseWriter, *http.Request) error
		want    Answer
		err     string
	}{
		"nothing": {
			func(http.ResponseWriter, *http.Request) error { return nil },
			Answer{Status: 200}, "",
		},
		"nothing, which Caddy notes": {
			func(_ http.ResponseWriter, r *http.Request) error {
				caddyhttp.SetVar(r.Context(), "unhandled", true)
				return nil
			},
			Answer{Status: 200, Unhandled: true}, "",
		},
		"a body": {
			func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("X-Before", "yes")
				_, err := io.WriteString(w, "hello")
				w.Header().Set("X-After", "yes")
				return err
			},
			Answer{Status: 200, Header: http.Header{"X-Before": {"yes"}}, Body: []byte("hello")}, "",
		},
		"a status": {
			func(w http.ResponseWriter, _ *http.Request) error {
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusTeapot)
				w.WriteHeader(http.StatusOK)
				return nil
			},
			Answer{Status: 418}, "",
		},
		"an error of Caddy's": {
			func(http.ResponseWriter, *http.Request) error {
				return caddyhttp.Error(http.StatusForbidden, errors.New("no"))
			},
			Answer{Status: 403}, "",
		},
		"an error of another kind": {
			func(http.ResponseWriter, *http.Request) error { return errors.New("no") },
			Answer{Status: 500}, "",
		},
		"an error after the answer": {
			func(w http.ResponseWriter, _ *http.Request) error {
				_, _ = io.WriteString(w, "some")
				return caddyhttp.Error(http.StatusBadGateway, errors.New("no"))
			},
			Answer{Status: 200, Body: []byte("some")}, "",
		},
		"a body of just the limit": {
			func(w http.ResponseWriter, _ *http.Request) error {
				_, err := io.WriteString(w, strings.Repeat("x", 100))
				return err
			},
			Answer{Status: 200, Body: []byte(strings.Repeat("x", 100))}, "",
		},
		"a body past the limit": {
			func(w http.ResponseWriter, r *http.Request) error {
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, strings.Repeat("x", 30))
				}
				return r.Context().Err()
			},
			Answer{Status: 200, Body: []byte(strings.Repeat("x", 100)), Truncated: true}, "",
		},
		"a body past the limit, aborted then": {
			func(w http.ResponseWriter, _ *http.Request) error {
				if _, err := io.WriteString(w, strings.Repeat("x", 101)); err != nil {
					panic(http.ErrAbortHandler)
				}
				return nil
			},
			Answer{Status: 200, Body: []byte(strings.Repeat("x", 100)), Truncated: true}, "",
		},
		"abort": {
			func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) },
			Answer{}, "the connection was aborted",
		},
		"abort half-way": {
			func(w http.ResponseWriter, _ *http.Request) error {
				_, _ = io.WriteString(w, "some")
				panic(http.ErrAbortHandler)
			},
			Answer{}, "the connection was aborted",
		},
		"a panic": {
			func(http.ResponseWriter, *http.Request) error { panic("oops") },
			Answer{}, "panic: oops",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := asking(test.handler).ask(context.Background(), home)
			if test.err != "" {
				if got != nil || err == nil || err.Error() != test.err {
					t.Errorf("got %+v, %v, want %q", got, err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != test.want.Status || string(got.Body) != string(test.want.Body) || got.Truncated != test.want.Truncated || got.Unhandled != test.want.Unhandled {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if got.Header.Get("X-Before") != test.want.Header.Get("X-Before") || got.Header.Get("X-After") != "" {
				t.Errorf("got headers %v, want %v", got.Header, test.want.Header)
			}
		})
	}
}

// TestAskRequest is how an ask looks: a stranger's, and complete.
func TestAskRequest(t *testing.T) {
	var seen *http.Request
	a := asking(func(_ http.ResponseWriter, r *http.Request) error {
		seen = r
		return nil
	})
	for name, test := range map[string]struct {
		base, path string
		host, url  string
		https      bool
	}{
		"http":      {"http://example.com", "/a%20b?x=1", "example.com", "/a%20b?x=1", false},
		"odd port":  {"http://example.com:8080", "/", "example.com:8080", "/", false},
		"https":     {"https://example.com:8443", "/a%2Fb", "example.com:8443", "/a%2Fb", true},
		"IPv6":      {"https://[2001:db8::1]", "/", "[2001:db8::1]", "/", true},
		"Latin-1":   {"http://example.com", "/caf%E9", "example.com", "/caf%E9", false},
		"two slash": {"http://example.com", "//x/y", "example.com", "//x/y", false},
	} {
		q := question{method: http.MethodHead, base: test.base, path: test.path, limit: 1}
		if _, err := a.ask(context.Background(), q); err != nil {
			t.Fatal(err)
		}
		r := seen
		if r.Method != http.MethodHead || r.Host != test.host || r.URL.RequestURI() != test.url || r.RequestURI != test.url {
			t.Errorf("%s: got %s %s %s (%s)", name, r.Method, r.Host, r.URL.RequestURI(), r.RequestURI)
		}
		if addr, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || addr.Addr() != netip.MustParseAddr("192.0.2.1") {
			t.Errorf("%s: it comes from %s", name, r.RemoteAddr)
		}
		if got := r.UserAgent(); !strings.Contains(got, "bot") || !strings.Contains(got, "caddy-sitemap") {
			t.Errorf("%s: the User-Agent is %q", name, got)
		}
		for _, header := range []string{"Cookie", "Authorization", "Accept-Encoding", "Range", "X-Forwarded-For"} {
			if r.Header.Get(header) != "" {
				t.Errorf("%s: it has %s: %s", name, header, r.Header.Get(header))
			}
		}
		if skip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.LogSkipVar).(bool); !skip {
			t.Errorf("%s: it would be logged", name)
		}
		if (r.TLS != nil) != test.https || r.ProtoAtLeast(2, 0) != test.https {
			t.Errorf("%s: TLS is %+v, the protocol %s", name, r.TLS, r.Proto)
		}
		if r.TLS != nil && (!r.TLS.HandshakeComplete || r.TLS.NegotiatedProtocol != "h2" || r.TLS.ServerName != strings.Trim(target(test.base), "[]")) {
			t.Errorf("%s: TLS is %+v", name, r.TLS)
		}
		if r.Body == nil {
			t.Errorf("%s: the body is nil", name)
		}
		if _, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ Network() string }); !ok {
			t.Errorf("%s: it has no local address", name)
		}
	}
	if _, err := a.ask(context.Background(), question{method: http.MethodGet, base: "http://example.com", path: "/%zz"}); err == nil {
		t.Error("a path that is none was asked for")
	}
}

// target is the host name in a base URL.
func target(base string) string {
	_, host, _ := strings.Cut(base, "://")
	host, _ = cleanHost(host)
	return host
}

// TestAskEnds is that a handler which waits is given up: after a while, and at once
// when the context ends.
func TestAskEnds(t *testing.T) {
	waits := asking(func(_ http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return caddyhttp.Error(http.StatusBadGateway, r.Context().Err())
	})
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if got, err := waits.ask(t.Context(), home); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != askTimeout {
			t.Errorf("got %+v, %v after %s, want %v after %s", got, err, time.Since(begun), context.DeadlineExceeded, askTimeout)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		if got, err := waits.ask(ctx, home); !errors.Is(err, context.Canceled) || time.Since(begun) != time.Second {
			t.Errorf("got %+v, %v after %s, want %v after a second", got, err, time.Since(begun), context.Canceled)
		}
	})
}

// TestAskUnhandled is the end of a server's routes.
func TestAskUnhandled(t *testing.T) {
	got, err := newAsker(new(caddyhttp.Server)).ask(context.Background(), home)
	if err != nil || !got.Unhandled || got.Status != http.StatusOK {
		t.Errorf("got %+v, %v, want an answer that is unhandled", got, err)
	}
}

func BenchmarkAsk(b *testing.B) {
	a := asking(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.ask(context.Background(), home); err != nil {
			b.Fatal(err)
		}
	}
}
