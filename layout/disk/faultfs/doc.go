// Package faultfs is a file system for tests: it numbers every change made
// through it, fails at a chosen one, and can afterwards take back whatever was
// not synced, as a power cut does.
//
// It owns the model of what is durable: a file's bytes are after its Sync, a
// name is after SyncDir of its folder, everything is after SyncFS. It works on
// real folders, so that other programs see what a store wrote. It must not know
// what the files mean. FS.mu guards its books; any goroutine may use it.
package faultfs
