// Package frames is what the process that reads one archive says to the process that
// started it.
//
// It owns the frames on the pipe. It must not know formats. A Reader or Writer belongs to
// one goroutine.
package frames
