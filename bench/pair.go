package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// settle is how long after a refresh the server may still be clearing up.
const settle = 300 * time.Millisecond

// pause is how many seconds to let a server refresh after, so that find runs to its end
// between two refreshes.
func (b *bench) pause(ctx context.Context, root string, pages int) (int, error) {
	start, err := b.starter(ctx, root, pages)
	if err != nil {
		return 0, err
	}
	took, err := start()
	return 2 + int(5*took/time.Second), err
}

// pair is a server with our directive beside one that is like it but for that.
type pair struct {
	ours, idle           *server
	launch               func() (*server, error) // ours
	state                string                  // the folder of what ours remembers
	base                 string                  // of what ours serves
	oursAdmin, idleAdmin string
	log                  *logged
	used                 time.Duration // processor time when it was last asked for
}

// pair starts both for a tree. name is for files of its own, settings are the
// directive's.
func (b *bench) pair(ctx context.Context, name, root string, pages, refresh int, settings ...string) (*pair, error) {
	addrs, err := freeAddrs(4)
	if err != nil {
		return nil, err
	}
	binary, err := b.caddy(ctx)
	if err != nil {
		return nil, err
	}
	state, err := b.emptyState(name)
	if err != nil {
		return nil, err
	}
	p := &pair{base: "http://" + addrs[0], state: state, oursAdmin: addrs[1], idleAdmin: addrs[3]}
	file := b.path(name + ".log")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	global := func(admin string) string { return "admin " + admin + "\n" + refreshLog(file) }
	p.launch = func() (*server, error) {
		return b.launch(binary, name+".caddyfile", caddyfile(state, global(addrs[1]), fileSite(addrs[0], root, directive(refresh, settings...))))
	}
	if p.ours, err = p.launch(); err != nil {
		return nil, err
	}
	p.log = &logged{server: p.ours, name: file, pages: pages}
	p.idle, err = b.launch(binary, name+"-idle.caddyfile", caddyfile(state, global(addrs[3]), fileSite(addrs[2], root, "")))
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *pair) stop() {
	for _, s := range []*server{p.ours, p.idle} {
		if s != nil {
			s.stop()
		}
	}
}

// settle waits until ours knows all that it will know.
func (p *pair) settle(ctx context.Context, verified int) error {
	if err := p.log.settled(ctx, verified); err != nil {
		return err
	}
	return sleep(ctx, settle)
}

// perRefresh is the processor time of a refresh in which nothing changed, over those
// that end by the next one.
func (p *pair) perRefresh(ctx context.Context) (time.Duration, error) {
	before := p.used
	refreshes, err := p.refreshed(ctx)
	if err != nil {
		return 0, err
	}
	p.used, err = p.processorTime()
	return (p.used - before) / time.Duration(refreshes), err
}

// refreshed waits for refreshes in which nothing changed, and returns how many ended.
func (p *pair) refreshed(ctx context.Context) (int, error) {
	n, err := p.log.unchanged(ctx)
	if err != nil {
		return 0, err
	}
	return n, sleep(ctx, settle)
}

// processorTime is what ours has used beyond what the other one has.
func (p *pair) processorTime() (time.Duration, error) {
	ours, err := processorTime(p.ours.pid())
	if err != nil {
		return 0, err
	}
	idle, err := processorTime(p.idle.pid())
	return ours - idle, err
}

// checkDates looks whether all that is listed has a date: none has before its page was
// read. It returns the number of pages, which are not all where some were not asked
// for yet.
func (p *pair) checkDates(ctx context.Context) (int, error) {
	found, err := survey(ctx, p.base)
	if err == nil && (found.pages > p.log.pages || found.dated != found.pages) {
		err = fmt.Errorf("of %d pages, %d are listed, %d with dates", p.log.pages, found.pages, found.dated)
	}
	return found.pages, err
}
