// Package sevens surveys the start header of a 7z, in this process, and decodes its
// members, in a process of their own.
//
// It owns the names of methods that are refused. It must not know where members go: it
// writes frames. It keeps no state, and starts no goroutine.
package sevens
