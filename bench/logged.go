package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// What the handler logs after a refresh: at info level, or at debug level where
// nothing changed.
const (
	refreshed = "sitemap refreshed"
	unchanged = "sitemap refreshed, nothing changed"
)

// report is what the handler says of a refresh.
type report struct {
	Message  string  `json:"msg"`
	At       float64 `json:"ts"` // Unix seconds
	Pages    int     `json:"pages"`
	Verified int     `json:"verified"`
}

func (r report) isUnchanged() bool { return r.Message == unchanged }

func (r report) at() time.Time { return time.Unix(0, int64(r.At*float64(time.Second))) }

// logged follows the file that the handler's log lines go to.
type logged struct {
	server *server
	name   string
	pages  int // of the site
	at     int64
	rest   []byte
}

// next waits until refreshes have ended, and returns what was said of those since the
// last call.
func (l *logged) next(ctx context.Context) ([]report, error) {
	for {
		if err := l.read(); err != nil {
			return nil, err
		}
		reports, err := l.reports()
		if len(reports) > 0 || err != nil {
			return reports, err
		}
		select {
		case <-l.server.exited:
			return nil, l.server.died("the server ended")
		default:
		}
		if time.Since(l.server.begun) > longestStart {
			return nil, l.server.died("no '" + refreshed + "' was logged")
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// first waits for the first refreshes, n of them.
func (l *logged) first(ctx context.Context, n int) ([]report, error) {
	var all []report
	for len(all) < n {
		reports, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, reports...)
	}
	return all, nil
}

// settled waits until there is nothing left to learn: a refresh says that nothing
// changed, and that so many pages answered.
func (l *logged) settled(ctx context.Context, verified int) error {
	for {
		reports, err := l.next(ctx)
		if err != nil {
			return err
		}
		last := reports[len(reports)-1]
		if !last.isUnchanged() || last.Verified < verified {
			continue
		}
		if last.Pages != l.pages {
			return fmt.Errorf("not %d pages: %+v", l.pages, last)
		}
		return nil
	}
}

// unchanged waits until refreshes have ended in which nothing changed, and returns how
// many have since the last call: more than one where the machine is too busy for the
// pauses between them.
func (l *logged) unchanged(ctx context.Context) (int, error) {
	reports, err := l.next(ctx)
	for _, r := range reports {
		if !r.isUnchanged() || r.Pages != l.pages {
			return 0, fmt.Errorf("a refresh changed something, or has not %d pages: %+v", l.pages, r)
		}
	}
	return len(reports), err
}

func (l *logged) read() error {
	f, err := os.Open(l.name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	more, err := io.ReadAll(io.NewSectionReader(f, l.at, 1<<40))
	l.at += int64(len(more))
	l.rest = append(l.rest, more...)
	return err
}

// reports takes the whole lines that were read.
func (l *logged) reports() ([]report, error) {
	var all []report
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return all, nil
		}
		l.rest = rest
		var r report
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("reading the log: %w: %s", err, line)
		}
		if r.Message != refreshed && r.Message != unchanged {
			continue
		}
		all = append(all, r)
	}
}
