// Package lint finds what is wrong with sitemaps and robots.txt files of any origin. They come from files,
// folders and URLs, and stream by: a document of any size takes a few megabytes.
package lint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/time/rate"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // readers may refuse the document or the entry
	Warning Severity = "warning" // readers cope, but it is hardly what was meant
)

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`           // path or URL of a document
	Line     int      `json:"line,omitempty"` // from 1, where the entry begins; 0: it is about the whole file
	Code     string   `json:"code"`           // a stable word in kebab-case, such as "loc-outside-scope"
	Message  string   `json:"message"`
	URL      string   `json:"url,omitempty"` // the page or document that it is about
}

// Summary counts what a check saw.
type Summary struct {
	Documents int            `json:"documents"`
	Feeds     int            `json:"feeds,omitempty"` // of the documents: Atom and RSS, which are not checked
	URLs      int            `json:"urls"`            // pages listed
	Fetched   int            `json:"fetched"`         // pages
	Unchecked int            `json:"unchecked"`       // what could not be read or fetched
	Errors    int            `json:"errors"`
	Warnings  int            `json:"warnings"`
	Codes     map[string]int `json:"codes,omitempty"` // findings by code
}

// Options are what a check does.
type Options struct {
	Report    func(Finding) // called for each finding as it is found
	All       bool          // report all findings, not 20 of a code and file
	Stdin     io.Reader     // what the target "-" is
	BaseURL   string        // where the folder of files is served, with a slash at its end; "": not known
	Sample    int           // how many pages are fetched, drawn from all that are listed
	Rate      float64       // of fetching pages, a second
	Timeout   time.Duration // of a request with its whole response; 0: none
	Proxy     *url.URL      // for all requests; nil: none
	Insecure  bool          // accept any certificate
	UserAgent string        // whose first word is what robots.txt may call the check
}

const (
	maxPerCode = 20
	maxSeen    = 1 << 17 // pages that are remembered to find duplicates
)

// checker is one run of a check.
type checker struct {
	Options
	ctx      context.Context
	now      time.Time
	summary  Summary
	reported map[[2]string]int  // findings by file and code
	done     map[string]*result // documents by URL or path
	seed     maphash.Seed
	seen     map[uint64]int // the document in which a page was last, by the hash of its URL
	drawn    []place        // pages to fetch
	offered  int            // pages given to draw
	random   *rand.Rand
	follow   *http.Client    // follows redirects
	single   *http.Client    // does not
	trusted  map[string]bool // host:port that may have a private address
	servers  map[string]*server
	turns    *rate.Limiter
}

// Check checks targets: files, folders, URLs, or "-" for standard input. It ends early where ctx does; what that
// breaks is not reported.
func Check(ctx context.Context, o Options, targets ...string) Summary {
	c := newChecker(ctx, o)
	defer c.follow.CloseIdleConnections()
	for _, target := range targets {
		c.target(target)
	}
	c.fetchPages()
	return c.summary
}

func newChecker(ctx context.Context, o Options) *checker {
	c := &checker{
		Options:  o,
		ctx:      ctx,
		now:      time.Now(),
		summary:  Summary{Codes: make(map[string]int)},
		reported: make(map[[2]string]int),
		done:     make(map[string]*result),
		seed:     maphash.MakeSeed(),
		seen:     make(map[uint64]int),
		random:   rand.New(rand.NewPCG(1, 2)), // the same each time: see draw
		trusted:  make(map[string]bool),
		servers:  make(map[string]*server),
		turns:    rate.NewLimiter(rate.Limit(o.Rate), 1),
	}
	t := &http.Transport{
		MaxResponseHeaderBytes: 64 << 10,
		DialContext:            c.dial,
	}
	if c.Insecure {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	// Only the proxy that the user names is used, none of the environment: behind one, dial would see its address
	// instead of those that documents name.
	if c.Proxy != nil {
		c.trust(c.Proxy)
		t.Proxy = http.ProxyURL(c.Proxy)
	}
	if base, err := url.Parse(c.BaseURL); err == nil && base.Host != "" {
		c.trust(base)
	}
	c.follow = &http.Client{Transport: t, Timeout: c.Timeout}
	c.single = &http.Client{
		Transport:     t,
		Timeout:       c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// guarded refuses private and special addresses, by the registries of the IANA.
var guarded = &net.Dialer{Control: ssrf.New(ssrf.WithAnyPort()).Safe}

// dial connects to a host. Documents of strangers name hosts, so private and special addresses are for hosts only that
// the user names.
func (c *checker) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.trusted[addr] {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return guarded.DialContext(ctx, network, addr)
}

// place is what a finding is about: where something stands, and its URL.
type place struct {
	file string
	line int
	url  string
}

// report counts a finding, and passes it on unless there were too many of its code and file.
func (c *checker) report(at place, s Severity, code, format string, args ...any) {
	// What fails once the check is cancelled says nothing about the documents.
	if c.ctx.Err() != nil {
		return
	}
	c.summary.Codes[code]++
	if s == Error {
		c.summary.Errors++
	} else {
		c.summary.Warnings++
	}
	of := [2]string{at.file, code}
	c.reported[of]++
	n := c.reported[of]
	if n <= maxPerCode || c.All {
		c.Report(Finding{
			Severity: s,
			File:     at.file,
			Line:     at.line,
			Code:     code,
			Message:  clip(fmt.Sprintf(format, args...)),
			URL:      clip(at.url),
		})
	} else if n == maxPerCode+1 {
		c.Report(Finding{
			Severity: s,
			File:     at.file,
			Code:     code,
			Message:  "there are more of these: use --all to see them",
		})
	}
}

// clip bounds what a document can make a finding say.
func clip(text string) string { return fmt.Sprintf("%.2048s", text) }

// unchecked reports what could not be read or fetched.
func (c *checker) unchecked(at place, code string, err error) {
	c.summary.Unchecked++
	c.report(at, Error, code, "%v", err)
}

// target checks what the user names: see [Check].
func (c *checker) target(name string) {
	if name == "-" {
		c.document(name, c.urlOf("sitemap.xml"), c.Stdin, ".", false)
		return
	}
	scheme, _, hasScheme := strings.Cut(name, "://")
	isURL := hasScheme && !strings.ContainsAny(scheme, `/\`) // a path may have :// in it, too
	if isURL {
		c.location(name)
		return
	}
	info, err := os.Stat(name)
	if err != nil {
		if at := missingScheme(name); at != "" {
			err = fmt.Errorf("%w; for a site, write %s", err, at)
		}
		c.unchecked(place{file: name}, "document-unread", err)
		return
	}
	if info.IsDir() {
		c.folder(name)
		return
	}
	c.openFile(name, c.urlOf(filepath.Base(name)), filepath.Dir(name), false)
}

var documentName = regexp.MustCompile(`(?i)\.(xml|txt|gz|html?|json)$`)

// missingScheme returns the URL that was probably meant by the name of a file that does not exist, such as
// example.com; "": it does not look like one.
func missingScheme(name string) string {
	host, _, _ := strings.Cut(name, "/")
	// What begins with an existing folder, or ends like a document, is a path that is misspelt.
	if _, err := os.Stat(host); err == nil || documentName.MatchString(host) {
		return ""
	}
	u, err := url.Parse("https://" + name)
	if err != nil {
		return ""
	}
	isHere := u.Hostname() == "localhost" || net.ParseIP(u.Hostname()) != nil // where certificates are rare
	if isHere {
		u.Scheme = "http"
	}
	_, _, err = parseURL(u.Scheme + "://" + name)
	if err != nil {
		return ""
	}
	isHost := isHere || u.Port() != "" || strings.Contains(host, ".")
	if !isHost {
		return ""
	}
	return u.Scheme + "://" + name
}

// urlOf is the URL of a file below the folder that is checked; it is relative where BaseURL is not known.
func (c *checker) urlOf(name string) string {
	return c.BaseURL + (&url.URL{Path: filepath.ToSlash(name)}).EscapedPath()
}

// openFile checks a file, unless it was already. What it names is looked up in dir; listed says that an index names it.
func (c *checker) openFile(name, at, dir string, listed bool) *result {
	if done := c.done[name]; done != nil {
		return done
	}
	f, err := c.open(name)
	if err != nil {
		c.unchecked(place{file: name}, "document-unread", err)
		return new(result)
	}
	defer f.Close()
	if strings.EqualFold(filepath.Base(name), "robots.txt") {
		c.robots(name, f, dir)
		return new(result)
	}
	d := c.document(name, at, f, dir, listed)
	c.checkPacked(place{file: name}, name, d)
	return d
}

// open opens a file. A named pipe can be opened only once a program writes into it, which is awaited no longer than
// a response.
func (c *checker) open(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return os.Open(name)
	}
	ctx := c.ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(c.ctx, c.Timeout)
		defer cancel()
	}
	type opening struct {
		file *os.File
		err  error
	}
	opened := make(chan opening)
	// Nothing can end this call of Open but a writer: once the wait is over, the goroutine is left behind.
	go func() {
		f, err := os.Open(name)
		select {
		case opened <- opening{f, err}:
		case <-ctx.Done():
			f.Close()
		}
	}()
	select {
	case o := <-opened:
		return o.file, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("is a named pipe into which no program has written for %s", c.Timeout)
	}
}

// checkPacked reports a document that is not compressed, although its name or path says so.
func (c *checker) checkPacked(at place, name string, d *result) {
	isNamed := strings.HasSuffix(strings.ToLower(name), ".gz")
	if isNamed && !d.packed && d.kind != "" {
		c.report(at, Error, "not-gzip", "has a name that ends in .gz, but is not compressed")
	}
}

var sitemapName = regexp.MustCompile(`(?i)^(robots\.txt|.*sitemap.*\.(xml|txt)(\.gz)?)$`)

// folder checks what in a folder has a name of a sitemap.
func (c *checker) folder(dir string) {
	found := false
	_ = filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			c.unchecked(place{file: name}, "document-unread", err)
			return c.ctx.Err()
		}
		// A server sends sitemap.xml.gz in place of sitemap.xml: beside that, it is no document of its own.
		plain, isPacked := strings.CutSuffix(name, ".gz")
		isTwin := isPacked && isFile(plain)
		isSitemap := sitemapName.MatchString(filepath.Base(name)) && isFile(name)
		if isSitemap && !isTwin {
			found = true
			below, _ := filepath.Rel(dir, name)
			c.openFile(name, c.urlOf(below), dir, false)
		}
		return c.ctx.Err()
	})
	if !found {
		c.unchecked(place{file: dir}, "document-missing", errors.New("there is no sitemap and no robots.txt in the folder"))
	}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// load checks a document that another one names, unless it was checked already. In the folder dir, the base URL or
// its path says where it is, or else it is beside the file that names it. With "", it is fetched.
func (c *checker) load(at place, dir string, listed bool) *result {
	below, inside := strings.CutPrefix(at.url, c.BaseURL)
	u, err := url.Parse(below)
	if dir != "" && inside && err == nil {
		byPath := filepath.Join(dir, path.Clean("/"+u.Path)) // which leads out of dir by no dot segments
		besideIt := filepath.Join(filepath.Dir(at.file), path.Base(u.Path))
		for _, name := range []string{byPath, besideIt} {
			if isFile(name) {
				return c.openFile(name, at.url, dir, listed)
			}
		}
	}
	// A check of files sends requests only if the user wants pages fetched.
	if dir == "" || c.Sample > 0 {
		return c.fetch(at, listed)
	}
	// Where the base URL is not known, or is another one, the document may well be on its server.
	severity := Warning
	if inside && c.BaseURL != "" {
		severity = Error
	}
	c.report(at, severity, "document-missing", "the document is not in the folder and was not checked")
	return new(result)
}
