// Package gather makes one sorted stream of pages from many, in which each path
// comes once.
package gather

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Stream calls yield once for each of its pages, from one goroutine at a time,
// until yield returns an error, which it then returns. It ends soon after ctx is
// cancelled.
type Stream func(ctx context.Context, yield func(page.Page) error) error

// Input is one stream of pages.
type Input struct {
	// Name is what errors call the input.
	Name string

	Pages Stream

	// Sorted says that pages come in the order of [page.Compare]. Equal paths may
	// follow one another. Without it, pages lose their Extensions: sources that
	// have any know the order.
	Sorted bool
}

// DefaultMemory is the default of [Options.Memory].
const DefaultMemory = 32 << 20

// Options bounds what gathering takes.
type Options struct {
	// Memory is about how many bytes of unsorted pages are held, over all inputs,
	// before they are spilled to disk as a sorted run. Merging takes some 25 KB
	// more for each run and each sorted input. 0: DefaultMemory.
	Memory int64

	// Dir is the folder in which runs are spilled, in a file an input. Each is
	// unlinked as soon as it is made, where the system allows it, and else when
	// Gather returns. "": [os.TempDir].
	Dir string

	// Parallel lets inputs that need sorting run side by side, and sorted inputs
	// begin before they are done. Without it, inputs run one after another, save
	// that of several sorted ones all but the first need a goroutine each.
	Parallel bool
}

// InputError is an input's own error.
type InputError struct {
	Input int    // its index
	Name  string // its name
	Err   error
}

func (e InputError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e InputError) Unwrap() error { return e.Err }

// Errors that an input is given when what it yields cannot be used.
var (
	ErrOrder  = errors.New("pages are out of order")
	ErrNoPath = errors.New("a page has no path")
)

// Gather yields the pages of all inputs in the order of [page.Compare], pages of
// equal paths merged into one by [page.Page.Merge], where earlier inputs win, and
// in an input its earlier pages. yield is called from the caller's goroutine.
//
// err is yield's error or ctx's: the run stopped, and not all pages were yielded.
// failed are the inputs that failed with an error of their own, in the order of
// inputs: what they yielded until then counts, and the other inputs went on. An
// input fails, too, where its pages are not in the order that it claims (ErrOrder,
// with the two paths), where a page has no path, and where its pages cannot be
// spilled or read back.
//
// When Gather returns, all its goroutines have ended and all its files are gone,
// also when it panics; a panic of an input that ran in a goroutine comes as a
// [Panic].
func Gather(ctx context.Context, inputs []Input, o Options, yield func(page.Page) error) (failed []InputError, err error) {
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	g := gatherer{inputs: inputs, o: o, errs: make([]error, len(inputs)), m: merger{ctx: ctx, yield: yield}}
	g.ctx, g.cancel = context.WithCancel(ctx)
	defer g.close()
	err = g.run()
	for i, err := range g.errs {
		if err != nil {
			failed = append(failed, InputError{i, inputs[i].Name, err})
		}
	}
	return failed, err
}

type gatherer struct {
	inputs []Input
	o      Options
	m      merger
	errs   []error // of inputs

	ctx    context.Context // of goroutines
	cancel context.CancelFunc
	wg     sync.WaitGroup

	collectors []*collector
	feeds      []*feed
}

func (g *gatherer) run() error {
	// One sorted input needs no goroutine: it drives the merge, and the others are
	// pulled as it goes.
	driver := -1
	for i, in := range g.inputs {
		switch {
		case !in.Sorted:
			g.collectors = append(g.collectors, &collector{ctx: g.m.ctx, input: i, pages: in.Pages})
		case driver < 0:
			driver = i
		default:
			g.feeds = append(g.feeds, newFeed(i, in.Pages))
		}
	}
	if err := g.m.ctx.Err(); err != nil {
		return err
	}
	if g.o.Parallel {
		g.startFeeds()
	}
	if err := g.collect(); err != nil {
		return err
	}
	if !g.o.Parallel {
		g.startFeeds()
	}
	for _, f := range g.feeds {
		g.m.add(&cursor{input: f.input, refill: func() []page.Page { return g.receive(f) }})
	}
	if driver >= 0 && g.m.halted == nil {
		g.drive(driver)
	}
	return g.m.finish()
}

