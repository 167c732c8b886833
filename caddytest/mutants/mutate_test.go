package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name string
		code string
		want []string // kind: the code with the mutant in it
	}{
		{
			"a boundary", "var small = size < limit",
			[]string{"boundary: var small = size <= limit"},
		},
		{
			"a comparison", "var same = a == b",
			[]string{"negate: var same = a != b"},
		},
		{
			"a junction", "var both = a && b",
			[]string{"junction: var both = a || b"},
		},
		{
			"a number", "const limit = 0x0f",
			[]string{"number: const limit = 16"},
		},
		{
			"a text and a number with a fraction", `const name, share = "1", 1.5`,
			nil,
		},
		{
			"a condition", "func f() { if ok { } }",
			[]string{"return early: func f() { return; if ok { } }", "negate: func f() { if !(ok) { } }"},
		},
		{
			"a condition that is a comparison", "func f() (n int) { if a != b { }; return }",
			[]string{
				"return early: func f() (n int) { return *new(int); if a != b { }; return }",
				"negate: func f() (n int) { if a == b { }; return }",
			},
		},
		{
			"conditions of a switch", "func f() { switch { case ok: default: } }",
			[]string{
				"return early: func f() { return; switch { case ok: default: } }",
				"negate: func f() { switch { case !(ok): default: } }",
			},
		},
		{
			"values of a switch", "func f() { switch v { case ok: } }",
			[]string{"return early: func f() { return; switch v { case ok: } }"},
		},
		{
			"results", "func f() (a, b []string, err error) { return nil, b, nil }",
			[]string{"return zero: func f() (a, b []string, err error) { return *new([]string), *new([]string), *new(error) }"},
		},
		{
			"results that are zero", `func f() (bool, string, T, error) { return false, "", T{}, nil }`,
			nil,
		},
		{
			"a function in a function", "func f() int { return g(func() bool { return ok }) }",
			[]string{
				"return zero: func f() int { return *new(int) }",
				"return zero: func f() int { return g(func() bool { return *new(bool) }) }",
			},
		},
		{
			"statements", "func f() { n := g; n = h; n++; c <- n; use(n) }",
			[]string{
				"return early: func f() { return; n := g; n = h; n++; c <- n; use(n) }",
				"drop: func f() { n := g; {}; n++; c <- n; use(n) }",
				"drop: func f() { n := g; n = h; {}; c <- n; use(n) }",
				"drop: func f() { n := g; n = h; n++; {}; use(n) }",
				"drop: func f() { n := g; n = h; n++; c <- n; {} }",
			},
		},
		{
			"a log line", `func f() { s.logger.Warn("…", zap.Int("n", 1)) }`,
			[]string{`return early: func f() { return; s.logger.Warn("…", zap.Int("n", 1)) }`},
		},
		{
			"a method with the name of one that logs", `func f() { refresh.Warn(1) }`,
			[]string{
				`return early: func f() { return; refresh.Warn(1) }`,
				`drop: func f() { {} }`,
				`number: func f() { refresh.Warn(2) }`,
			},
		},
		{
			"what only saves time", "func f() { b.Grow(1); runtime.Gosched() }",
			[]string{"return early: func f() { return; b.Grow(1); runtime.Gosched() }"},
		},
		{
			"the room of a slice", "var s = make([]byte, 1, 2)",
			[]string{"number: var s = make([]byte, 2, 2)"},
		},
		{
			"the room of a map", "var m = make(map[string]int, 1)",
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			const begin = "package p\n\n"
			mutants, err := find("p.go", []byte(begin+test.code))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range mutants {
				mutated := string(m.mutated())
				got = append(got, m.kind+": "+strings.TrimPrefix(mutated, begin))
				if _, err := parser.ParseFile(token.NewFileSet(), "p.go", mutated, 0); err != nil {
					t.Errorf("%s\n%v", mutated, err)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestDiff(t *testing.T) {
	mutants, err := find("p.go", []byte("package p\n\nvar (\n\ta = b < c\n\td = 2\n)\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "\t-\td = 2\n\t+\td = 3\n"
	if got := mutants[1].diff(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if mutants[1].line != 5 {
		t.Errorf("got line %d, want 5", mutants[1].line)
	}
}

func TestShareOut(t *testing.T) {
	packages := []*aPackage{{tokens: 10}, {tokens: 3000}, {tokens: 6000}}
	shareOut(packages, 33)
	for i, want := range []int{3, 10, 20} {
		if packages[i].share != want {
			t.Errorf("got %d mutants of %d tokens, want %d", packages[i].share, packages[i].tokens, want)
		}
	}
}

// TestNoMutants: the tests of a package without mutants are not even compiled.
func TestNoMutants(t *testing.T) {
	none := &aPackage{Dir: t.TempDir(), name: "./none"} // which go could not compile
	got, err := new(trial).try(none)
	if err != nil || got != (fates{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
