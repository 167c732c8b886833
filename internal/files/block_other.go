//go:build !unix

package files

const dontBlock = 0
