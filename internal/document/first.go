package document

import "slices"

// first keeps those of many values that come first in an order.
type first[T any] struct {
	most    int
	compare func(a, b T) int
	values  []*T // in order
}

// add returns a value, to be completed, if it is among the first ones so far; else nil.
func (f *first[T]) add(value T) *T {
	at, _ := slices.BinarySearchFunc(f.values, value, func(a *T, b T) int { return f.compare(*a, b) })
	if at == f.most {
		return nil
	}
	kept := new(value)
	f.values = slices.Insert(f.values, at, kept)
	f.values = f.values[:min(len(f.values), f.most)]
	return kept
}
