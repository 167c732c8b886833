package parts

import (
	"fmt"
	"reflect"
	"testing"
)

func TestPartsOf(t *testing.T) {
	slow := []string{"Slowest", "Slow.*"}
	names := []string{"TestSlow", "TestSlowest", "TestSlowToo"}
	quick := make([][]string, processes)
	for i := range processes + 1 { // one more than there are processes
		name := fmt.Sprint("Test", i)
		names = append(names, name)
		quick[i%processes] = append(quick[i%processes], name)
	}
	own := [][]string{{"TestSlowest"}, {"TestSlow"}, {"TestSlowToo"}}
	if got, want := partsOf(names, slow, false), append(own, quick...); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := partsOf(names, slow, true); !reflect.DeepEqual(got, quick) {
		t.Errorf("short: got %q, want %q", got, quick)
	}
	if got := partsOf([]string{"TestA"}, slow, false); !reflect.DeepEqual(got, [][]string{{"TestA"}}) {
		t.Errorf("one test: got %q", got)
	}
	if got := partsOf([]string{"TestSlow"}, slow, true); got != nil {
		t.Errorf("nothing that is quick: got %q", got)
	}
}
