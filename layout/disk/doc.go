// Package disk holds the durable writes every other package builds on: a file
// replaced at once, a rename that survives a power cut, a tree copied and
// synced.
//
// It owns the rule "bytes first, then the name, then the directory": what a
// function named Write, Rename or Publish did is on disk when it returns. It
// must not know what the files mean. It has no state and needs no lock.
package disk
