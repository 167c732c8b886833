package html

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/net/html/atom"
)

// TestCloseAgainstModel: an end tag closes the last open element of its name and what is in it, but none outside of a template.
func TestCloseAgainstModel(t *testing.T) {
	names := []atom.Atom{atom.Div, atom.Nav, atom.Ul, atom.Template, atom.Table, atom.Main, atom.Svg}
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		var r reader
		var open []atom.Atom
		for range 60 {
			name := names[random.IntN(len(names))]
			r.name = name
			if random.IntN(2) == 0 {
				r.openElement()
				open = append(open, name)
				continue
			}
			r.closeElement()
			last := -1
			for i, o := range open {
				if o == atom.Template && name != atom.Template {
					last = -1
				}
				if o == name {
					last = i
				}
			}
			if last >= 0 {
				open = open[:last]
			}
			got := make([]atom.Atom, 0, len(r.open))
			for _, element := range r.open {
				got = append(got, element.name)
			}
			if !slices.Equal(got, open) {
				t.Fatalf("after </%s>: got %v, want %v", name, got, open)
			}
		}
	}
}
