// Package bus carries the messages of engine/remote/wire over NATS: the embedded server, the
// engine's side with its stream of offers, and the worker's side.
//
// It owns the server, its store, its connections, and the stream; no other package knows NATS.
// It must not know what a message means, nor what an attempt is.
//
// The stream is a work queue: one message an offer, one pull consumer a class. All of it can be
// made anew from what the engine knows, so the server's store is emptied at each start.
//
// Server, Engine and Worker may be used by several goroutines. What is called back runs in a
// goroutine of its own each time, at most mostAsked at once.
package bus
