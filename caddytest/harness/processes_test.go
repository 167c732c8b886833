package harness

import (
	"reflect"
	"regexp"
	"testing"
)

func TestPartsOf(t *testing.T) {
	slow := regexp.MustCompile("^Test(Slow.*)$")
	names := []string{"TestA", "TestSlow", "TestB", "TestC", "TestSlowToo", "TestD", "TestE", "TestF", "TestG", "TestH", "TestI"}
	quick := [][]string{{"TestA", "TestI"}, {"TestB"}, {"TestC"}, {"TestD"}, {"TestE"}, {"TestF"}, {"TestG"}, {"TestH"}}
	own := [][]string{{"TestSlow"}, {"TestSlowToo"}}
	if got, want := partsOf(names, slow, false), append(own, quick...); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := partsOf(names, slow, true); !reflect.DeepEqual(got, quick) {
		t.Errorf("short: got %q, want %q", got, quick)
	}
	if got := partsOf(names[:1], slow, false); !reflect.DeepEqual(got, [][]string{{"TestA"}}) {
		t.Errorf("one test: got %q", got)
	}
	if got := partsOf([]string{"TestSlow"}, slow, true); got != nil {
		t.Errorf("nothing that is quick: got %q", got)
	}
}
