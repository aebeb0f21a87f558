// Package zips reads the directory of a zip, checks it against every member, and opens the
// members.
//
// It owns the rules of read_directory.go. It must not know where members are written. It
// keeps no state, and starts no goroutine; the inflaters are pooled.
package zips
