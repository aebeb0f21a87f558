// Package call runs a git program that asks a remote.
//
// It owns when such a program is given up: a remote that says nothing, by whatever transport, would
// keep it for ever. It must not know what is asked, nor the repository.
//
// A call belongs to its caller's goroutine.
package call
