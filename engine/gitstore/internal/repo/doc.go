// Package repo is the place that a store works in: one workspace and its bare
// repository, the paths within, and the locks that Bagpipe's processes share.
//
// It owns the paths of .git and .bagpipe, the repository's configuration, the turn lock
// (turn.go), and the git program's fixed arguments (git.go). It must not know the order
// in which a publication becomes durable, nor what a committed file means.
//
// A Repo's fields are set by Open and never change; any goroutine may use it.
package repo
