// Package turns orders what is ready: lanes, collections and batches take turns.
//
// It owns the tree of what is ready at one step, the accounts of whose turn it is, and
// the walk through several trees that changes nothing. It must not know items, limits
// or states: an entry is numbers, and its caller says whether it still counts. It has no
// lock: trees and accounts belong to the lock of their index.
//
// What is ready stands in a tree: lane, then collection, then batch, then the oldest
// item. A branch is taken from when its turn has come: each take moves its turn on, by
// one among collections and among batches, and by the lane's stride among lanes. The
// branch with the earliest turn is next; among equals the branch that came first. So a
// batch of 25,000 gets every second take while one single item beside it is ready. A
// branch that had nothing comes in where the others are: takes it missed are not made up.
//
// The turns are one for all steps (Account). Each step has a tree of its own (Tree),
// whose heaps are put in order as they are looked at, since a turn only ever moves on.
package turns
