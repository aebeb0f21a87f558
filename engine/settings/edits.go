package settings

import (
	"fmt"
	"os"
	"strings"

	"bagpipe/layout"
)

// Edits notices settings files that are edited in place, by their sizes and times, without
// reading them. It is used by one goroutine at a time.
type Edits struct {
	path    func(rel string) string // of a file of the workspace on disk
	last    string                  // the files at the last look
	settled string                  // the files that Due reported, or found at first
}

// NewEdits begins with the files as they are. path gives where a file of the workspace is on disk.
func NewEdits(path func(rel string) string) *Edits {
	e := &Edits{path: path}
	e.last = e.look()
	e.settled = e.last
	return e
}

// Due looks, and reports whether files have changed since it last reported a change. A change is
// reported at the second look that finds it, as a file may be written in several parts.
func (e *Edits) Due() bool {
	now := e.look()
	due := now == e.last && now != e.settled
	if e.last = now; due {
		e.settled = now
	}
	return due
}

// look gives the names, sizes and times of all settings files. A folder that cannot be read is
// as one without files: the next Sync tells of it.
func (e *Edits) look() string {
	var all strings.Builder
	note := func(rel string) {
		if info, err := os.Lstat(e.path(rel)); err == nil {
			fmt.Fprintf(&all, "%s %d %d\n", rel, info.Size(), info.ModTime().UnixNano())
		}
	}
	note(layout.SettingsFile)
	for _, dir := range settingsDirs {
		entries, _ := os.ReadDir(e.path(dir))
		for _, entry := range entries {
			if p := dir + "/" + entry.Name(); isSettings(p) {
				note(p)
			}
		}
	}
	return all.String()
}
