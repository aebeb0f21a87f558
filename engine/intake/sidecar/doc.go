// Package sidecar reads the files that tell of a drop: bag-info.txt, metadata.json and
// metadata.csv in it, in an archive, or beside it.
//
// It owns the formats of side-cars, their bounds and what wins where several speak. It
// must not know items or the history, and trusts nothing it reads: sizes, depths, names
// and encodings are checked first.
//
// A SharedTable has a lock; everything else is one goroutine's.
package sidecar
