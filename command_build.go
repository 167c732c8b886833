package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/export"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

func buildCommand() *cobra.Command {
	var b build
	cmd := &cobra.Command{
		Use:   "build --root <folder> --base-url <url> | --config <file>",
		Short: "Writes a site's sitemap into a folder, without a server",
		Long: `
Writes what the sitemap handler would serve, for static hosting and CI: for a folder
that a file server serves at a URL, or for each site of a configuration. A build
without pages, or with less than half of the pages of the last one, fails and writes
nothing.

Exit status: 0 on success, 1 if the build failed, 2 if the usage is invalid.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fail(cmd, fmt.Errorf("unexpected argument '%s': the site's folder is named by --root", args[0]))
			}
			if err := b.check(); err != nil {
				return fail(cmd, err)
			}
			err := b.run(cmd.Context())
			if err != nil {
				b.Error = err.Error()
			}
			quiet, _ := cmd.Flags().GetBool("quiet")
			if quiet {
				return err
			}
			// The summary is printed of a build that failed, too.
			unprinted := b.Print(cmd.OutOrStdout(), b.json)
			return errors.Join(err, unprinted)
		},
	}
	flags := cmd.Flags()
	flags.Func("root", "The site's `folder`", func(value string) (err error) {
		b.root = value
		_, err = os.ReadDir(value)
		return err
	})
	flags.Func("base-url", "The `URL` at which the folder is served, such as https://example.com/docs", func(value string) (err error) {
		b.baseURL = value
		_, b.prefix, err = origin.ParseBase(value)
		return err
	})
	flags.BoolVar(&b.crawl, "crawl", true, "Fetch the pages; with =false, list them by name")
	flags.StringVarP(&b.config, "config", "c", "", "The configuration whose sites are built")
	flags.StringVarP(&b.adapter, "adapter", "a", "", "The config adapter for it")
	flags.StringVarP(&b.out, "out", "o", "", "Where the files are written (default: the root)")
	flags.StringVar(&b.state, "state", "", "A folder that remembers pages, so that the next build knows when texts changed")
	flags.BoolVar(&b.gzip, "gzip", false, "Also write each document as .xml.gz")
	flags.BoolVar(&b.stylesheet, "stylesheet", true, "Write a stylesheet, with which browsers show the sitemap as a table")
	flags.BoolVar(&b.robots, "robots", true, "Write the site's own robots.txt with the Sitemap line")
	flags.BoolVar(&b.force, "force", false, "Replace files that no build wrote, and write less than half of the pages of the last build")
	flags.BoolVar(&b.json, "json", false, "Print the summary as one JSON object")
	return cmd
}

// build is one run of the command: its flags and its summary.
type build struct {
	root, baseURL, config, adapter, out, state string

	prefix                                       string // of baseURL
	crawl, gzip, stylesheet, robots, force, json bool
	export.Summary
	progress export.Progress
}

// check refuses flags that do not go together.
func (b *build) check() error {
	if b.config == "" {
		if b.root == "" || b.baseURL == "" {
			return errors.New("name the site's folder with --root and its URL with --base-url, " +
				"or a configuration with --config")
		}
		return nil
	}
	setsOthers := b.root+b.baseURL != "" || !b.crawl || !b.stylesheet
	if setsOthers || b.out == "" {
		return errors.New("with --config, name a folder with --out; " +
			"root, base_url, crawl and stylesheet are set in the configuration")
	}
	return nil
}

// run refreshes all sites, and then writes their files.
func (b *build) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	sites, err := b.sites(ctx)
	if err != nil {
		return err
	}
	for _, s := range sites {
		folder, err := b.open(s, len(sites) == 1)
		if err != nil {
			return err
		}
		defer func() { _ = folder.Close() }()
		b.Sites = append(b.Sites, folder)
	}
	shown, end := b.progress.Show(os.Stderr)
	defer end()
	for i, s := range sites {
		if shown {
			if err := b.count(ctx, s); err != nil {
				return err
			}
		}
		err := b.build(ctx, s, b.Sites[i])
		if ctx.Err() != nil {
			return errors.New("interrupted: the files stay as they were")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.sitemap, err)
		}
	}
	for _, folder := range b.Sites {
		if err := folder.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// open opens the folder for the files of a site. One that is alone needs no folder of its own.
func (b *build) open(s *site, isAlone bool) (*export.Folder, error) {
	out := cmp.Or(b.out, b.root)
	if !isAlone {
		_, name, _ := strings.Cut(s.url(), "://")
		name = strings.NewReplacer(":", "_", "[", "", "]", "").Replace(page.Unescape(name))
		out = filepath.Join(out, name)
	}
	if slices.ContainsFunc(b.Sites, func(other *export.Folder) bool { return other.Out == out }) {
		return nil, fmt.Errorf("%s has two sitemaps: a build writes one of a site, so leave one out", s.url())
	}
	sitemap := strings.TrimPrefix(s.docPath(".xml"), s.prefix+"/")
	folder, err := export.Open(out, page.Unescape(sitemap), b.force)
	if err != nil {
		return nil, err
	}
	folder.Sitemap = s.sitemap
	folder.LLMs = page.Unescape(strings.TrimPrefix(s.docPath(document.LLMs), s.prefix+"/"))
	return folder, nil
}

// count counts the pages that the sources of a site name, of which the progress is a share.
func (b *build) count(ctx context.Context, s *site) error {
	b.progress.Total.Store(b.progress.Fetched.Load())
	source, err := newRefresh(s, *s.probed.Load(), s.app.now())
	if err != nil {
		return err
	}
	options := merge.Options{Filter: s.filter, MaxPages: s.handler.settings.maxURLs, Patience: sourcePatience}
	all := merge.Start(ctx, source.inputs(), options)
	defer all.Close()
	for {
		_, ok, err := all.Next(ctx)
		if !ok || err != nil { // the build says why
			return nil
		}
		b.progress.Total.Add(1)
	}
}

// sites are those to build, without aliases. Nothing is started; logs, admin endpoint and
// state of a configuration are its server's.
func (b *build) sites(ctx context.Context) ([]*site, error) {
	config, err := b.loadConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	log := &caddy.CustomLog{BaseLog: caddy.BaseLog{Level: "WARN"}, Exclude: []string{"http.auto_https", "tls"}}
	config.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: log}}
	config.Admin = &caddy.AdminConfig{Disabled: true}
	provisioned, err := caddy.ProvisionContext(config)
	if err != nil {
		return nil, err
	}
	app, err := provisioned.App("sitemap")
	if err != nil {
		return nil, err
	}
	a := app.(*App)
	// A build has no visitors who need the other half of the cores.
	cores := runtime.GOMAXPROCS(0)
	a.slots = wait.NewSlots(cores)
	a.compute = wait.NewSlots(cores)
	a.building = &b.progress
	a.events = nil
	a.folder = b.state
	a.locateHandlers()
	named := a.namedSites()
	close(a.started)
	for _, h := range a.handlers {
		b.noteUnnamed(h)
	}
	if len(named) == 0 {
		return nil, errors.New("the configuration has no sitemap handler whose hosts are named: set base_url")
	}
	// Aliases show once all are probed: each waits for its twins.
	var probes errgroup.Group
	for _, s := range named {
		probes.Go(func() error {
			_, _, err := s.probe(ctx, false)
			return err
		})
	}
	if err := probes.Wait(); err != nil {
		return nil, err
	}
	mains := slices.DeleteFunc(named, func(s *site) bool { return s.main.Load() != nil || s.probed.Load().movedTo != "" })
	slices.SortFunc(mains, func(x, y *site) int { return strings.Compare(x.url(), y.url()) })
	return mains, nil
}

// loadConfig loads the configuration that is named, or makes that of a folder.
func (b *build) loadConfig() (*caddy.Config, error) {
	encoded, err := b.encodedConfig()
	if err != nil {
		return nil, err
	}
	config := new(caddy.Config)
	err = caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(encoded), config)
	return config, err
}

// encodedConfig is loadConfig as JSON.
func (b *build) encodedConfig() ([]byte, error) {
	if b.config != "" {
		encoded, _, _, err := caddycmd.LoadConfig(b.config, b.adapter)
		return encoded, err
	}
	options := ""
	if !b.crawl {
		options += "crawl off\n"
	}
	if !b.stylesheet {
		options += "stylesheet off\n"
	}
	caddyfile := fmt.Appendf(nil, alone, b.prefix, quoted(b.root), b.baseURL, options)
	encoded, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(caddyfile, nil)
	return encoded, err
}

// quoted returns a root as an argument of a Caddyfile.
func quoted(root string) string {
	// Before the closing quote, a backslash escapes that, as in .\public\ on Windows.
	if strings.HasSuffix(root, `\`) {
		root += "/"
	}
	return `"` + strings.ReplaceAll(root, `"`, `\"`) + `"`
}

// noteUnnamed notes the hosts of a handler that its matchers do not spell out.
func (b *build) noteUnnamed(h *Handler) {
	if h.settings.base != "" {
		return
	}
	for _, mount := range h.mounts {
		wild := slices.DeleteFunc(slices.Clone(mount.hosts), func(host string) bool {
			return !strings.Contains(host, "*")
		})
		if len(mount.hosts) == 0 || len(wild) > 0 {
			hosts := cmp.Or(strings.Join(wild, " "), "*")
			b.Notes = append(b.Notes, "hosts that only visitors name are not built: set base_url for "+hosts)
		}
	}
}

// alone is the configuration of a folder that a file server serves.
const alone = `:80 {
	handle_path %s/* {
		root * %s
		sitemap {
			base_url %s
			%s
		}
		file_server
	}
}`

// build refreshes a site once, until nothing is left to be fetched, and writes its files aside.
func (b *build) build(ctx context.Context, s *site, folder *export.Folder) error {
	out := s.refresh(ctx, b.force)
	folder.Fetched = out.Crawled.Fetched
	folder.LeftOut, folder.Examples = out.LeftOut()
	if out.Err != nil {
		return out.Err
	}
	// What nobody has written into the configuration fails no build.
	failed := slices.DeleteFunc(out.Merged.Failed, func(f merge.InputError) bool {
		if f.Name == ownSitemaps {
			b.Notes = append(b.Notes, f.Name+": "+f.Err.Error())
		}
		return f.Name == ownSitemaps
	})
	if err := report.Failures(failed); err != nil {
		return err
	}
	snapshot := s.published().snapshot
	if snapshot == nil {
		return fmt.Errorf("there is no sitemap: %s", cmp.Or(out.Reason, s.probed.Load().noRoot, "no page to list"))
	}
	if out.Result == outcome.HeldBack {
		return fmt.Errorf("%s; --force writes it", out.Reason)
	}
	if err := folder.Stage(snapshot, b.gzip); err != nil {
		return err
	}
	if !b.robots || !s.handler.settings.robots {
		return nil
	}
	// A visitor gets robots.txt with the Sitemap line, if requests for it reach the handler.
	q := s.fetcher.request(crawl.Request{
		Path:   robotsPath,
		Header: http.Header{"Accept": {acceptAny}},
		Limit:  robotstxt.MaxBody,
	})
	q.visitor = true
	res, err := s.fetcher.server.fetch(ctx, q)
	if err == nil && slices.Contains(robotstxt.Sitemaps(res.Body), folder.Sitemap) {
		return folder.StageRobots(res.Body)
	}
	for _, url := range s.namedURLs(snapshot) {
		note := fmt.Sprintf("robots.txt is not written: add this line to that of %s: Sitemap: %s", s.origin, url)
		b.Notes = append(b.Notes, note)
	}
	return nil
}
