package option

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestFind: a word that is likely misspelt names what was meant, others all there are.
func TestFind(t *testing.T) {
	for _, test := range []struct {
		known string
		words map[string]string // what was meant; "": all
	}{
		{"path base_url refresh robots_txt exclude rule crawl files urls", map[string]string{
			"refesh": "refresh", "refrehs": "refresh", "Refresh": "refresh", "apth": "path", "paths": "path", "base": "base_url", "base-url": "base_url",
			"url": "urls", "fil": "files", "robots.txt": "robots_txt", "exlude": "exclude", "crawling": "crawl",
			"gzip": "", "encode": "", "{": "", strings.Repeat("x", 1000): "",
		}},
		{"at include exclude clean_urls", map[string]string{"includes": "include", "clean": "clean_urls"}},
	} {
		var all Options
		for _, name := range strings.Fields(test.known) {
			all = append(all, Option{Name: name})
			if found, err := all.Find(name); err != nil || found.Name != name {
				t.Errorf("%s: got %v, %v", name, found.Name, err)
			}
		}
		all = append(all, Option{Name: "elsewhere", Hint: "in another place"})
		for word, meant := range test.words {
			want := "use " + strings.ReplaceAll(test.known, " ", ", ")
			if meant != "" {
				want = "did you mean '" + meant + "'?"
			}
			if _, err := all.Find(word); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%.20q: got %v, want %q", word, err, want)
			}
		}
	}
}

// lower is a setting that reads itself.
type lower string

func (l *lower) UnmarshalJSON(quoted []byte) error {
	var text string
	err := json.Unmarshal(quoted, &text)
	*l = lower(strings.ToLower(text))
	return err
}

// TestSet: what arguments set, from its value before, or what is wrong with them.
func TestSet(t *testing.T) {
	yes, no := true, false
	pointer := func(b *bool) **bool { return &b }
	to := func(value any) any { // the address of a copy
		p := reflect.New(reflect.TypeOf(value))
		p.Elem().Set(reflect.ValueOf(value))
		return p.Interface()
	}
	block := func([]string) Options { return nil }
	for _, test := range []struct {
		name    string
		option  Option
		args    string
		want    any
		wantErr string
	}{
		{"a string", Option{Usage: "<a>", To: to("")}, "x", "x", ""},
		{"a string of words", Option{Usage: "<a>", To: to("")}, "x y", nil, "wrong number of values: use 'name <a>'"},
		{"a string twice", Option{Usage: "<a>", To: to("x")}, "y", nil, "name is given twice"},
		{"no string", Option{Usage: "<a>", To: to("")}, "", nil, "wrong number of values: use 'name <a>'"},
		{"an empty string", Option{Usage: "<a>", To: to("")}, `""`, nil, "name has an empty value"},
		{"a list", Option{Usage: "<a> [<b>]", To: to([]string(nil))}, "x y", []string{"x", "y"}, ""},
		{"a list twice", Option{Usage: "<a>", To: to([]string{"x"})}, "y", []string{"x", "y"}, ""},
		{"a list that may be empty", Option{Usage: "[<a>]", To: to([]string(nil))}, "", []string(nil), ""},
		{"a flag", Option{To: to(false)}, "", true, ""},
		{"a flag twice", Option{To: to(true)}, "", nil, "name is given twice"},
		{"a flag with an argument", Option{To: to(false)}, "on", nil, "unexpected argument 'on': name alone turns it on; without it, it is off"},
		{"a flag that turns off", Option{Usage: "off", To: to(false)}, "off", true, ""},
		{"a flag that only turns off", Option{Usage: "off", To: to(false)}, "on", nil, "name 'on': use 'name off'"},
		{"a flag that may have arguments", Option{Usage: "[off]", To: to(false)}, "", false, ""},
		{"on", Option{Usage: "on|off", To: pointer(nil)}, "on", &yes, ""},
		{"off", Option{Usage: "on|off", To: pointer(nil)}, "off", &no, ""},
		{"neither on nor off", Option{Usage: "on|off", To: pointer(nil)}, "yes", nil, "name 'yes': use 'name on|off'"},
		{"a number", Option{Usage: "<n>", To: to(0)}, "7", 7, ""},
		{"a number that is the default", Option{Usage: "<n>", To: to(0)}, "0", nil, "name '0': use 'name <n>'"},
		{"no number", Option{Usage: "<n>", To: to(0)}, "x", nil, "name 'x': use 'name <n>'"},
		{"a rate", Option{Usage: "<rate>", To: to(0.0)}, "0.5/s", 0.5, ""},
		{"no rate", Option{Usage: "<rate>", To: to(0.0)}, "2/m", nil, "name '2/m': use 'name <rate>'"},
		{"what reads itself", Option{Usage: "<a>", To: to(lower(""))}, "X", lower("x"), ""},
		{"a block", Option{Block: block}, "", nil, ""},
		{"a block with an argument", Option{Block: block}, "x", nil, "unexpected argument 'x': the options of name belong in a block"},
		{"arguments of a block", Option{Usage: "<a>", Block: block}, "x", nil, ""},
		{"elsewhere", Option{Hint: "use it there", To: to(false)}, "", nil, "name does not belong here: use it there"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.option.Name = "name"
			args := strings.Fields(test.args)
			for i := range args {
				args[i] = strings.Trim(args[i], `"`)
			}
			err := test.option.Set(args)
			if test.wantErr != "" {
				if err == nil || err.Error() != test.wantErr {
					t.Errorf("got %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if test.option.To == nil {
				return
			}
			if got := reflect.ValueOf(test.option.To).Elem().Interface(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestParseRate(t *testing.T) {
	for value, want := range map[string]float64{
		"2/s": 2, "0.5/s": 0.5, "1e-3/s": 0.001,
		"2": 0, "0/s": 0, "-1/s": 0, "NaN/s": 0, "/s": 0, "": 0,
	} {
		if got, err := ParseRate(value); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %v, %v, want %v", value, got, err, want)
		}
	}
}

// TestChecker: the first error is kept, and settings that are not given have their default.
func TestChecker(t *testing.T) {
	for _, test := range []struct {
		name  string
		check func(c *Checker) int
		want  int
		err   string
	}{
		{"no word", func(c *Checker) int { return c.Choose("mode", "", "a", "b") }, 0, ""},
		{"a word", func(c *Checker) int { return c.Choose("mode", "b", "a", "b") }, 1, ""},
		{"another word", func(c *Checker) int { return c.Choose("mode", "x", "a", "b") }, -1, "mode is 'x': use one of a, b"},
		{"no number", func(c *Checker) int { return c.InRange("most", 0, 5, 9) }, 5, ""},
		{"the least", func(c *Checker) int { return c.InRange("most", 1, 5, 9) }, 1, ""},
		{"the most", func(c *Checker) int { return c.InRange("most", 9, 5, 9) }, 9, ""},
		{"too many", func(c *Checker) int { return c.InRange("most", 10, 5, 9) }, 10, "most is 10: use 1 to 9"},
		{"too few", func(c *Checker) int { return c.InRange("most", -1, 5, 9) }, -1, "most is -1: use 1 to 9"},
	} {
		var c Checker
		got := test.check(&c)
		text := ""
		if c.Err != nil {
			text = c.Err.Error()
		}
		if got != test.want || text != test.err {
			t.Errorf("%s: got %d, %q, want %d, %q", test.name, got, text, test.want, test.err)
		}
		c.Refuse(true, "another")
		if want := "another"; text == "" && c.Err.Error() != want || text != "" && c.Err.Error() != text {
			t.Errorf("%s: then got %v", test.name, c.Err)
		}
	}
}
