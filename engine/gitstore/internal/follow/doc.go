// Package follow shows committed files in the workspace: the followed files, written
// behind the commits.
//
// It owns the followed files and the mark of how far they are right (mark.go). It must not
// know what a file means, nor move the branch.
//
// Run alone writes, several folders side by side. One process follows at a time, the one that holds
// .bagpipe/follow.lock: two would put back each other's older bytes. The others stand by,
// and take over when it ends.
//
// The rules are: paths that change again before their turn are written once. The backlog
// is bounded: Add waits when it is full. While the disk takes nothing, Add does not wait:
// the backlog is given up, and worked out again from the trees when there is room. Files
// are changed at once for whoever reads them, in place or by a file beside that is swapped
// in, and all files of a new folder appear with it; they are not synced, for they can be
// written again from the commits. A file that stands there and is in no commit was written
// by a person, and is kept beside.
package follow
