package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// ProgramPath takes a program named by a relative path with a slash from the
// workspace, as its scratch folder is empty; one without a slash is looked for in
// PATH.
func (fo *Folders) ProgramPath(argv []string) []string {
	if !strings.Contains(argv[0], "/") || filepath.IsAbs(argv[0]) {
		return argv
	}
	return append([]string{fo.path(argv[0])}, argv[1:]...)
}

// ScratchDir is an attempt's own folder, below its engine's, so that whoever
// finds it knows whether its owner lives.
func (fo *Folders) ScratchDir(a layout.AttemptRef) string {
	return filepath.Join(fo.path(layout.ScratchDir), string(a.Key.Engine), fmt.Sprintf("%s.%s.%s.%s", a.Item, a.Workflow, a.Step, a.Key))
}

// AttemptOf reads the name of a scratch folder: ITEM.WORKFLOW.N.STEP.ATTEMPT. Names may
// hold dots, so the item is cut off first and the attempt last.
func AttemptOf(name string) (a layout.AttemptRef, ok bool) {
	id, rest, found := strings.Cut(name, ".")
	last := strings.LastIndexByte(rest, '.')
	if !found || last < 0 {
		return a, false
	}
	item, err := layout.ParseItemID(id)
	key, kerr := layout.ParseAttemptKey(rest[last+1:])
	run, step, ok := splitRun(rest[:last])
	return layout.AttemptRef{Item: item, Workflow: run, Step: layout.Name(step), Key: key}, ok && err == nil && kerr == nil
}

// splitRun cuts WORKFLOW.N.STEP at the first number between dots.
func splitRun(s string) (run, step string, ok bool) {
	for i := 1; i < len(s); i++ {
		if s[i] != '.' {
			continue
		}
		n, after, found := strings.Cut(s[i+1:], ".")
		if _, err := strconv.Atoi(n); found && err == nil {
			return s[:i+1] + n, after, true
		}
	}
	return "", "", false
}

// spareFolders are scratch folders that built-in robots left empty, kept for the
// next attempts: to make and remove one for each takes longer than most robots do
// (see claim.createExclusive for the reason). They are named spare-N beside the
// attempts' own.
type spareFolders struct {
	mu   sync.Mutex // guards the rest
	free []string
	n    int
}

const maxSpares = 64

// Take makes the folder dir, which must not be there.
func (s *spareFolders) Take(dir string) error {
	s.mu.Lock()
	var spare string
	if n := len(s.free); n > 0 {
		spare, s.free = s.free[n-1], s.free[:n-1]
	}
	s.mu.Unlock()
	if spare != "" && disk.Move(spare, dir) == nil {
		return nil
	}
	if os.Mkdir(dir, 0o777) == nil { // mostly the engine's own folder is there, and need not be looked for
		return nil
	}
	return os.MkdirAll(dir, 0o777)
}

// Give takes a folder back: as a spare when it is reusable and empty; else it is
// removed, with what is in it.
func (s *spareFolders) Give(dir string, reusable bool) error {
	names, err := disk.Names(dir)
	if errors.Is(err, fs.ErrNotExist) { // some robots make none
		return nil
	}
	if !reusable || err != nil || len(names) > 0 {
		if err := unix.Rmdir(dir); err == nil || errors.Is(err, fs.ErrNotExist) { // most programs leave it empty
			return nil
		}
		return disk.RemoveTree(dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) >= maxSpares {
		return os.Remove(dir)
	}
	s.n++
	spare := filepath.Join(filepath.Dir(dir), fmt.Sprintf("spare-%d", s.n))
	if err := disk.Move(dir, spare); err != nil {
		return disk.RemoveTree(dir)
	}
	s.free = append(s.free, spare)
	return nil
}

// drop removes the spares, when the engine ends.
func (s *spareFolders) drop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, dir := range s.free {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	s.free = nil
	return errors.Join(errs...)
}
