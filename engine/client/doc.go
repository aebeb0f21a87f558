// Package client lets programs in Go submit items to a workspace and do steps of it, over HTTP.
//
// It owns the exchange: submissions, what becomes of them, claims, leases, files and ends. It
// must not know the engine, Git, nor NATS; it speaks engine/remote/wire alone.
//
// A Client may be used by several goroutines. It follows the server's events in one of its own
// while something is under way, until Close; a lock guards who waits for what. Serve waits for
// the robots that it began.
//
// A submission has a key. Repeated with that key, also after a crash of the program or of the
// engine, it is the one item; Attach finds it. An attempt's context ends when its lease is lost
// or a person cancels it: the engine refuses whatever that attempt still sends.
package client
