package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// load asks for a path over and over, on connections that are kept, one request after
// another on each, with a pause between them. It does as little as it can: it runs on the
// cores that the server runs on.
type client struct {
	addr, path  string
	connections int
	pause       time.Duration
}

// run returns the requests a second, and the seconds that 99 of 100 took at most.
func (c client) run(ctx context.Context, d time.Duration) (rate, p99 float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	took, errs := make([][]float64, c.connections), make([]error, c.connections)
	var group sync.WaitGroup
	for i := range took {
		group.Go(func() { took[i], errs[i] = c.requests(ctx) })
	}
	group.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if err := errors.Join(errs...); err != nil || len(all) == 0 {
		return 0, 0, fmt.Errorf("requesting %s of %s: %d responses: %w", c.path, c.addr, len(all), err)
	}
	return float64(len(all)) / d.Seconds(), all[len(all)*99/100], nil
}

// requests returns the seconds that each request took until ctx ended.
func (c client) requests(ctx context.Context) (took []float64, err error) {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: gzip\r\n\r\n", c.path, c.addr)
	buf := make([]byte, 1<<20)
	for ctx.Err() == nil {
		begun := time.Now()
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		if err := readResponse(conn, buf); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun).Seconds())
		time.Sleep(c.pause)
	}
	return took, nil
}

var (
	headerEnd     = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// readResponse reads a 200 to its end.
func readResponse(conn net.Conn, buf []byte) error {
	have, want := 0, len(buf)
	for have < want {
		n, err := conn.Read(buf[have:])
		if err != nil {
			return err
		}
		have += n
		header, _, whole := bytes.Cut(buf[:have], headerEnd)
		_, length, said := bytes.Cut(header, contentLength)
		if !whole || want < len(buf) {
			continue
		}
		size := 0
		if _, err := fmt.Sscan(string(length[:bytes.IndexByte(append(length, '\r'), '\r')]), &size); err != nil || !said || !bytes.HasPrefix(header, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("unexpected response %q", header)
		}
		if want = len(header) + len(headerEnd) + size; want > len(buf) {
			return fmt.Errorf("%d bytes are no index", size)
		}
	}
	return nil
}

// latencyRows measure how long an index takes while the site is refreshed every second,
// over when nothing else is done: where nothing changes, and where a page does each time.
func (b *bench) latencyRows(ctx context.Context) ([]*row, error) {
	what := number(b.small) + " files: p99 of an index while a refresh runs every second, over idle"
	same := &row{what: what + ", nothing changed", show: duration, reach: atMost(3)}
	edited := &row{what: what + ", a page changed each time", show: duration, reach: atMost(3)}
	root, err := b.tree("tree", b.small, small)
	if err != nil {
		return nil, err
	}
	s, err := b.serve("latency", files(root, seldom))
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if _, err := s.listed(ctx, b.small); err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	c := client{addr: s.addr, path: "/sitemap.xml", connections: 4, pause: 4 * time.Millisecond}
	d := time.Duration(b.seconds * float64(time.Second))
	for range b.runs {
		for _, r := range []*row{same, edited} {
			_, idle, err := c.run(ctx, d)
			if err != nil {
				return nil, err
			}
			done := make(chan error, 1)
			refreshing, cancel := context.WithCancel(ctx)
			go func() { done <- s.refreshEverySecond(refreshing, root, r == edited) }()
			_, p99, err := c.run(ctx, d)
			cancel()
			if err := errors.Join(err, <-done); err != nil {
				return nil, err
			}
			r.add(p99, idle)
		}
		b.say("  latency: %s and %s, idle %s (%s)", duration(last(same.ours)), duration(last(edited.ours)), duration(last(same.other)), load())
	}
	return []*row{same, edited}, nil
}

func last(values []float64) float64 { return values[len(values)-1] }

// refreshEverySecond refreshes a site until ctx has ended.
func (s *server) refreshEverySecond(ctx context.Context, root string, edit bool) error {
	for n := 0; ; n++ {
		next := time.After(time.Second)
		if i := n * filesInFolder; edit {
			content := bytes.Replace(small(i), []byte("lorem"), fmt.Append(nil, time.Now().UnixNano()), 1)
			if err := writePage(filepath.Join(root, pagePath(i)), i, content); err != nil {
				return err
			}
		}
		if _, _, err := s.refresh(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// rateRows compare how often a second an index is served with Caddy's respond, and with its
// file_server and a precompressed file, of as many bytes each.
func (b *bench) rateRows(ctx context.Context) ([]*row, error) {
	const pages = 1000
	var list strings.Builder
	for i := range pages {
		fmt.Fprintln(&list, pagePath(i))
	}
	root := b.path("rate-files")
	if err := errors.Join(os.MkdirAll(root, 0o755), os.WriteFile(b.path("rate-urls.txt"), []byte(list.String()), 0o644)); err != nil {
		return nil, err
	}
	ours := fmt.Sprintf("sitemap {\ncrawl off\nshard_urls 20\nurls \"%s\"\n}", b.path("rate-urls.txt"))
	s, err := b.serve("rate", []string{ours})
	if err != nil {
		return nil, err
	}
	_, err = s.first(ctx, s.sitemap())
	_, index, err2 := get(ctx, s.sitemap())
	s.stop()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	// Without the plain file beside it, file_server does not look for the compressed one.
	if err := errors.Join(os.WriteFile(filepath.Join(root, "sitemap.xml"), []byte("<urlset/>"), 0o644),
		os.WriteFile(filepath.Join(root, "sitemap.xml.gz"), index, 0o644)); err != nil {
		return nil, err
	}
	addrs := []string{s.addr}
	sites := site(s.addr, ours)
	for _, directives := range []string{
		`respond "` + strings.Repeat("x", len(index)) + `"`, "root * \"" + filepath.ToSlash(root) + "\"\nfile_server {\nprecompressed gzip\n}",
	} {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		addrs, sites = append(addrs, addr), sites+site(addr, directives)
	}
	if s, err = b.start(b.binary, "rate", s.addr, sites); err != nil {
		return nil, err
	}
	defer s.stop()
	if _, err := s.first(ctx, s.sitemap()); err != nil {
		return nil, err
	}
	what := "requests for an index of " + number(len(index)) + " bytes of gzip, over "
	respond := &row{what: what + "`respond` with as many bytes", show: perSecond, reach: atLeast(0.95)}
	fileServer := &row{what: what + "`file_server` with a precompressed file", show: perSecond, reach: atLeast(2)}
	for run := range b.runs + 1 {
		var rates [3]float64
		for i, addr := range addrs {
			c := client{addr: addr, path: "/sitemap.xml", connections: 32}
			if rates[i], _, err = c.run(ctx, time.Duration(b.seconds*float64(time.Second))); err != nil {
				return nil, err
			}
		}
		b.say("  rate: %.0f (%s)", rates, load())
		if run > 0 { // the first warms up
			respond.add(rates[0], rates[1])
			fileServer.add(rates[0], rates[2])
		}
	}
	return []*row{respond, fileServer}, nil
}
