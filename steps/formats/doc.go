// Package formats says which format a file has, by the signatures of PRONOM.
//
// It owns the reading of signature files and the choice among several answers of theirs.
// It must not know items: it is told a file. A Reader belongs to one goroutine.
//
// The signatures are those that siegfried embeds, or a file that its tool roy made.
package formats
