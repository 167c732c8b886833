package sitemap

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second
	barWidth  = 20
)

// showProgress says what a build is doing until the function that it returns is called:
// in one line of a terminal, or in a new line now and then elsewhere.
func showProgress(w io.Writer, b *building) (end func()) {
	p := &progress{w: w, building: b, begun: time.Now()}
	every := lineEvery
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar, every = true, barEvery
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				p.show(now)
			case <-stop:
				p.clear()
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// progress is what is shown of a build.
type progress struct {
	w        io.Writer
	building *building
	begun    time.Time
	bar      bool

	shown int // bars
}

// show shows how far the build is.
func (p *progress) show(now time.Time) {
	b := p.building
	fetched, pages, pending := b.fetched.Load(), b.pages.Load(), b.pending.Load()
	text := fmt.Sprintf("%s: %d fetched, %.0f/s", *b.doing.Load(), fetched, p.rate(now, fetched))
	if pages > 0 {
		text += fmt.Sprintf(", %d pages known, %d left", pages, pending)
	}
	if !p.bar {
		say(p.w, "%s", text)
		return
	}
	// The cursor stays at the beginning: what is logged meanwhile goes over the bar.
	_, _ = fmt.Fprintf(p.w, "\x1b[2K%s %s\r", p.moving(), text)
}

// rate is how many fetches a second it has been so far.
func (p *progress) rate(now time.Time, fetched int64) float64 {
	if d := now.Sub(p.begun).Seconds(); d > 0 {
		return float64(fetched) / d
	}
	return 0
}

// moving is a bar in which something moves to and fro: how many pages there are is not
// known until the last one was found.
func (p *progress) moving() string {
	at := p.shown % (2 * barWidth)
	if at >= barWidth {
		at = 2*barWidth - 1 - at
	}
	p.shown++
	return "[" + strings.Repeat(" ", at) + "=" + strings.Repeat(" ", barWidth-1-at) + "]"
}

// clear leaves an empty line where the bar was.
func (p *progress) clear() {
	if p.bar {
		_, _ = io.WriteString(p.w, "\x1b[2K")
	}
}
