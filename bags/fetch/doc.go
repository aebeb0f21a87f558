// Package fetch completes a bag: it gets the files that fetch.txt lists and that are not
// there, over HTTP or from folders.
//
// It owns the transfers, the parts of files under way (Dir), and the list of places that
// are allowed (Allowed). It must not know how a bag is validated: it stands above
// package bags, which lists the holes and locks the bag. Each call starts its own
// goroutines, bounded by Parallel, and waits for them; fetcher.mu guards what they share.
package fetch
