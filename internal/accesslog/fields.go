package accesslog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// field is what a value in JSON is read for.
type field uint8

const (
	noField field = iota
	fieldTime
	fieldLogger
	fieldMethod
	fieldHost
	fieldURI
	fieldClientIP
	fieldRemoteIP
	fieldRemoteAddr
	fieldUserID
	fieldStatus
	fieldUserAgent
	fieldCookie
	fieldAuthorization
	fieldContentType
	fieldCacheControl
	fieldRobotsTag
	fieldETag
	fieldLastModified
)

// place is where Caddy writes a field.
type place struct {
	name string
	id   field  // noField: others lie below it
	in   string // the field that it lies below
	path string
}

var places = []place{
	{"request_headers", noField, "", "request>headers"},
	{"resp_headers", noField, "", "resp_headers"},
	{"ts", fieldTime, "", "ts"},
	{"logger", fieldLogger, "", "logger"},
	{"method", fieldMethod, "", "request>method"},
	{"host", fieldHost, "", "request>host"},
	{"uri", fieldURI, "", "request>uri"},
	{"client_ip", fieldClientIP, "", "request>client_ip"},
	{"remote_ip", fieldRemoteIP, "", "request>remote_ip"},
	{"remote_addr", fieldRemoteAddr, "", "request>remote_addr"},
	{"user_id", fieldUserID, "", "user_id"},
	{"status", fieldStatus, "", "status"},
	{"user_agent", fieldUserAgent, "request_headers", "User-Agent"},
	{"cookie", fieldCookie, "request_headers", "Cookie"},
	{"authorization", fieldAuthorization, "request_headers", "Authorization"},
	{"content_type", fieldContentType, "resp_headers", "Content-Type"},
	{"cache_control", fieldCacheControl, "resp_headers", "Cache-Control"},
	{"robots_tag", fieldRobotsTag, "resp_headers", "X-Robots-Tag"},
	{"etag", fieldETag, "resp_headers", "Etag"},
	{"last_modified", fieldLastModified, "resp_headers", "Last-Modified"},
}

// fieldPaths is what is read at each path. A path that is given hides the one of
// another field in Caddy's lines.
func fieldPaths(given map[string]string) (map[string]field, error) {
	if err := checkFields(given); err != nil {
		return nil, err
	}
	paths, names := map[string]field{}, map[string]string{}
	for _, p := range places {
		path, ok := given[p.name]
		if !ok || p.id == noField {
			continue
		}
		if other := names[path]; other != "" {
			return nil, fmt.Errorf("fields %s and %s are both read from %s", other, p.name, path)
		}
		paths[path], names[path] = p.id, p.name
	}
	folders := map[string]string{}
	for _, p := range places {
		path, ok := given[p.name]
		switch {
		case p.id == noField && ok:
			folders[p.name] = path
		case p.id == noField:
			folders[p.name] = p.path
		case ok:
		default:
			path = p.path
			if p.in != "" {
				path = folders[p.in] + ">" + path
			}
			if paths[path] == noField {
				paths[path] = p.id
			}
		}
	}
	return paths, nil
}

// FieldNames are the names that [Options.Fields] may have.
func FieldNames() []string {
	var names []string
	for _, p := range places {
		names = append(names, p.name)
	}
	return names
}

func checkFields(given map[string]string) error {
	known := FieldNames()
	var names []string
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names) // so that the same error comes each time
	for _, name := range names {
		path := given[name]
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("unknown field '%s': there are %s", name, strings.Join(known, ", "))
		case path == "":
			return fmt.Errorf("field %s: no path", name)
		case slices.Contains(strings.Split(path, ">"), ""):
			return fmt.Errorf("field %s: '%s' has an empty key", name, path)
		case !utf8.ValidString(path) || strings.ContainsRune(path, utf8.RuneError):
			// What is not UTF-8 in a line's keys would match U+FFFD.
			return fmt.Errorf("field %s: %q is not UTF-8", name, path)
		}
	}
	return nil
}

// node is what is looked for in one object.
type node struct {
	children []*child
	first    [slots]*child // of those that share a slot
}

type child struct {
	key   string
	field field  // what it is read for
	below *node  // what to look for in it, if it is an object; nil: nothing
	bit   uint32 // its own among the children; there are fewer than 32 fields
	next  *child // that shares its slot
}

const slots = 64

// slot parts the keys of a node such that nearly each has a slot of its own.
func slot(key []byte) uint8 {
	if len(key) == 0 {
		return 0
	}
	return (uint8(len(key))*5 + key[0]*3 + key[len(key)-1]) % slots
}

// find is the child of a key, or nil.
func (n *node) find(key []byte) *child {
	c := n.first[slot(key)]
	for c != nil && c.key != string(key) {
		c = c.next
	}
	return c
}

func (n *node) child(key string) *child {
	if c := n.find([]byte(key)); c != nil {
		return c
	}
	s := slot([]byte(key))
	c := &child{key: key, bit: 1 << len(n.children), next: n.first[s]}
	n.first[s] = c
	n.children = append(n.children, c)
	return c
}

func newTree(paths map[string]field) *node {
	root := new(node)
	for path, id := range paths {
		keys := strings.Split(path, ">")
		n := root
		for _, key := range keys[:len(keys)-1] {
			c := n.child(key)
			if c.below == nil {
				c.below = new(node)
			}
			n = c.below
		}
		n.child(keys[len(keys)-1]).field = id
	}
	return root
}