func (g *gatherer) startFeeds() {
	for _, f := range g.feeds {
		g.wg.Go(func() { f.run(g.ctx) })
	}
}

// collect runs the inputs that need sorting, and adds what they give to the merge.
func (g *gatherer) collect() error {
	if len(g.collectors) == 0 {
		return nil
	}
	share := max(g.o.Memory/int64(len(g.collectors)), 1)
	for _, c := range g.collectors {
		c.table.init(share)
		c.spill.dir = g.o.Dir
	}
	if g.o.Parallel && len(g.collectors) > 1 {
		var wg sync.WaitGroup
		panics := make([]*Panic, len(g.collectors))
		for i, c := range g.collectors {
			wg.Go(func() {
				panics[i] = guard(func() { c.run(g.ctx) })
				if panics[i] != nil {
					g.cancel()
				}
			})
		}
		wg.Wait()
		for i, p := range panics {
			if p != nil {
				p.raise(g.inputs[g.collectors[i].input].Name)
			}
		}
	} else {
		for _, c := range g.collectors {
			if c.run(g.ctx); g.m.ctx.Err() != nil {
				break
			}
		}
	}
	if err := g.m.ctx.Err(); err != nil {
		return err
	}
	for _, c := range g.collectors {
		g.errs[c.input] = c.err
		fail := func(err error) {
			if g.errs[c.input] == nil {
				g.errs[c.input] = err
			}
		}
		for _, next := range c.runs(fail) {
			g.m.add(&cursor{input: c.input, refill: next})
		}
	}
	return nil
}

// receive is the next batch of a sorted input that runs in a goroutine.
func (g *gatherer) receive(f *feed) []page.Page {
	batch, ok := f.receive(g.ctx)
	if ok {
		return batch
	}
	// It has ended, or ctx has; what an input says once ctx has ended is of no
	// account, not even that it is done.
	if err := g.m.ctx.Err(); err != nil {
		_ = g.m.halt(err)
		return nil
	}
	if f.panic != nil {
		f.panic.raise(g.inputs[f.input].Name)
	}
	g.errs[f.input] = f.err
	return nil
}

// drive runs a sorted input in the caller's goroutine, without a buffer.
func (g *gatherer) drive(input int) {
	m := &g.m
	var c checker
	err := g.inputs[input].Pages(g.ctx, func(p page.Page) error {
		if p.Path > m.page.Path && len(m.heap) == 0 && c.err == nil {
			c.last = p.Path
			return m.emitNew(p)
		}
		if m.halted != nil {
			return m.halted
		}
		if err := c.check(p.Path); err != nil {
			return err
		}
		if len(m.heap) > 0 && !m.drain(p.Path, input) {
			return m.halted
		}
		return m.emit(p)
	})
	if m.halted != nil {
		return
	}
	if ctxErr := m.ctx.Err(); ctxErr != nil {
		_ = m.halt(ctxErr)
		return
	}
	if c.err != nil {
		err = c.err
	}
	g.errs[input] = err
}

func (g *gatherer) close() {
	g.cancel()
	g.wg.Wait()
	for _, c := range g.collectors {
		c.spill.close()
	}
}

// checker checks that a sorted input is. Its error stays.
type checker struct {
	last string
	err  error
}

func (c *checker) check(path string) error {
	if path > c.last && c.err == nil {
		c.last = path
		return nil
	}
	return c.unusual(path)
}

func (c *checker) unusual(path string) error {
	switch {
	case c.err != nil:
	case path == "":
		c.err = ErrNoPath
	case path < c.last:
		c.err = fmt.Errorf("%w: '%s' after '%s'", ErrOrder, path, c.last)
	}
	return c.err
}
