package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// linkedPages is how many pages the site behind a proxy has.
const linkedPages = 1000

// proxiedRows compares how often a second a page of an application is served through a
// proxy with traffic on, and without our directive, each on a port of the same server.
func (b *bench) proxiedRows(ctx context.Context) ([]row, error) {
	upstream, err := b.upstream(ctx)
	if err != nil {
		return nil, err
	}
	defer upstream.stop()
	binary, err := b.caddy(ctx)
	if err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(2)
	if err != nil {
		return nil, err
	}
	state, err := b.emptyState("proxied")
	if err != nil {
		return nil, err
	}
	s, err := b.launch(binary, "proxied.caddyfile", caddyfile(state, "",
		proxySite(addrs[0], upstream.addr, directive(seldom, "traffic")), proxySite(addrs[1], upstream.addr, "")))
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if _, err := s.first(ctx, "http://"+addrs[0]+"/sitemap.xml"); err != nil {
		return nil, err
	}
	const path = "/articles/an-article-about-500"
	page, err := fetch(ctx, "http://"+upstream.addr+path)
	if err != nil {
		return nil, err
	}
	turn := time.Duration(b.seconds * float64(time.Second))
	var each []func() (float64, error)
	uses := make([][]time.Duration, len(addrs)) // processor time of the server a request
	for i, addr := range addrs {
		each = append(each, func() (float64, error) {
			before, err := processorTime(s.pid())
			if err != nil && !errors.Is(err, errNotHere) {
				return 0, err
			}
			rate, err := requests(ctx, addr, path, len(page), connections, turn)
			if err != nil {
				return 0, err
			}
			after, err := processorTime(s.pid())
			if errors.Is(err, errNotHere) {
				return rate, nil
			}
			uses[i] = append(uses[i], time.Duration(float64(after-before)/(rate*turn.Seconds())))
			return rate, err
		})
	}
	// The two are nearly the same, and what else runs here is not.
	m, err := alternate(ctx, b, proxiedTurns*b.runs, each...)
	if err != nil {
		return nil, err
	}
	const bound = 0.97
	rows := []row{{
		what: "requests a second for a page through `reverse_proxy` with `traffic`, over without our directive",
		ours: number(int(m.each[0])), other: number(int(m.each[1])), ratio: fmt.Sprintf("%.3f", m.ratios[1]),
		reach: fmt.Sprintf("≥ %v", bound), reached: yes(m.ratios[1] >= bound),
	}}
	if len(uses[0]) == 0 {
		return rows, nil
	}
	with, without := median(uses[0]), median(uses[1])
	return append(rows, row{
		what: "processor time of the server for one of these requests",
		ours: micros(with), other: micros(without), ratio: fmt.Sprintf("%.3f", float64(with)/float64(without)),
	}), nil
}

const proxiedTurns = 3

// linksRows measures how long it takes until all pages are listed of a site that nothing
// names but its own links, from the start of the server on.
func (b *bench) linksRows(ctx context.Context) ([]row, error) {
	upstream, err := b.upstream(ctx)
	if err != nil {
		return nil, err
	}
	defer upstream.stop()
	var times []time.Duration
	for range b.runs {
		took, err := b.linked(ctx, upstream.addr)
		if err != nil {
			return nil, err
		}
		b.say("  %s (%s)", seconds(took), load())
		times = append(times, took)
	}
	return []row{{
		what: "start to all of " + number(linkedPages) + " pages of a proxied site listed, by `links` alone, with `crawl { rate 1000/s concurrency 8 }`",
		ours: seconds(median(times)),
	}}, nil
}

func (b *bench) linked(ctx context.Context, upstream string) (time.Duration, error) {
	binary, err := b.caddy(ctx)
	if err != nil {
		return 0, err
	}
	addr, err := freeAddr()
	if err != nil {
		return 0, err
	}
	state, err := b.emptyState("links")
	if err != nil {
		return 0, err
	}
	said := b.path("links.log")
	if err := os.Remove(said); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	s, err := b.launch(binary, "links.caddyfile", caddyfile(state, refreshLog(said),
		proxySite(addr, upstream, directive(seldom, "links", "crawl {\nrate 1000/s\nconcurrency 8\n}"))))
	if err != nil {
		return 0, err
	}
	defer s.stop()
	log := &logged{server: s, name: said}
	for {
		reports, err := log.next(ctx)
		if err != nil {
			return 0, err
		}
		for _, r := range reports {
			if r.Pages == linkedPages {
				return r.at().Sub(s.begun), nil
			}
		}
	}
}

// proxySite is the Caddyfile of a site behind which an application runs.
func proxySite(addr, upstream, directive string) string {
	return fmt.Sprintf("http://%s {\nbind 127.0.0.1\n%s\nreverse_proxy %s\n}\n", addr, directive, upstream)
}

// application is one that runs behind a proxy.
type application struct {
	addr string
	cmd  *exec.Cmd
}

func (b *bench) upstream(ctx context.Context) (*application, error) {
	binary, err := b.build(ctx, "bench/upstream", "upstream")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	a := &application{addr: addr, cmd: exec.Command(binary, addr, strconv.Itoa(linkedPages))}
	var said strings.Builder
	a.cmd.Stderr = &said
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	for range 1000 {
		if status, _, err := get(ctx, "http://"+addr+"/"); err == nil && status == 200 {
			return a, nil
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			break
		}
	}
	a.stop()
	return nil, fmt.Errorf("the application does not answer: %s", said.String())
}

func (a *application) stop() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}
