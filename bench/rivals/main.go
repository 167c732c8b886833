// Command rivals reads access logs as one would with what others have written, for the
// bench to compare with. It is a module of its own, so that caddy-sitemap depends on
// none of them.
//
//	rivals json|gjson LOG                 what a line says of a request and its response
//	rivals json-maps LOG                  the same, by way of all headers
//	rivals json-least|gjson-least LOG     only which page was shown
//	rivals regexp LOG                     the same of a Combined log
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
)

// visit is what each of them reads of a line.
type visit struct {
	time              int64
	method, host, uri string
	status            int
	headers           int // bytes of those that say who asked, and what for
}

var readers = map[string]func(line []byte) (visit, error){
	"json":        readJSON,
	"json-maps":   readJSONMaps,
	"json-least":  readLeastJSON,
	"gjson":       readGJSON,
	"gjson-least": readLeastGJSON,
	"regexp":      readRegexp,
}

func main() {
	if len(os.Args) != 3 || readers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: rivals json|json-maps|json-least|gjson|gjson-least|regexp LOG")
		os.Exit(2)
	}
	p, err := run(readers[os.Args[1]], os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

// parsed is how many lines were read, and sums by which two readers can tell whether
// they read the same.
type parsed struct {
	Lines   int   `json:"lines"`
	Sum     int64 `json:"sum"`
	Headers int64 `json:"headers"`
}

func run(read func([]byte) (visit, error), name string) (parsed, error) {
	var p parsed
	f, err := os.Open(name)
	if err != nil {
		return p, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return p, nil
		}
		if err != nil {
			return p, fmt.Errorf("reading %s: %w", name, err)
		}
		v, err := read(line[:len(line)-1])
		if err != nil {
			return p, fmt.Errorf("%w: %s", err, line)
		}
		p.Lines++
		p.Sum += int64(v.status+len(v.uri)+len(v.host)+len(v.method)) + v.time
		p.Headers += int64(v.headers)
	}
}

func readLeastJSON(line []byte) (visit, error) {
	var l struct {
		TS      float64 `json:"ts"`
		Status  int     `json:"status"`
		Request struct {
			Method string `json:"method"`
			Host   string `json:"host"`
			URI    string `json:"uri"`
		} `json:"request"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return visit{}, err
	}
	r := l.Request
	return visit{int64(l.TS), r.Method, r.Host, r.URI, l.Status, 0}, nil
}

func readLeastGJSON(line []byte) (visit, error) {
	got := gjson.GetManyBytes(line, "ts", "request.method", "request.host", "request.uri", "status")
	return visit{int64(got[0].Num), got[1].Str, got[2].Str, got[3].Str, int(got[4].Int()), 0}, nil
}

func readJSON(line []byte) (visit, error) {
	var l struct {
		TS      float64 `json:"ts"`
		Status  int     `json:"status"`
		UserID  string  `json:"user_id"`
		Request struct {
			Method  string `json:"method"`
			Host    string `json:"host"`
			URI     string `json:"uri"`
			Headers struct {
				UserAgent     []string `json:"User-Agent"`
				Authorization []string `json:"Authorization"`
			} `json:"headers"`
		} `json:"request"`
		RespHeaders struct {
			ContentType []string `json:"Content-Type"`
			RobotsTag   []string `json:"X-Robots-Tag"`
		} `json:"resp_headers"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return visit{}, err
	}
	r, h := l.Request, l.RespHeaders
	headers := 0
	for _, values := range [...][]string{r.Headers.UserAgent, h.ContentType, h.RobotsTag} {
		for _, value := range values {
			headers += len(value)
		}
	}
	return visit{int64(l.TS), r.Method, r.Host, r.URI, l.Status, headers}, nil
}

func readJSONMaps(line []byte) (visit, error) {
	var l struct {
		TS      float64 `json:"ts"`
		Status  int     `json:"status"`
		UserID  string  `json:"user_id"`
		Request struct {
			Method  string              `json:"method"`
			Host    string              `json:"host"`
			URI     string              `json:"uri"`
			Headers map[string][]string `json:"headers"`
		} `json:"request"`
		RespHeaders map[string][]string `json:"resp_headers"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return visit{}, err
	}
	r := l.Request
	headers := 0
	for _, value := range r.Headers["User-Agent"] {
		headers += len(value)
	}
	for _, name := range [...]string{"Content-Type", "X-Robots-Tag"} {
		for _, value := range l.RespHeaders[name] {
			headers += len(value)
		}
	}
	return visit{int64(l.TS), r.Method, r.Host, r.URI, l.Status, headers}, nil
}

func readGJSON(line []byte) (visit, error) {
	got := gjson.GetManyBytes(line, "ts", "request.method", "request.host", "request.uri", "status", "user_id",
		"request.headers.Authorization.0", "request.headers.User-Agent.0", "resp_headers.Content-Type.0", "resp_headers.X-Robots-Tag.0")
	headers := 0
	for _, value := range got[7:] {
		headers += len(value.Str)
	}
	return visit{int64(got[0].Num), got[1].Str, got[2].Str, got[3].Str, int(got[4].Int()), headers}, nil
}

var combined = regexp.MustCompile(`^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+) [^"]*" (\d+) \S+ "[^"]*" "[^"]*"`)

func readRegexp(line []byte) (visit, error) {
	got := combined.FindSubmatch(line)
	if got == nil {
		return visit{}, errors.New("no line of a Combined log")
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(got[2]))
	status, err2 := strconv.Atoi(string(got[5]))
	return visit{at.Unix(), string(got[3]), "", string(got[4]), status, 0}, errors.Join(err, err2)
}
