// Package client lets programs in Go do steps of a workspace, over HTTP: what a step with
// external: true asks for, a function of the program does.
//
// It owns the exchange: claims, leases, files and ends. It must not know the engine, Git, nor
// NATS; it speaks engine/remote/wire alone. A Client may be used by several goroutines and
// keeps nothing. Serve waits for the robots that it began.
//
// An attempt's context ends when its lease is lost or a person cancels it: the engine refuses
// whatever that attempt still sends.
package client
