// Package notes collects the warnings about one archive, and names the archive in errors.
//
// It owns the bound on warnings. It must not know formats. Notes are used by one
// goroutine; Broken may be called by any.
package notes
