package fleet

import (
	"slices"
	"strings"
	"testing"
)

// sights reads nodes with their views, such as "a=1 b=2 c=2~": node c has not settled; "d=" cannot tell. The first is own.
func sights(text string) (own Sight, others []Sight) {
	for i, field := range strings.Fields(text) {
		node, view, _ := strings.Cut(field, "=")
		view, isMoving := strings.CutSuffix(view, "~")
		s := Sight{Node: node, Name: "host " + node, View: view, IsSettled: !isMoving}
		if i == 0 {
			own = s
			continue
		}
		others = append(others, s)
	}
	return own, others
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		nodes     string // the first is the one that judges
		writer    string
		isLasting bool
		vote      Vote
		seconded  bool
		apart     string // nodes
	}{
		"alone":                          {"a=1", "a", true, Free, true, ""},
		"two agree":                      {"a=1 b=1", "b", true, Free, true, ""},
		"nothing tells":                  {"a= b= c=", "b", true, Free, true, ""},
		"it cannot tell itself":          {"a= b=1 c=1", "a", true, Free, true, ""},
		"another one cannot tell":        {"a=1 b=1 c=", "a", true, Free, true, ""},
		"the stale writer":               {"c=old a=new b=new", "c", true, Outvoted, false, ""},
		"the stale writer is the first":  {"a=old b=new c=new", "a", true, Outvoted, false, "a"},
		"the majority tells of it":       {"a=new c=old b=new", "c", true, Free, true, "c"},
		"only the first tells":           {"b=new a=new c=old", "c", true, Free, true, ""},
		"the majority, at once":          {"a=new b=old~ c=old~", "a", false, Outvoted, true, ""},
		"a deployment on the first":      {"a=new b=old c=old", "a", false, Outvoted, false, ""},
		"a deployment on the second":     {"b=new a=new c=old", "b", false, Free, true, ""},
		"it is left behind":              {"c=old b=new a=new", "b", false, Outvoted, false, ""},
		"two differ for a moment":        {"a=1 b=2", "b", false, Free, false, ""},
		"two differ: the writer stays":   {"b=2 a=1", "b", true, Free, false, ""},
		"two differ: the other yields":   {"a=1 b=2", "b", true, Yields, false, "a"},
		"two differ: the writer is gone": {"a=1 b=2", "c", true, Free, false, "b"},
		"the writer cannot tell":         {"a=1 b=2 c=", "c", true, Free, false, "b"},
		"two against two":                {"a=1 b=1 c=2 d=2", "d", true, Yields, true, "a b"},
		"two against two, the writer":    {"d=2 b=1 c=2 a=1", "d", true, Free, true, ""},
		"half is not most":               {"a=1 b=2 c=2 d=3", "a", true, Free, false, "b c d"},
		"all differ":                     {"b=2 a=1 c=3", "a", true, Yields, false, ""},
		"no front page is ever the same": {"a=1~ b=2~ c=3~", "a", false, Free, true, ""},
		"most of five":                   {"e=2 a=1 b=1 c=1 d=2", "e", true, Outvoted, true, ""},
	} {
		own, others := sights(test.nodes)
		for range len(others) + 1 { // the order of the others does not matter
			got := judge(own, others, test.writer, test.isLasting)
			var want []string
			for _, node := range strings.Fields(test.apart) {
				want = append(want, "host "+node)
			}
			if got.Vote != test.vote || got.IsSeconded != test.seconded || !slices.Equal(got.Apart, want) {
				t.Errorf("%s: got %+v", name, got)
			}
			if len(others) > 0 {
				others = append(others[1:], others[0])
			}
		}
	}
}

// TestJudgeAll has all divisions of up to five nodes on up to four views: of the nodes that may refresh the site, all have one view
// if one is listed, at least one node may, and exactly one warns if the views differ for long.
func TestJudgeAll(t *testing.T) {
	const views = 4 // "" is one of them
	for n := 1; n <= 5; n++ {
		for code := range pow(views, n) {
			var all []Sight
			different := make(map[string]int)
			for i, rest := 0, code; i < n; i, rest = i+1, rest/views {
				view := strings.Repeat("v", rest%views)
				all = append(all, Sight{Node: string(rune('a' + i)), Name: string(rune('a' + i)), View: view, IsSettled: true})
				if view != "" {
					different[view]++
				}
			}
			for writer := range n {
				for _, isLasting := range []bool{false, true} {
					checkAll(t, all, all[writer], isLasting, different)
				}
			}
		}
	}
}

func pow(base, n int) int {
	result := 1
	for range n {
		result *= base
	}
	return result
}

func checkAll(t *testing.T, all []Sight, writer Sight, isLasting bool, different map[string]int) {
	t.Helper()
	free := make(map[string]bool)
	mayRefresh, warnings := 0, 0
	for i, own := range all {
		j := judge(own, append(slices.Clone(all[:i]), all[i+1:]...), writer.Node, isLasting)
		if j.Vote == Free {
			mayRefresh++
			if own.View != "" {
				free[own.View] = true
			}
		}
		if len(j.Apart) > 0 {
			warnings++
		}
		if own.Node == writer.Node && j.Vote == Yields {
			t.Errorf("%v: the writer yields to itself", all)
		}
	}
	isDifferent := len(different) > 1
	if mayRefresh == 0 {
		t.Errorf("%v: no node may refresh the site", all)
	}
	if isLasting && writer.View != "" && len(free) > 1 {
		t.Errorf("%v, written by %s: nodes with views %v may refresh the site", all, writer.Node, free)
	}
	if want := isDifferent && isLasting; (warnings == 1) != want || warnings > 1 {
		t.Errorf("%v, written by %s: %d nodes warn", all, writer.Node, warnings)
	}
}
