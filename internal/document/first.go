package document

import "slices"

// first collects those of many values that come first in an order, and holds twice as many at most.
type first[T any] struct {
	most    int
	compare func(a, b T) int
	values  []T
	isFull  bool // values begins with the first ones so far, in order
}

// takes reports whether a value is among the first ones so far.
func (f *first[T]) takes(value T) bool {
	return !f.isFull || f.compare(value, f.values[f.most-1]) < 0
}

// add adds a value. Sorting once for many is far cheaper than for each.
func (f *first[T]) add(value T) {
	f.values = append(f.values, value)
	if len(f.values) == 2*f.most {
		f.sorted()
	}
}

// sorted returns the first ones in order.
func (f *first[T]) sorted() []T {
	slices.SortFunc(f.values, f.compare)
	if len(f.values) >= f.most {
		f.values = f.values[:f.most]
		f.isFull = true
	}
	return f.values
}
