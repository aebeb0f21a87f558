// Package compress opens the compressions that stand around a tar or within a zip, and
// says what their errors mean.
//
// It owns the table of compressions, the inflater, and the decompression ahead of the
// reader. It must not know members. Ahead starts one goroutine, which its Close ends.
package compress
