// Package worktree is the tree of the tip in memory, which edits are applied to.
//
// It owns the trees that were used lately, and writes the changed ones of an edit into the
// pack being built. It must not know commits, the branch, or how a pack becomes durable.
//
// A Tree belongs to the store's owner goroutine.
package worktree
