// Command bench measures bagpipe bag beside what others do on the same files, each
// as a process of its own, start included:
//
//	go run ./bags/internal/bench
//
// It owns its temporary folder and the figures it prints; it must not know how bags
// are read: it runs the program, built from this source. Rounds are interleaved and
// the median counts, as other work on the machine comes and goes; the processor's
// time (CPU) is less disturbed by it than the time that passes. A ratio above 1 is
// faster than the peer, and what is to be reached stands beside each. Where ours does
// work that the peer does not (a second listing, links, waiting for the disk), there is
// a peer with that work as well.
//
// Peers: sha512sum under xargs -P2, openssl dgst where it is, bagit.py where BAGIT_PY
// names it, unzip and bsdtar. The floor is Go's own SHA-512 over the same files on all
// cores, without a manifest.
package main
