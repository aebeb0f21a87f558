// Package farm has the commands of workers on other machines: worker, workers, and the keys of
// remote.
//
// It owns what these commands print. It must not know how a message travels, nor what is
// committed: engine/worker and engine/remote do the work.
package farm
