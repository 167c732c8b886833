package sitemap

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Page is one URL of a site and what is known of it.
type Page = page.Page

// Source contributes pages to a site. Sources are guest modules in the
// namespace http.sitemap.sources.
type Source interface {
	// Pages calls yield once for every page that the source knows of, until
	// yield returns an error, which Pages then returns. Each refresh of a site
	// calls it anew, one refresh at a time for a site, but sites side by side.
	// It ends soon after ctx is cancelled.
	//
	// An error other than yield's says that the source could not be read; what
	// it yielded until then counts, but the refresh is not believed at once.
	Pages(ctx context.Context, r *Refresh, yield func(Page) error) error
}

// SortedSource is a [Source] that yields its pages in the order of their paths'
// bytes, and so spares gather the sorting.
type SortedSource interface {
	Source
	Sorted() bool
}

// Refresh is what a source may know of the refresh that it contributes to.
type Refresh struct {
	// BaseURL is scheme, host and port of the site, such as https://example.com.
	BaseURL string

	// Folder is the URL folder that the site answers for, percent-encoded,
	// without a slash at its end; "" for all.
	Folder string

	// Root is the site's file root, "" where none could be found; Hide and Index
	// are what its file server hides, and its index names, if one was found.
	Root  string
	Hide  []string
	Index []string

	// FS is the site's file system; nil: the operating system's own.
	FS fs.FS

	// Workers is how many cores the source may use.
	Workers int

	// Now is the time at which the refresh began.
	Now time.Time

	Logger *zap.Logger

	site    *site
	sight   sight                // of the site
	hear    func(message string) // gets what is said, which is then not logged; nil: it is
	mu      sync.Mutex
	leftOut map[string]int
	sources []sourceReport  // by their number
	warned  []string        // what was said
	said    map[string]bool // kinds
}

// Ask asks the site for a path of its URLs, percent-encoded and with its query, as a
// stranger would, and keeps up to limit bytes of the body. A site that answers with
// an error status has answered; the error here means that it did not.
func (r *Refresh) Ask(ctx context.Context, path string, limit int) (*Answer, error) {
	return r.site.askPage(ctx, nil, http.MethodGet, path, limit, nil)
}

// locates reports whether a redirect from one path of the site leads to another.
func (r *Refresh) locates(redirect *Answer, from, to string) bool {
	base, err := url.Parse(r.BaseURL + from)
	if err != nil {
		return false
	}
	location, err := base.Parse(redirect.Header.Get("Location"))
	return err == nil && location.EscapedPath() == to
}

// replacer replaces global placeholders and those of the site's host.
func (r *Refresh) replacer() *caddy.Replacer {
	repl := caddy.NewReplacer()
	u, err := url.Parse(r.BaseURL)
	if err != nil {
		return repl
	}
	repl.Set("http.request.host", u.Hostname())
	repl.Set("http.request.hostport", u.Host)
	repl.Set("http.request.port", u.Port())
	repl.Set("http.request.scheme", u.Scheme)
	labels := strings.Split(u.Hostname(), ".")
	for i := range labels {
		repl.Set("http.request.host.labels."+strconv.Itoa(i), labels[len(labels)-1-i])
	}
	return repl
}

// tell logs a message once, and not again while a later refresh says the same.
func (r *Refresh) tell(kind, message string, fields ...zap.Field) {
	r.say(zapcore.InfoLevel, kind, message, fields)
}

// Say logs a warning about the source, and not again while a later refresh says the
// same of the same kind.
func (r *Refresh) Say(kind, message string, fields ...zap.Field) {
	r.say(zapcore.WarnLevel, kind, message, fields)
}

func (r *Refresh) say(level zapcore.Level, kind, message string, fields []zap.Field) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hear != nil {
		r.hear(message)
		return
	}
	r.site.say(level, r.note(kind), message, fields...)
	if level == zapcore.WarnLevel && len(r.warned) < maxWarnings {
		r.warned = append(r.warned, message)
	}
}

// note takes down what kind of thing is said. Under mu.
func (r *Refresh) note(kind string) string {
	if r.said == nil {
		r.said = make(map[string]bool)
	}
	kind = sourceKind + kind
	r.said[kind] = true
	return kind
}

// panicked makes an error of what a source of pages threw. Where that happened is
// logged once.
func (r *Refresh) panicked(name string, v any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := fmt.Errorf("panic: %v", v)
	if r.hear != nil {
		return err
	}
	if kind := r.note("panic " + name); r.site.said[kind] != err.Error() {
		r.site.said[kind] = err.Error()
		r.site.log(zapcore.ErrorLevel, "a source of pages panicked", zap.String("source", name), zap.Any("panic", v), zap.Stack("stack"))
	}
	return err
}
