package accesslog

import "testing"

// newParser is NewParser for Options that are right.
func newParser(t testing.TB, o Options) *Parser {
	t.Helper()
	p, err := NewParser(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parse reads a line, and tries that a parser forgets the line before.
func parse(t testing.TB, p *Parser, line string) (v Visit, err error) {
	t.Helper()
	v = Visit{Time: 1, Method: "M", Host: "h", URI: "/u", User: true, Status: 1, UserAgent: "a", ContentType: "t", RobotsTag: "r"}
	b := []byte(line)
	err = p.Parse(b, &v)
	if string(b) != line {
		t.Fatalf("the line became %q", b)
	}
	if err != nil && v != (Visit{}) {
		t.Fatalf("%q: got %+v with %v", line, v, err)
	}
	return v, err
}

func TestFormat(t *testing.T) {
	for _, f := range []Format{Auto, JSON, Common, Combined} {
		if got, err := ParseFormat(f.String()); got != f || err != nil {
			t.Errorf("%s: got %v, %v", f, got, err)
		}
	}
	for _, name := range []string{"", "JSON", "clf", "Format(4)"} {
		if got, err := ParseFormat(name); err == nil {
			t.Errorf("%q: got %v", name, got)
		}
	}
	if got, want := Format(4).String(), "Format(4)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := NewParser(Options{Format: 4}); err == nil {
		t.Error("a parser for Format(4)")
	}
}

func TestParseFormats(t *testing.T) {
	const (
		object = `{"request":{"uri":"/a"}}`
		common = `192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 1`
		agent  = common + ` "-" "x"`
	)
	for _, test := range []struct {
		format Format
		line   string
		want   error
	}{
		{Auto, object, nil},
		{Auto, common, nil},
		{Auto, agent, nil},
		{Auto, "\xEF\xBB\xBF" + object, nil},
		{Auto, "\xEF\xBB\xBF" + common, nil},
		{Auto, " \t" + object + " \r", nil},
		{Auto, "\xEF\xBB\xBF \t" + agent + "\r", nil},
		{Auto, "", ErrNoRequest},
		{Auto, " \t\r", ErrNoRequest},
		{Auto, "\xEF\xBB\xBF", ErrNoRequest},
		{Auto, "\xEF\xBB", ErrSyntax},
		{Auto, "# " + common, ErrSyntax},
		{Auto, `"` + agent + `"`, ErrSyntax},
		{Auto, `"{\"request\":{\"uri\":\"/a\"}}"`, ErrSyntax},
		{Auto, "'" + agent + "'", ErrSyntax},
		{Auto, "[" + object + "]", ErrSyntax},
		{Auto, "Nov 21 09:18:01 host nginx: " + agent, ErrSyntax},
		{Auto, "<134>Nov 21 09:18:01 host nginx: " + agent, ErrSyntax},
		{Auto, "<134>1 2026-11-21T09:18:01Z host nginx 123 - - " + agent, ErrSyntax},
		{Auto, "2026-11-21T09:18:01Z " + agent, ErrSyntax},
		{Auto, "host nginx: " + agent, ErrSyntax},
		{Auto, "nginx: " + agent, ErrSyntax},
		{Auto, "web_1  | " + agent, ErrSyntax},
		{Auto, "web_1  | " + object, ErrSyntax},
		{Auto, "\x00\x00" + agent, ErrSyntax},
		{Auto, agent + "\x00", ErrSyntax},
		{Auto, "\x00\x00" + object, ErrSyntax},
		{Auto, object + "\x00", ErrSyntax},
		{Auto, "\x1f\x8b\x08\x00\x00", ErrSyntax},
		{Auto, "2026/11/21 09:18:01 [error] 12#12: *1 open() \"/a\" failed", ErrSyntax},
		{Auto, "<6>" + object, ErrSyntax},
		{Auto, "2026/11/21 01:54:37.095\tINFO\thttp.log.access\thandled request\t" + `{"request": {"uri": "/a", "headers": {"Accept": ["x"]}}}`, ErrSyntax},
		{JSON, object, nil},
		{JSON, common, ErrSyntax},
		{JSON, "null", ErrSyntax},
		{JSON, "", ErrNoRequest},
		{Common, common, nil},
		{Common, agent, nil},
		{Common, common + ` "-" "cut short`, nil},
		{Common, object, ErrSyntax},
		{Combined, agent, nil},
		{Combined, common, ErrSyntax},
		{Combined, common + ` "-"`, ErrSyntax},
		{Combined, object, ErrSyntax},
	} {
		if v, err := parse(t, newParser(t, Options{Format: test.format}), test.line); err != test.want || err == nil && v.URI != "/a" {
			t.Errorf("%v: %q: got %+v, %v, want %v", test.format, test.line, v, err, test.want)
		}
	}
}
