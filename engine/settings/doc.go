// Package settings brings what people configure into force: bagpipe.yaml, workflows, rules
// and queues.
//
// It owns the files people edit: their parsing, the checks of each file and of the files
// against each other, and the sync of the workspace's files with the committed ones. It
// must not know items' states, nor what a step does.
//
// A Source gives immutable Snapshots; a sync puts a new Snapshot in the place of the old
// one and calls those who asked by OnChange. A file that cannot be read leaves its last
// sound version in force.
//
// How steps are run (Deployment) is looked up in the newest snapshot each time, and never
// stored with an item.
//
// # Locks
//
// Source.syncTurn is held by the one goroutine that syncs. Source.mu guards the snapshot in
// force. The parsed rule files have a lock of their own.
package settings
