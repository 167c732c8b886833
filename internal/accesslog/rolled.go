package accesslog

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// packing is how a file's bytes are compressed.
type packing uint8

const (
	plain packing = iota
	gzipped
	zstandard
	foreign // compressed in a way that is not read here
)

// style is what is put to a log's name when it is rolled. Where a folder has files
// of one log in more than one style, they follow one another in this order.
type style uint8

const (
	stamped  style = iota // with a time, perhaps as its writer goes on with it
	tagged                // with a time and why it was rolled
	numbered              // with a number, 1 for the newest
	current               // the log itself
)

// age orders the files of one log.
type age struct {
	style  style
	digits string // of the time
	tag    string
	number int
}

func (a age) compare(b age) int {
	if a.style <= tagged && b.style <= tagged {
		return cmp.Or(strings.Compare(a.digits, b.digits), cmp.Compare(len(a.tag), len(b.tag)), strings.Compare(a.tag, b.tag))
	}
	return cmp.Or(cmp.Compare(a.style, b.style), cmp.Compare(b.number, a.number))
}

// stampedName matches a name with a time in it, which begins with a date:
//
//	access-2026-11-21T01-35-51.000-size.log   timberjack's, which is Caddy's
//	access-2026-11-21T01-35-51.000.log        lumberjack's, which was Caddy's
//	access.log-20261121                       logrotate's with dateext
//	access-20261121.log                       and with extension .log
//	access.log-20261121-1795226077            and with its dateformat -%Y%m%d-%s
//	access.log.2026-11-21-00_00_00            Apache's rotatelogs
//
// A backup_time_format that writes a month by its name is not known.
var stampedName = regexp.MustCompile(`^(.+?)[-._]` +
	`((?:19|20)\d\d[-._]?(?:0[1-9]|1[0-2])[-._]?(?:0[1-9]|[12]\d|3[01])(?:[-T._:]?\d+)*Z?)` +
	`(-[a-z0-9_]+)?(\.[A-Za-z][A-Za-z0-9]*)?$`)

// numberedName matches access.log.1, and access.log.1795226077 by rotatelogs, which
// is a time.
var numberedName = regexp.MustCompile(`^(.+)\.(\d{1,5}|\d{10})$`)

// unpacked is a file's name without the ending that tells how it is compressed.
func unpacked(name string) (string, packing) {
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 {
		return name, plain
	}
	switch name[dot:] {
	case ".gz":
		return name[:dot], gzipped
	case ".zst":
		return name[:dot], zstandard
	case ".bz2", ".xz", ".lz4", ".lzma", ".br", ".Z", ".zip", ".7z":
		return name[:dot], foreign
	}
	return name, plain
}

// rolledFrom is the name of the log that a file of this name, without what tells
// how it is compressed, was rolled from: the name itself if it does not look rolled.
func rolledFrom(name string) (string, age) {
	if m := numberedName.FindStringSubmatch(name); m != nil {
		if len(m[2]) == 10 {
			return m[1], age{style: stamped, digits: m[2]}
		}
		n, _ := strconv.Atoi(m[2])
		return m[1], age{style: numbered, number: n}
	}
	m := stampedName.FindStringSubmatch(name)
	if m == nil {
		return name, age{style: current}
	}
	a := age{style: stamped, digits: digitsOf(m[2]), tag: m[3]}
	if a.tag != "" {
		a.style = tagged
	}
	return m[1] + m[4], a
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// isUnfinished reports whether a name is one of a file that is still being
// compressed.
func isUnfinished(name string) bool {
	rest, ok := strings.CutSuffix(name, ".tmp")
	if !ok {
		return false
	}
	_, p := unpacked(rest)
	return p != plain
}
