package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func init() {
	caddy.RegisterModule(SourceFiles{})
}

// SourceFiles contributes the documents under a file root that file_server
// answers with 200 and no redirect: by default every HTML file.
type SourceFiles struct {
	// The folder on disk. Placeholders are replaced for each site, as in hide and
	// fs; one without a value is an error of the refresh. Default: the site's own
	// root.
	Root string `json:"root,omitempty"`

	// The URL folder under which the root is served. Default: the folder that
	// the site answers for.
	At string `json:"at,omitempty"`

	// Which files are documents: patterns as in Caddy's path matcher, on the URL
	// path of the file. Default: *.html *.htm *.xhtml
	Include []string `json:"include,omitempty"`

	// Which of them are left out all the same: patterns as in Include.
	Exclude []string `json:"exclude,omitempty"`

	// Files and folders to hide, as in file_server; in addition to what the
	// site's own file_server hides.
	Hide []string `json:"hide,omitempty"`

	// The names of index files, the first that exists being the folder's.
	// Default: those of the site's file_server, else index.html, index.txt.
	Index []string `json:"index,omitempty"`

	// Whether /about is listed for about.html: on, off, or auto, which asks the
	// server. Default: auto.
	CleanURLs string `json:"clean_urls,omitempty"`

	// The file system, as in file_server. Default: the site's own.
	FileSystem string `json:"fs,omitempty"`

	at  string
	ctx caddy.Context
}

// CaddyModule returns the Caddy module information.
func (SourceFiles) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.files",
		New: func() caddy.Module { return new(SourceFiles) },
	}
}

// Provision checks the settings.
func (s *SourceFiles) Provision(ctx caddy.Context) error {
	s.ctx = ctx
	return s.check()
}

