// Package serve is the commands of the web: serve, and the accounts that user and token add.
//
// It owns their grammar, what is printed, and the listener. It must not decide anything: the
// pages are engine/web's, the run is the engine's. It has no state.
package serve
