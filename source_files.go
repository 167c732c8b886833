package sitemap

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// SourceFiles contributes the documents in a folder that `file_server` serves with 200 and without a
// redirect: by default, all HTML files.
//
//	sitemap {
//		files {
//			include *.pdf
//			exclude /drafts/*
//		}
//		files /srv/manual {
//			at /manual
//		}
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "sources": [
//		{"source": "files", "include": ["*.pdf"], "exclude": ["/drafts/*"]},
//		{"source": "files", "root": "/srv/manual", "at": "/manual"}
//	]}
//
// In `root`, `hide` and `fs`, global placeholders are replaced and those of the site's host, such as
// `{http.request.host}`. One without a value is an error of the refresh.
type SourceFiles struct {
	// The folder on disk. Placeholders are replaced. Default: the root of the site, and those of its folders that are
	// served from other roots.
	Root string `json:"root,omitempty"`

	// The URL folder of the root: several roots can make one site. Default: the path prefix of the site.
	At string `json:"at,omitempty"`

	// Patterns of URL paths that are documents, besides `*.html`, `*.htm` and `*.xhtml`. Default: none.
	Include []string `json:"include,omitempty"`

	// Patterns of URL paths that are documents, instead of `*.html`, `*.htm` and `*.xhtml`. Default: none.
	IncludeOnly []string `json:"include_only,omitempty"`

	// Patterns of URL paths of documents that are left out. Default: none.
	Exclude []string `json:"exclude,omitempty"`

	// Files and folders to hide, as in `file_server`, besides those that the site's `file_server`
	// hides. Placeholders are replaced. Default: none.
	Hide []string `json:"hide,omitempty"`

	// The names of index files; the first that exists in a folder is listed as the folder. Default:
	// those of the site's `file_server`, else `index.html`, `index.txt`.
	Index []string `json:"index,omitempty"`

	// Whether `about.html` is listed as `/about`: `on`, `off`, or `auto`, which requests a few pages after each start and
	// reload to find out. Default: `auto`.
	CleanURLs string `json:"clean_urls,omitempty"`

	// The name of the file system, as in `file_server`. Placeholders are replaced. Default: that of the site.
	FileSystem string `json:"fs,omitempty"`

	at       string
	front    string         // see files.Options; with a root of its own
	included *notedPatterns // of Include and IncludeOnly; nil: there are none
}

// CaddyModule returns the Caddy module information.
func (SourceFiles) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.files", New: func() caddy.Module { return new(SourceFiles) }}
}

// check refuses settings that cannot be meant.
func (s *SourceFiles) check() error {
	var c option.Checker
	if s.FileSystem == "" || s.FileSystem == defaultFileSystem {
		c.Note(files.CheckRoot(s.Root))
	}
	c.Choose("clean_urls", s.CleanURLs, "auto", "on", "off")
	at, err := page.Normal(s.At)
	isFolder := err == nil && page.IsClean(s.At) && !strings.Contains(s.At, "{")
	c.Refuse(s.At != "" && !isFolder, "at '%s': use a URL folder such as /docs", s.At)
	s.at = strings.TrimSuffix(at, "/")
	included := compilePatterns(&c, "include", s.Include)
	included = append(included, compilePatterns(&c, "include_only", s.IncludeOnly)...)
	if included != nil {
		s.included = &notedPatterns{pathPatterns: included}
	}
	compilePatterns(&c, "exclude", s.Exclude)
	for _, name := range s.Index {
		c.Refuse(name == "" || strings.ContainsAny(name, `/\{}`), "index '%s' is not a file name", name)
	}
	return c.Err
}

func (*SourceFiles) sorted() bool { return true }

// pages yields the documents under the root.
func (s *SourceFiles) pages(ctx context.Context, r *Refresh, yield func(page.Page) error) error {
	o, err := s.options(r)
	if err != nil {
		return err
	}
	// An application that starts later than the server may need no root: pages are found by links then, which is known only once
	// it responds. Another warning says that robots.txt fails.
	mayBeByLinks := r.site.handler.isDefault && r.probed.robots.closed
	isBeside := len(r.probed.beside) > 0 // all files are in other roots
	isUnserved := s.Root == "" && r.probed.unserved
	if o.Root == "" || isUnserved {
		why := r.probed.noRoot
		if o.Root != "" {
			why = fmt.Sprintf("no 'file_server' serves its root, %s: "+
				"add one, or name a source such as 'links', 'urls' or 'files <root>'", o.Root)
		}
		isExpected := isBeside || o.Root == "" && mayBeByLinks
		if !isExpected {
			r.Warn("no root", "the site's files are not listed: "+why)
		}
		return nil
	}
	o.Clean = s.hasCleanURLs(ctx, r, &o)
	o.Watch = r.site.watch
	stats, err := files.Scan(ctx, o, func(p page.Page) error {
		// Some build systems and archives write the epoch, or 1980, for none. A time in the future is that of another clock.
		isPossible := page.Earliest <= p.FileTime && p.FileTime <= r.Now.Unix()
		if !isPossible {
			p.FileTime = 0
		}
		return yield(p)
	})
	for reason, n := range stats.LeftOut {
		r.LeaveOut(reason, n)
	}
	if len(stats.Unreadable) > 0 {
		r.Warn("unreadable "+o.Root, "cannot read some files or folders",
			zap.String("root", o.Root),
			zap.Int("uid", os.Getuid()),
			zap.Int("count", stats.LeftOut[files.Unreadable]),
			zap.Strings("first", stats.Unreadable))
	}
	return err
}

