package document

import "slices"

// ordered are values that know which comes first.
type ordered[T any] interface {
	compare(other T) int
}

// first keeps those of many values that come first.
type first[T ordered[T]] struct {
	most   int
	values []*T // in order
}

// add returns a value, to be completed, if it is among the first ones so far; else nil.
func (f *first[T]) add(value T) *T {
	at, _ := slices.BinarySearchFunc(f.values, value, func(kept *T, value T) int { return (*kept).compare(value) })
	if at == f.most {
		return nil
	}
	kept := new(value)
	f.values = slices.Insert(f.values, at, kept)
	f.values = f.values[:min(len(f.values), f.most)]
	return kept
}
