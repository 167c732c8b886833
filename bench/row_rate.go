package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// wantIndex is about how many bytes the index's gzip is to have.
const wantIndex = 1800

// connections is how many clients ask at a time.
const connections = 32

// rateRows compares how often a second the index is served with Caddy's respond, and
// with its file_server and a file that is compressed already, each with as many bytes
// on a port of the same server.
func (b *bench) rateRows(ctx context.Context) ([]row, error) {
	rate, err := b.rateServer(ctx)
	if err != nil {
		return nil, err
	}
	defer rate.server.stop()
	var each []func() (float64, error)
	for _, addr := range rate.addrs {
		each = append(each, func() (float64, error) {
			return requests(ctx, addr, "/sitemap.xml", rate.size, connections, time.Duration(b.seconds*float64(time.Second)))
		})
	}
	m, err := alternate(ctx, b, b.runs, each...)
	if err != nil {
		return nil, err
	}
	what := "requests a second for an index of " + number(rate.size) + " bytes of gzip, over "
	ratio := func(other string, i int, bound float64) row {
		r := m.ratios[i]
		return row{what + other, number(int(m.each[0])), number(int(m.each[i])), fmt.Sprintf("%.3f", r), fmt.Sprintf("≥ %v", bound), yes(r >= bound)}
	}
	return []row{
		ratio("`respond` with as many bytes", 1, 0.95),
		ratio("`file_server` with a precompressed file of them", 2, 2),
	}, nil
}

type rateServer struct {
	server *server
	addrs  []string // ours, respond, file_server
	size   int
}

// rateServer starts the server. An index's size is known only once it is served, so
// the server is started with a guess first.
func (b *bench) rateServer(ctx context.Context) (*rateServer, error) {
	binary, err := b.caddy(ctx)
	if err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(3)
	if err != nil {
		return nil, err
	}
	r := &rateServer{addrs: addrs}
	pages := 1000
	var index []byte
	for range 4 {
		if index, err = b.rateIndex(ctx, r, binary, pages); err != nil {
			return nil, err
		}
		r.server.stop()
		if len(index) > wantIndex*98/100 && len(index) < wantIndex*102/100 {
			break
		}
		pages = pages * wantIndex / len(index)
	}
	if err := os.MkdirAll(b.path("rate"), 0o755); err != nil {
		return nil, err
	}
	// Without the plain file beside it, file_server would not look for the other.
	for name, content := range map[string][]byte{"sitemap.xml": []byte("<urlset/>"), "sitemap.xml.gz": index} {
		if err := os.WriteFile(b.path("rate", name), content, 0o644); err != nil {
			return nil, err
		}
	}
	r.size = len(index)
	if _, err := b.rateIndex(ctx, r, binary, pages); err != nil {
		return nil, err
	}
	if err := r.check(ctx); err != nil {
		r.server.stop()
		return nil, err
	}
	return r, nil
}

// rateIndex starts the server with so many pages and returns its index.
func (b *bench) rateIndex(ctx context.Context, r *rateServer, binary string, pages int) ([]byte, error) {
	var list strings.Builder
	for i := range pages {
		fmt.Fprintln(&list, pagePath(i))
	}
	urls := b.path("rate-urls.txt")
	if err := os.WriteFile(urls, []byte(list.String()), 0o644); err != nil {
		return nil, err
	}
	site := func(addr, directives string) string {
		return fmt.Sprintf("http://%s {\nbind 127.0.0.1\n%s\n}\n", addr, directives)
	}
	config := caddyfile(b.path("state-rate"), "",
		site(r.addrs[0], "sitemap {\ncrawl off\nshard_urls 20\nurls "+quote(urls)+"\n}"),
		site(r.addrs[1], `respond "`+strings.Repeat("x", r.size)+`"`),
		site(r.addrs[2], "root * "+quote(b.path("rate"))+"\nfile_server {\nprecompressed gzip\n}"))
	var err error
	if r.server, err = b.launch(binary, "rate.caddyfile", config); err != nil {
		return nil, err
	}
	url := "http://" + r.addrs[0] + "/sitemap.xml"
	if _, err := r.server.first(ctx, url); err != nil {
		r.server.stop()
		return nil, err
	}
	index, err := fetch(ctx, url)
	if err != nil {
		r.server.stop()
	}
	return index, err
}

// check asks each of the three once.
func (r *rateServer) check(ctx context.Context) error {
	for i, addr := range r.addrs {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/sitemap.xml", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		compressed := resp.Header.Get("Content-Encoding") == "gzip"
		if resp.StatusCode != http.StatusOK || resp.ContentLength != int64(r.size) || compressed != (i != 1) {
			return fmt.Errorf("the server's port %d answers %s with %d bytes instead of %d, %v", i, resp.Status, resp.ContentLength, r.size, resp.Header)
		}
	}
	return nil
}
