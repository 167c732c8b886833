package visits

import (
	"cmp"
	"strings"

	"github.com/valyala/fastjson"
)

// parseJSON reads a line that Caddy wrote. Those of other logs of Caddy's have no request, or tell of one that the access
// log has, too.
func (r *Reader) parseJSON(line []byte) (v Visit, problem string) {
	l, err := r.json.ParseBytes(line)
	if err != nil {
		return v, unread
	}
	isCaddys := l.Exists("request", "uri") || l.Exists("ts") && l.Exists("msg")
	if !isCaddys {
		return v, unread
	}
	get := func(keys ...string) string { return text(l.Get(keys...)) }
	agent := get("request", "headers", "User-Agent")
	// Caddy writes all headers of a request: without one of them, there was none, or a filter has dropped it.
	if agent == "" && l.GetObject("request", "headers") != nil {
		agent = "-"
	}
	method := get("request", "headers", "X-Http-Method-Override")
	return Visit{
		Time:        parseTime(get("ts")),
		Method:      cmp.Or(method, get("request", "method")),
		Host:        get("request", "host"),
		URI:         get("request", "uri"),
		User:        isUser(get("user_id")) || isUser(get("request", "headers", "Authorization")),
		Cookie:      l.Exists("request", "headers", "Cookie"),
		Status:      l.GetInt("status"),
		UserAgent:   agent,
		ContentType: get("resp_headers", "Content-Type"),
		RobotsTag:   get("resp_headers", "X-Robots-Tag"),
		Location:    get("resp_headers", "Location"),
	}, ""
}

// text returns a string, a number as it is written, or the texts of an array, joined as RFC 9110, section 5.3, has it for
// headers, which Caddy writes as arrays. Filters of Caddy's log turn an array into a string. Nothing else has a text.
func text(value *fastjson.Value) string {
	if value == nil {
		return ""
	}
	switch value.Type() {
	case fastjson.TypeNumber:
		return value.String()
	case fastjson.TypeArray:
		var all []string
		for _, one := range value.GetArray() {
			all = append(all, text(one))
		}
		return strings.Join(all, ", ")
	}
	return string(value.GetStringBytes())
}
