//go:build !race

package fleet

// many pages are those of a large site.
const many = 200_000
