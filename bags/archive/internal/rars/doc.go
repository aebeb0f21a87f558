// Package rars surveys the blocks of a rar, in this process, and decodes its members, in
// a process of their own.
//
// It owns the blocks and the names of parts. It must not know where members go: it
// writes frames. It keeps no state, and starts no goroutine.
package rars
