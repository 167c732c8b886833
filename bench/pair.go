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

// pair is a server with our directive beside one that is like it but for that.
type pair struct {
	ours, idle           *server
	oursAdmin, idleAdmin string
	log                  *logged
}

// pair starts both for a tree. Ours refreshes so seldom that find has run to its end
// between two refreshes.
func (b *bench) pair(ctx context.Context, root string, pages int) (*pair, error) {
	start, err := b.starter(ctx, root, pages)
	if err != nil {
		return nil, err
	}
	took, err := start()
	if err != nil {
		return nil, err
	}
	directive := fmt.Sprintf("sitemap {\nrefresh %ds\n}", 2+int(5*took/time.Second))
	addrs, err := freeAddrs(4)
	if err != nil {
		return nil, err
	}
	binary, err := b.caddy(ctx)
	if err != nil {
		return nil, err
	}
	p := &pair{oursAdmin: addrs[1], idleAdmin: addrs[3]}
	file := b.path("refresh.log")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	global := func(admin string) string { return "admin " + admin + "\n" + refreshLog(file) }
	p.ours, err = b.launch(binary, "ours.caddyfile", caddyfile(global(addrs[1]), fileSite(addrs[0], root, directive)))
	if err != nil {
		return nil, err
	}
	p.log = &logged{server: p.ours, name: file, pages: pages}
	p.idle, err = b.launch(binary, "idle.caddyfile", caddyfile(global(addrs[3]), fileSite(addrs[2], root, "")))
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
