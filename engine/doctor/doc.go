// Package doctor owns the look at what a workspace stands on: whose it is, what is mounted,
// what its file system can do, the clock, the space, Git's settings, and the programs that
// its robots need.
//
// It must not know items. It changes nothing, but for a folder of its own in the scratch that
// it tries the file system in, and removes. It has no state.
package doctor