// check refuses settings that cannot be meant.
func (s *SourceFiles) check() error {
	switch s.CleanURLs {
	case "", "auto", "on", "off":
	default:
		return fmt.Errorf("clean_urls is '%s': it is auto, on or off", s.CleanURLs)
	}
	if s.At != "" {
		if name := bracedName.FindString(s.At); name != "" {
			return fmt.Errorf("at '%s': %s has no value here: placeholders are not replaced", s.At, name)
		}
		at, err := page.Canonical(s.At)
		if err != nil || !isClean(s.At) {
			return fmt.Errorf("at '%s': a URL folder such as /docs is wanted", s.At)
		}
		s.at = at
	}
	for setting, patterns := range map[string][]string{"include": s.Include, "exclude": s.Exclude} {
		if _, err := compilePatterns(setting, patterns); err != nil {
			return err
		}
	}
	for setting, names := range map[string][]string{"index": s.Index, "hide": s.Hide} {
		if slices.Contains(names, "") {
			return fmt.Errorf("%s has an empty name", setting)
		}
	}
	for _, name := range s.Index {
		if found := dottedName.FindString(name); found != "" {
			return fmt.Errorf("index '%s': %s has no value here: placeholders are not replaced", name, found)
		}
		if strings.ContainsAny(name, `/\`) {
			return fmt.Errorf("index '%s' is no file name", name)
		}
	}
	// What a link leads to is for each refresh to say.
	if clean := filepath.Clean(s.Root); s.Root != "" && clean != "." && filepath.Dir(clean) == clean && (s.FileSystem == "" || s.FileSystem == defaultFileSystem) {
		return errHoldsAll(clean)
	}
	return nil
}

// underscored are the include patterns that name what begins with "_".
func (s *SourceFiles) underscored() pathPatterns {
	var named []string
	for _, pattern := range s.Include {
		if strings.Contains(pattern, "/_") {
			named = append(named, pattern)
		}
	}
	patterns, _ := compilePatterns("include", named) // Provision has refused the others
	return patterns
}

// Sorted reports that pages come in the order of their paths.
func (s *SourceFiles) Sorted() bool { return true }

// Pages yields the documents under the root.
func (s *SourceFiles) Pages(ctx context.Context, r *Refresh, yield func(Page) error) error {
	o, err := s.scanned(ctx, r)
	if err != nil || o.Root == "" {
		return err
	}
	stats, err := files.Scan(ctx, o, yield)
	for reason, n := range stats.LeftOut {
		r.LeaveOut(reason, n)
	}
	if len(stats.Unreadable) > 0 {
		r.Warn("unreadable "+o.Root, "some files or folders could not be read", zap.String("root", o.Root),
			zap.Int("count", stats.LeftOut[files.Unreadable]), zap.Strings("first", stats.Unreadable))
	}
	return err
}

// scanned is options with what the server's answers tell of it. An empty root: nothing
// is to be scanned, which was said.
func (s *SourceFiles) scanned(ctx context.Context, r *Refresh) (files.Options, error) {
	o, err := s.options(r)
	if err != nil || o.Root == "" {
		return o, err
	}
	switch s.CleanURLs {
	case "on":
		o.CleanURLs = true
	case "", "auto":
		if err := s.learnClean(ctx, r, &o); err != nil {
			return o, err
		}
	}
	if s.Root != "" || !r.probed.unserved {
		return o, nil
	}
	served, err := rootIsServed(ctx, r, o)
	if err == nil && !served {
		r.Warn("no root", fmt.Sprintf("the site's files are not listed: nothing serves what is in its root, %s: add 'file_server', or name the source of its pages, such as 'urls', or 'files <root>'", o.Root))
		o.Root = ""
	}
	return o, err
}

// options is what to scan. An empty root: the site has none, which was said.
func (s *SourceFiles) options(r *Refresh) (files.Options, error) {
	o := files.Options{
		FS: r.FS, Root: r.Root, At: r.Prefix,
		Include: s.Include, Exclude: s.Exclude,
		Hide: slices.Clone(r.Hide), Index: s.Index,
		Workers: r.Workers, Now: r.Now,
	}
	repl := r.replacer()
	if s.at != "" {
		o.At = strings.TrimSuffix(s.at, "/")
	}
	if o.Index == nil {
		o.Index = r.Index
	}
	for _, hide := range s.Hide {
		name, err := repl.ReplaceOrErr(hide, true, true)
		if err != nil {
			return o, fmt.Errorf("hide '%s': %w", hide, err)
		}
		o.Hide = append(o.Hide, absolute(name))
	}
	if s.FileSystem != "" {
		name, err := repl.ReplaceOrErr(s.FileSystem, true, true)
		if err != nil {
			return o, fmt.Errorf("fs '%s': %w", s.FileSystem, err)
		}
		if o.FS, err = fileSystem(s.ctx, name); err != nil {
			return o, err
		}
	}
	if s.Root != "" {
		// Without the part that it lacks, it may be a folder that holds several sites.
		root, err := repl.ReplaceOrErr(s.Root, true, true)
		if err != nil {
			return o, fmt.Errorf("the root '%s': %w", s.Root, err)
		}
		o.Root = root
	} else if o.Root == "" {
		r.Warn("no root", "the site's files are not listed: "+r.probed.noRoot)
		return o, nil
	}
	if o.FS == nil {
		abs, err := caddy.FastAbs(o.Root)
		if err != nil {
			return o, err
		}
		if o.Root = abs; holdsAll(abs) {
			return o, errHoldsAll(abs)
		}
	}
	return o, nil
}

func errHoldsAll(folder string) error {
	return fmt.Errorf("the root is %s, which holds more than a site: name a folder in it", folder)
}

// holdsAll reports whether a folder is that of everything on a disk, by its name or
// through a link.
func holdsAll(folder string) bool {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	return filepath.Dir(folder) == folder
}

// A few files tell how all of them are served.
const (
	cleanSamples   = 3
	servedSamples  = 5
	cleanBodyLimit = 256 << 10
	absentSuffix   = "-no-such-page-for-the-sitemap" // that no file has
)

// rootIsServed reports whether the server answers for one of a few pages of the root.
// A root may be there for the sake of a proxied application alone.
func rootIsServed(ctx context.Context, r *Refresh, o files.Options) (bool, error) {
	errEnough := errors.New("enough samples")
	front := o.At + "/"
	var samples []string
	hasFront := false
	o.Workers = 1
	_, err := files.Scan(ctx, o, func(p page.Page) error {
		if p.Path == front {
			hasFront = true // which every application has
			return nil
		}
		if samples = append(samples, p.Path); len(samples) == servedSamples {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return false, err
	}
	if len(samples) == 0 && hasFront {
		samples = append(samples, front)
	}
	for _, sample := range samples {
		if served, err := serves(ctx, r, sample); err != nil || served {
			return served, err
		}
	}
	return len(samples) == 0, nil
}

// serves reports whether the server answers for a page with something else than for
// any name.
func serves(ctx context.Context, r *Refresh, path string) (bool, error) {
	answer, err := r.fetch(ctx, path, cleanBodyLimit)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil || answer.Status != http.StatusOK || answer.unhandled {
		return false, nil
	}
	return isItsOwn(ctx, r, path, answer)
}

// isItsOwn reports whether a 200 is that of its path alone: an application may answer
// the same to everything.
func isItsOwn(ctx context.Context, r *Refresh, path string, answer *response) (bool, error) {
	absent, err := r.fetch(ctx, path+absentSuffix, cleanBodyLimit)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err != nil || absent.Status != http.StatusOK || !bytes.Equal(absent.Body, answer.Body), nil
}

// learnClean asks the server whether it serves about.html as /about, and whether it
// does so where there is a folder about, too.
func (s *SourceFiles) learnClean(ctx context.Context, r *Refresh, o *files.Options) error {
	samples, err := files.Sample(ctx, *o, cleanSamples)
	if err != nil {
		return err
	}
	if o.CleanURLs, err = serverCleans(ctx, r, samples); err != nil || !o.CleanURLs && len(samples) > 0 {
		return err
	}
	beside, err := files.SampleBesideFolders(ctx, *o, cleanSamples)
	if err != nil {
		return err
	}
	cleansBeside, err := serverCleans(ctx, r, beside)
	o.CleanURLs, o.KeepBesideFolders = o.CleanURLs || cleansBeside, !cleansBeside
	return err
}

// serverCleans reports whether the server leaves .html out of the URLs of all these
// files, if there are any.
func serverCleans(ctx context.Context, r *Refresh, samples []files.SampleFile) (bool, error) {
	for _, sample := range samples {
		clean, err := cleans(ctx, r, sample)
		if err != nil || !clean {
			return false, err
		}
	}
	return len(samples) > 0, nil
}

// cleans reports whether the server answers with a file's content where the file is
// asked for without .html, and with a redirect there, or the same, where it is asked
// for with it.
func cleans(ctx context.Context, r *Refresh, sample files.SampleFile) (bool, error) {
	clean, err := r.fetch(ctx, sample.Clean, cleanBodyLimit)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil || clean.Status != http.StatusOK || clean.unhandled {
		return false, nil
	}
	full, err := r.fetch(ctx, sample.Path, cleanBodyLimit)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, nil
	}
	if full.Status >= 300 && full.Status < 400 {
		return r.redirects(full, sample.Path, sample.Clean), nil
	}
	if full.Status != http.StatusOK || !bytes.Equal(full.Body, clean.Body) {
		return false, nil
	}
	return isItsOwn(ctx, r, sample.Clean, clean)
}

// Interface guards
var (
	_ caddy.Provisioner = (*SourceFiles)(nil)
	_ SortedSource      = (*SourceFiles)(nil)
)
