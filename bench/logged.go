package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// unchanged is what the handler logs, at debug level, after a refresh in which
// nothing changed.
const unchanged = "sitemap refreshed, nothing changed"

// logged follows the file that the handler's log lines go to.
type logged struct {
	server *server
	name   string
	pages  int // of the site
	at     int64
	rest   string
}

// unchanged waits until refreshes have ended in which nothing changed, and returns how
// many have since the last call: more than one where the machine is too busy for the
// pauses between them.
func (l *logged) unchanged(ctx context.Context) (int, error) {
	for {
		if err := l.read(); err != nil {
			return 0, err
		}
		n, err := l.count()
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-l.server.exited:
			return 0, l.server.died("the server ended")
		default:
		}
		if time.Since(l.server.begun) > longestStart {
			return 0, l.server.died("no '" + unchanged + "' was logged")
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
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
	l.rest += string(more)
	return err
}

// count takes the whole lines that were read.
func (l *logged) count() (int, error) {
	n := 0
	for {
		line, rest, whole := strings.Cut(l.rest, "\n")
		if !whole {
			return n, nil
		}
		l.rest = rest
		if !strings.Contains(line, `"msg":"`+unchanged+`"`) {
			continue
		}
		if !strings.Contains(line, fmt.Sprintf(`"pages":%d,`, l.pages)) {
			return 0, fmt.Errorf("not %d pages: %s", l.pages, line)
		}
		n++
	}
}
