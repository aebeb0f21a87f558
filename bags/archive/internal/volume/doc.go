// Package volume opens the files that one archive is made of, and reads them one by one or
// joined.
//
// It owns what the disk answered, so that a failing disk is not taken for a damaged
// archive. It must not know formats. File.mu guards the answer; the rest belongs to one
// goroutine.
package volume
