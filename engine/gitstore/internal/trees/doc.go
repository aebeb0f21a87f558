// Package trees reads committed folders: one path, the files that differ between two
// trees, all files below a folder, and the folders that differ.
//
// It owns the ways through trees. It must not know branches, the working copy of the
// owner (package worktree), nor what a file means.
//
// All functions may be called by any goroutine; those that read side by side wait for
// their goroutines before they return.
package trees
