package claim

import (
	"errors"
	"io/fs"
	"os"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: a worker on another machine has a file among the engines', so that its
// attempts are not taken for those of a dead engine. An engine of this workspace writes the
// file and touches it while it holds the worker's lease. Nobody holds its flock, and it names
// no host, so the other engines judge it by its heartbeat alone; the engine that holds the
// lease judges earlier, by the lease.

// ShowGuest shows a worker among the engines, or touches its file.
func (e *Engine) ShowGuest(id layout.EngineID, worker string, pid int) error {
	if _, err := layout.ParseEngineID(string(id)); err != nil {
		return wrap("show a worker", worker, err)
	}
	path, now := enginePath(e.root, id), e.now()
	err := os.Chtimes(path, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		err = disk.WriteFile(path, encode(engineInfo{Engine: id, PID: pid, Schema: 1, Since: now.UTC(), Worker: worker}), filePerm)
	}
	return wrap("show worker", worker, err)
}

// HideGuest removes a worker's file; its attempts are taken for lost from then on.
func (e *Engine) HideGuest(id layout.EngineID) error {
	return wrap("hide worker", string(id), removeIfThere(enginePath(e.root, id)))
}
