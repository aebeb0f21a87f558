// Package folder owns the bytes of items on disk: publication of a step's outputs, the way
// back after a crash, scratch folders, kept inputs, logs, and the free space.
//
// It must not know states, commits or robots. The holder of a step's claim alone changes
// the files of the step; spare scratch folders, the free space and a log have a lock each.
package folder
