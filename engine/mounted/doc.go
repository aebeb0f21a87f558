// Package mounted owns the question whether the file systems that a workspace and its
// stores lie on are there: an empty mount point must not be filled.
//
// It must not know Git, the queue or the settings: the caller hands in what the history
// tells. It has no state of its own; a store's file is changed under the store's lock.
package mounted
