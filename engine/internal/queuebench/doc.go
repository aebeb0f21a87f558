// Command queuebench measures the index of the items: to scan all, to start from a
// checkpoint, to take in changes, to ask, and what it holds in memory; beside it what
// a user would build instead: git ls-tree with git cat-file, and a query of SQLite
// over the same records. A peer that is not installed is left out, with a word.
//
// It owns the workspaces it makes, of items with a manifest of 0.6 KB and an
// execution record of 2 KB, seven of ten finished, the rest on their way. It must not
// touch another workspace, nor know more of the engine than its importers can.
package main
