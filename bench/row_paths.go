package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

// pathsRows measures what it costs to know a path: of a catalog of as many paths as the
// large tree has files, and of a server that has them from an access log, above one
// whose log is empty.
func (b *bench) pathsRows(ctx context.Context) ([]row, error) {
	const bound = 160
	reader, err := b.build(ctx, "bench/reader", "reader")
	if err != nil {
		return nil, err
	}
	_, out, err := b.timedCommand(ctx, reader, "paths", strconv.Itoa(b.files))
	if err != nil {
		return nil, err
	}
	var alone struct {
		Length, Heap float64
	}
	if err := json.Unmarshal(out, &alone); err != nil {
		return nil, err
	}
	server, err := b.pathsServer(ctx, bound)
	return []row{{
		what: fmt.Sprintf("live heap of a catalog of %s paths of %.0f bytes on average, all linked to", number(b.files), alone.Length),
		ours: mebibytes(int64(alone.Heap * float64(b.files))), ratio: fmt.Sprintf("%.1f bytes", alone.Heap),
		reach: bytesReach(bound), reached: yes(alone.Heap <= bound),
	}, server}, err
}

func (b *bench) pathsServer(ctx context.Context, bound float64) (row, error) {
	name := b.path(fmt.Sprintf("paths-%d.log", b.files))
	if err := b.pathsLog(name); err != nil {
		return row{}, err
	}
	empty := b.path("empty.log")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		return row{}, err
	}
	heap := func(log string) (int64, error) {
		admin, err := freeAddr()
		if err != nil {
			return 0, err
		}
		s, said, err := b.logSite(ctx, "admin "+admin, log)
		if err != nil {
			return 0, err
		}
		defer s.stop()
		read, err := untilRead(ctx, s, said)
		if err != nil {
			return 0, err
		}
		if log == name && read.Visits != b.files {
			return 0, fmt.Errorf("%d visits count of %d", read.Visits, b.files)
		}
		if err := s.quiet(ctx); err != nil {
			return 0, err
		}
		return liveHeap(ctx, admin)
	}
	with, err := heap(name)
	if err != nil {
		return row{}, err
	}
	without, err := heap(empty)
	if err != nil {
		return row{}, err
	}
	return b.perPage("live heap of a server that has them from an access log, above one whose log is empty, a path", with, without, bound), nil
}

// pathsLog writes a log in which each path was visited once.
func (b *bench) pathsLog(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	visits := newLogVisits()
	line := make([]byte, 0, lineSize)
	for i := range b.files {
		v := visits.next()
		v.method, v.status, v.host, v.agent = "GET", 200, loggedHost, visits.agents[9].name
		v.uri = fmt.Sprintf("/articles/%d/%s-%s-%s-%s", 2005+i%20, word(visits.random), word(visits.random), word(visits.random), letters(i))
		line = append(appendCombined(line[:0], v, visits.random), '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// letters is a number written in letters: paths that differ in digits alone are of one
// pattern, and of that only some are taken.
func letters(i int) string {
	var out []byte
	for ; i > 0 || len(out) < 5; i /= 26 {
		out = append(out, 'a'+byte(i%26))
	}
	return string(out)
}
