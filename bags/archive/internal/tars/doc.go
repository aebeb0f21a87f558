// Package tars holds what is common to all who read a tar beside archive/tar: the block,
// the end, the types that archive/tar has no name for.
//
// It owns the judgement of what follows the end mark. It must not know who reads. It
// keeps no state, and starts no goroutine.
package tars
