// Package history walks back through commits: the log of a path, and how two commits stand
// to each other.
//
// It owns the walks and the reading of messages (message.go). It must not know the branch,
// nor what a trailer means. Any goroutine may use it.
package history
