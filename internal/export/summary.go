package export

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"text/template"
	"time"

	"golang.org/x/term"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
)

// Summary is the result of a build.
type Summary struct {
	Error string    `json:"error,omitempty"`
	Sites []*Folder `json:"sites"`
	Notes []string  `json:"notes,omitempty"`
}

// Site is the result of a build for one site.
type Site struct {
	Sitemap   string              `json:"sitemap"` // URL
	Out       string              `json:"out"`     // folder; names of files are relative to it
	Pages     int                 `json:"pages"`
	Fetched   int                 `json:"fetched"` // pages, whether they are listed or not
	Shards    int                 `json:"shards"`
	Sections  []document.Section  `json:"sections,omitempty"` // that have pages
	Bytes     int64               `json:"bytes"`              // of all files
	LeftOut   map[string]int      `json:"left_out,omitempty"` // by reason
	Examples  map[string][]string `json:"examples,omitempty"` // paths left out, by reason
	Written   []string            `json:"written"`            // in the order in which they were renamed into place
	Unchanged []string            `json:"unchanged"`
	Removed   []string            `json:"removed"`
}

func newSite(out string) Site {
	return Site{Out: out, Written: []string{}, Unchanged: []string{}, Removed: []string{}}
}

var text = template.Must(template.New("").Parse(`
{{- range $site := .Sites}}{{.Sitemap}}
  pages: {{.Pages}}, fetched: {{.Fetched}}, shards: {{.Shards}}, bytes: {{.Bytes}}
{{range .Sections}}  section {{.Name}}: pages: {{.Pages}}, shards: {{.Shards}}
{{end}}{{range $reason, $n := .LeftOut}}  left out, {{$reason}}: {{$n}}{{with index $site.Examples $reason}} {{.}}{{end}}
{{end}}  written into {{.Out}}: {{len .Written}}, unchanged: {{len .Unchanged}}, removed: {{len .Removed}}
{{end}}{{range .Notes}}note: {{.}}
{{end}}`))

// Print writes the summary as text, or as one line of JSON.
func (s *Summary) Print(w io.Writer, asJSON bool) (err error) {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(s)
	} else {
		err = text.Execute(w, s)
	}
	if err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	return nil
}

// Progress counts the pages of a build. It is safe for concurrent use.
type Progress struct{ Fetched, Total atomic.Int64 }

// Show shows the progress in one line until end is called, if w is a terminal.
func (p *Progress) Show(w *os.File) (shown bool, end func()) {
	if !term.IsTerminal(int(w.Fd())) {
		return false, func() {}
	}
	return true, p.showOn(w)
}

// showOn shows the progress in one line of a terminal until end is called.
func (p *Progress) showOn(w io.Writer) (end func()) {
	const clearLine = "\x1b[2K"
	begun := time.Now()
	ticker := time.NewTicker(200 * time.Millisecond)
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case now := <-ticker.C:
				_, _ = fmt.Fprintf(w, clearLine+"%s\r", p.line(now.Sub(begun)))
			case <-stop:
				_, _ = fmt.Fprint(w, clearLine)
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended // what the caller prints next must not be cleared
	}
}

func (p *Progress) line(took time.Duration) string {
	fetched := p.Fetched.Load()
	left := max(p.Total.Load()-fetched, 0)
	if fetched == 0 {
		return fmt.Sprintf("%d pages to fetch", left)
	}
	needs := time.Duration(float64(took) / float64(fetched) * float64(left)).Round(time.Second)
	return fmt.Sprintf("%d of %d pages fetched, %v left", fetched, fetched+left, needs)
}