// hasCleanURLs reports whether the server shows files without ".html". That is learnt once in a configuration.
func (s *SourceFiles) hasCleanURLs(ctx context.Context, r *Refresh, o *files.Options) bool {
	if s.CleanURLs == "on" || s.CleanURLs == "off" {
		return s.CleanURLs == "on"
	}
	root := o.At + " " + o.Root
	if learnt, isKnown := r.site.cleanURLs.Load(root); isKnown {
		return learnt.(bool)
	}
	get := func(path string) files.Response { return r.fetchFile(ctx, path) }
	learnt, isKnown := files.LearnClean(ctx, *o, get)
	if isKnown {
		r.site.cleanURLs.Store(root, learnt)
	}
	return learnt
}

// maxCompared bytes of two responses tell whether they are one page.
const maxCompared = 256 << 10

// fetchFile requests a path of the site, to learn how its file server spells URLs; the zero value: no response.
func (r *Refresh) fetchFile(ctx context.Context, path string) files.Response {
	res, err := r.site.fetcher.get(ctx, crawl.Request{Path: r.site.internalPath(path), Limit: maxCompared}, nil)
	if err != nil {
		return files.Response{}
	}
	return files.Response{Status: res.Status, Body: res.Body}
}

// options is what to scan. An empty root: the site has none.
func (s *SourceFiles) options(r *Refresh) (o files.Options, err error) {
	repl := r.replacer()
	replaced := slices.Concat([]string{s.Root, s.FileSystem}, s.Hide)
	for i, value := range replaced {
		// Without the part that it lacks, a root may be a folder that holds several sites.
		replaced[i], err = repl.ReplaceOrErr(value, true, true)
		if err != nil {
			return o, fmt.Errorf("'%s': %w", value, err)
		}
	}
	o = files.Options{
		FS:       r.FS,
		Root:     cmp.Or(replaced[0], r.Root),
		At:       r.Prefix,
		Includes: s.includes,
		Include:  slices.Concat(s.IncludeOnly, s.Include),
		Exclude:  slices.Concat(s.Exclude, r.probed.standIns),
		Hide:     slices.Clone(r.Hide),
		Index:    s.Index,
		Front:    s.front,
	}
	for _, hide := range replaced[2:] {
		o.Hide = append(o.Hide, absolute(hide))
	}
	if s.At != "" {
		o.At = s.at
	}
	if o.Index == nil {
		o.Index = r.Index
	}
	if s.Root == "" {
		o.Front = r.probed.front
	}
	for _, source := range r.probed.beside {
		other := source.(*SourceFiles)
		if strings.HasPrefix(other.at, o.At+"/") {
			o.Exclude = append(o.Exclude, other.at+"/*")
		}
	}
	o.Excludes = compilePatterns(new(option.Checker), "", o.Exclude).Match
	if name := replaced[1]; name != "" {
		o.FS, err = fileSystem(r.site.handler.ctx, name)
	}
	return o, err
}

// includes reports whether a file is a document by its path.
func (s *SourceFiles) includes(path string) bool {
	isIncluded := s.included != nil && s.included.Match(path)
	return isIncluded || s.IncludeOnly == nil && page.IsFile(path)
}

// fileSpelling returns the path of a list's page in the spelling of the file's name if a source lists a file at it: both are one page,
// and what the list says of it is not lost. Other paths stay as they are spelled.
func (r *Refresh) fileSpelling(path string) string {
	bare := page.Bare(path)
	listsFiles := slices.ContainsFunc(r.site.sources(), func(source input) bool {
		s, isFiles := source.(*SourceFiles)
		return isFiles && (s.Root != "" || !r.probed.unserved)
	})
	if bare == path || !listsFiles || r.fileTime(bare) == 0 {
		return path
	}
	return bare
}

// fileTime returns the modification time of the file in the site's root that is served at a path, in Unix seconds; 0: there is none.
func (r *Refresh) fileTime(path string) int64 {
	return files.TimeOf(files.Options{FS: r.FS, Root: r.Root, At: r.Prefix, Index: r.Index}, path)
}
