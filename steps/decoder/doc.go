// Package decoder asks a confined process what stands in a file.
//
// It owns the process, its protocol and its bounds in time and memory. It must not know
// formats: the program says which Work there is. A Worker belongs to one goroutine.
//
// # The protocol
//
// The environment names the work and the memory. On standard input stand requests, on
// descriptor 3 answers, each one JSON value, one answer for one request, in order:
//
//	{"answer": …}                    what the work found
//	{"error": "TEXT"}                the file is broken, or asks for too much
//	{"error": "TEXT", "system": true}  the file cannot be read
//
// A process that dies or is silent for too long has met a file that makes it fail: the
// worker says so of that request and starts another process for the next.
package decoder
