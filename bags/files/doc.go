// Package files lists, hashes, copies and publishes files, and names what is wrong with
// them: an Error says which Rule a file, a member or its archive broke.
//
// It owns Tree (Scan), digests (Hash), copies and hard links (Place), the hidden folder
// a thing is made in before it gets its name (Scratch), and what other systems make of
// a name. It must not know archives or bags. It keeps no state: each call starts its
// own goroutines, bounded by Workers, and waits for them.
package files
