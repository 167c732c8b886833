package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const reached = `package p

var most = 1

func f(n int) int {
	switch {
	case n > most:
		return 2
	}
	return 3
}

func g() {
	use(4)
}
`

// TestReaching: a mutant is left to the tests that run its statements; one that is in none, to those that run its
// function; one outside of functions, to all.
func TestReaching(t *testing.T) {
	const profile = "mode: set\n" +
		"example.com/p/p.go:6.2,6.9 1 %\n" +
		"example.com/p/p.go:7.16,8.11 1 *\n" +
		"example.com/p/p.go:10.2,10.10 1 %\n" +
		"example.com/p/p.go:14.2,14.8 1 0\n"
	profileOf := func(begins, large string) []block {
		return blocks(strings.NewReplacer("%", begins, "*", large).Replace(profile))
	}
	tests := []measured{
		{name: "none", blocks: profileOf("0", "0")},
		{name: "small", blocks: profileOf("1", "0")},
		{name: "large", blocks: profileOf("1", "1")},
	}
	mutants, err := find("folder/p.go", []byte(reached))
	if err != nil {
		t.Fatal(err)
	}
	want := map[int][]string{ // by line
		3:  {"none", "small", "large"},
		6:  {"small", "large"},
		7:  {"small", "large"},
		8:  {"large"},
		10: {"small", "large"},
		14: nil,
	}
	for _, m := range mutants {
		var got []string
		for _, test := range reaching(tests, m) {
			got = append(got, test.name)
		}
		if !slices.Equal(got, want[m.line]) {
			t.Errorf("line %d, %s: got %q, want %q", m.line, m.kind, got, want[m.line])
		}
	}
}

// TestCause: what became of a mutant, by what its tests print.
func TestCause(t *testing.T) {
	for _, test := range []struct{ text, fate, by string }{
		{"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n", "killed", "by TestA"},
		{"panic: runtime error: index out of range\n", "killed", "by a panic"},
		{"panic: test timed out after 30s\n\trunning tests:\n", "timeout", ""},
	} {
		if fate, by := cause(errors.New(test.text)); fate != test.fate || by != test.by {
			t.Errorf("%q: got %s %s, want %s %s", test.text, fate, by, test.fate, test.by)
		}
	}
	if fate, _ := cause(fmt.Errorf("a.test: %w", errHangs)); fate != "timeout" {
		t.Errorf("what hangs: got %s", fate)
	}
}
