// Command bench measures the Git store beside its peers, in one call, over
// workspaces of several sizes, and prints a table of transitions a second with
// ratios. A transition is one commit of an item's two files, a manifest of 1 KiB
// and an execution record of 2 KiB.
//
// The rows are: git add + git commit a transition; git fast-import of the same
// transitions, which syncs once at its end; Bagpipe with groups of a given size,
// and with callers that each wait for their own commit. Figures are medians of
// interleaved rounds.
//
// It owns its rows, its peers' command lines and the table. It must not change a
// repository it did not make, and must know of the store only what any importer
// can. Each measurement owns the goroutines it starts.
package main
