// Package tagfile reads and writes the lines of tag files: bagit.txt, bag-info.txt,
// manifests and fetch.txt (RFC 8493, 2.1 and 2.2).
//
// It owns their syntax, their encodings and the names of the specification. It must not
// know what a line says of the files in a bag; package bags compares the two. It keeps
// no state, and starts no goroutine.
package tagfile
