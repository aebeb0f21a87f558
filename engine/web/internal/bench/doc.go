// Command bench measures the pages and calls with the built program, from outside, at up to a
// million items, while transitions are committed: what a page takes beside a static file of its
// length, facets beside SQLite counting the same from an index of each column and from one made for the question, a text, a page far behind, an item
// with many files and attempts, from a commit to the screen, many viewers, completions by many
// callers, bytes down and up beside the plainest that could do it, and memory.
//
// It owns its workspaces, which engine/internal/queuebench makes, the load, and the table. It must
// not import the engine: what it measures is the program as people start it.
package main
