package harness

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

// Local is the site of most tests.
const Local = "http://localhost:{port}"

// maxRead is the most that is read of a body: some that tests make have no end.
const maxRead = 64 << 20

// Response is a whole response.
type Response struct {
	*http.Response
	Text string
}

// Get requests a URL as a client without compression would; every host name leads to
// this machine, redirects are not followed. headers are pairs "Name: value"; a
// "Host: …" sets the Host header.
func (s *Server) Get(url string, headers ...string) Response {
	s.T.Helper()
	return s.Do(http.MethodGet, url, headers...)
}

// Do is Get with another method.
func (s *Server) Do(method, url string, headers ...string) Response {
	s.T.Helper()
	r, err := s.Try(method, url, headers...)
	if err != nil {
		s.T.Fatalf("%s %s: %v", method, url, err)
	}
	return r
}

// Try is Do where it may fail.
func (s *Server) Try(method, url string, headers ...string) (Response, error) {
	s.T.Helper()
	request, err := http.NewRequest(method, s.Expand(url), nil)
	if err != nil {
		return Response{}, err
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			request.Host = value
			continue
		}
		request.Header.Add(name, value)
	}
	resp, err := Client.Do(request)
	isCutOff := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if isCutOff {
		// A listener that was being closed has taken the connection.
		resp, err = Client.Do(request)
	}
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRead+1))
	if err == nil && len(body) > maxRead {
		err = fmt.Errorf("a body of over %d bytes", maxRead)
	}
	return Response{resp, string(body)}, err
}

// Client talks HTTP/1.1, or HTTP/2 over TLS, and keeps no connections.
var Client = &http.Client{
	Timeout: Patience,
	Transport: &http.Transport{
		DisableCompression: true,
		DisableKeepAlives:  true,
		ForceAttemptHTTP2:  true,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		},
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Locs lists the URLs of a sitemap, or of all shards of an index, in order. Anything
// but a 200 with a well-formed document fails the test.
func (s *Server) Locs(url string, headers ...string) []string {
	s.T.Helper()
	urls, err := s.TryLocs(url, headers...)
	if err != nil {
		s.T.Fatalf("%s: %v", s.Expand(url), err)
	}
	return urls
}

// TryLocs is Locs where it may fail.
func (s *Server) TryLocs(url string, headers ...string) ([]string, error) {
	r, err := s.Try(http.MethodGet, url, headers...)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d, body %.200q", r.StatusCode, r.Text)
	}
	d, err := sitemaps.Read(r.Text)
	if err != nil {
		return nil, err
	}
	locs := sitemaps.Locs(d.Pages)
	for _, child := range d.Children {
		more, err := s.TryLocs(child.Loc, headers...)
		if err != nil {
			return nil, err
		}
		locs = append(locs, more...)
	}
	return locs, nil
}

// WantLocs waits until a sitemap lists just these URLs, in which words are replaced.
func (s *Server) WantLocs(url string, want ...string) {
	s.T.Helper()
	for i := range want {
		want[i] = s.Expand(want[i])
	}
	var got []string
	var err error
	s.Eventually(func() bool {
		got, err = s.TryLocs(url)
		return err == nil && slices.Equal(got, want)
	}, func() string {
		return fmt.Sprintf("%s lists %q (%v), want %q\n%s", s.Expand(url), got, err, want, s.SitemapLog())
	})
}

// WantStatus waits until a URL answers with a status.
func (s *Server) WantStatus(url string, want int) {
	s.T.Helper()
	var got int
	s.Eventually(func() bool {
		got = s.Get(url).StatusCode
		return got == want
	}, func() string {
		return fmt.Sprintf("%s: status %d, want %d\n%s", s.Expand(url), got, want, s.SitemapLog())
	})
}

// Raw sends a request as it stands, and returns the status of the answer.
func (s *Server) Raw(request string) int {
	s.T.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+s.Port)
	Must(s.T, err)
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(request)); err != nil {
		s.T.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.T.Fatalf("%q: %v", request, err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// Dates are what a site's sitemap says of its pages, by path; "" where it says nothing.
func (s *Server) Dates(origin string) map[string]string {
	s.T.Helper()
	dates := make(map[string]string)
	var read func(url string)
	read = func(url string) {
		r := s.Get(url)
		if r.StatusCode != http.StatusOK {
			s.T.Fatalf("%s: got status %d\n%s", s.Expand(url), r.StatusCode, s.SitemapLog())
		}
		d, err := sitemaps.Read(r.Text)
		Must(s.T, err)
		for _, p := range d.Pages {
			dates[strings.TrimPrefix(p.Loc, s.Expand(origin))] = p.LastMod
		}
		for _, child := range d.Children {
			read(child.Loc)
		}
	}
	read(origin + "/sitemap.xml")
	return dates
}

// WantDates waits until a site's sitemap says just this.
func (s *Server) WantDates(origin string, want map[string]string) {
	s.T.Helper()
	var got map[string]string
	s.Eventually(func() bool {
		got = s.Dates(origin)
		return maps.Equal(got, want)
	}, func() string {
		return fmt.Sprintf("%s: got %v, want %v\n%s", s.Expand(origin), got, want, s.SitemapLog())
	})
}

// Gunzip decompresses.
func Gunzip(t *testing.T, data string) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader([]byte(data)))
	Must(t, err)
	plain, err := io.ReadAll(z)
	Must(t, err)
	return string(plain)
}

// Again requests a URL, several times if need be: a server that ends takes connections
// with it that nobody has read from.
func (s *Server) Again(url string) (r Response, err error) {
	for range 5 {
		if r, err = s.Try(http.MethodGet, url); err == nil {
			break
		}
	}
	return r, err
}

// Below are URLs of a site, by their paths.
func Below(origin string, paths []string) []string {
	var urls []string
	for _, path := range paths {
		urls = append(urls, origin+path)
	}
	return urls
}
