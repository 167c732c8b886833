package sitemap

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPeopleJSON: in JSON, html is a boolean or an object, and is written in its shortest form.
func TestPeopleJSON(t *testing.T) {
	for in, want := range map[string]struct {
		out  string
		isOn bool
	}{
		`true`:                            {`true`, true},
		`false`:                           {`false`, false},
		`{}`:                              {`true`, true},
		`{"title":"A"}`:                   {`{"title":"A"}`, true},
		`{"title":"A","css":"/look.css"}`: {`{"title":"A","css":"/look.css"}`, true},
	} {
		p := new(People)
		if err := json.Unmarshal([]byte(in), p); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		out, err := json.Marshal(p)
		if err != nil || string(out) != want.out || p.isOn() != want.isOn {
			t.Errorf("%s: got %s, on %t, %v", in, out, p.isOn(), err)
		}
	}
	for _, in := range []string{`{"titel":"A"}`, `"on"`, `1`} {
		err := json.Unmarshal([]byte(in), new(People))
		if err == nil || !strings.Contains(err.Error(), "json") {
			t.Errorf("%s: got %v", in, err)
		}
	}
	if (*People)(nil).isOn() {
		t.Error("html is on by default")
	}
}
