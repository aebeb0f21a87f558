// Package groups keeps what items make of one another's steps: the items of a batch, and
// parents and children.
//
// It owns who of a batch and of a family has come how far, which item stands for its
// batch, which children have the places of their pool, and the reasons that follow. It
// must not know queues, limits and how items are kept: an Items gives an item, and puts
// it again when the answer for it changes. It belongs to the lock of the index that
// calls it, and calls back under that lock.
package groups
