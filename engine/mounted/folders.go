package mounted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Error is a folder of the workspace that looks like the mount point of a file
// system which is not there. The workspace can be read and not written.
type Error struct {
	Text     string
	Remedies []fault.Remedy
}

func (e *Error) Error() string { return e.Text }

// FaultKind is always fault.Busy: a mount makes the workspace writable again.
func (e *Error) FaultKind() fault.Kind { return fault.Busy }

// FaultRemedies are what lets the workspace be written to without the mount.
func (e *Error) FaultRemedies() []fault.Remedy { return e.Remedies }

// Folders refuses a workspace whose folders are not what the history tells of: the bytes
// of new items would be hidden by the next mount. committed are the names of the folders
// of items/ in the history.
func Folders(root string, committed []string) error {
	if len(committed) > 0 && !holdsAny(filepath.Join(root, layout.ItemsDir), committed) {
		return &Error{fmt.Sprintf("%s/ holds no item, and the history has some: is it mounted? Mount it, or copy it from the backup", layout.ItemsDir),
			[]fault.Remedy{{Verb: fault.MakeFolder, Name: layout.ItemsDir + "/" + committed[0]}}}
	}
	return oneFileSystem(root)
}

// oneFileSystem wants the folders that steps rename between on one file system,
// those which are not there yet excepted.
func oneFileSystem(root string) error {
	first := ""
	for _, dir := range []string{layout.ItemsDir, layout.IntakeDir, layout.StateDir} {
		if _, err := os.Lstat(filepath.Join(root, dir)); err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(root, dir))
		if errors.Is(err, fs.ErrNotExist) {
			return &Error{Text: fmt.Sprintf("%s is a link to a folder that is not there: is it mounted?", dir)}
		}
		if err != nil {
			return err
		}
		if first == "" {
			first = real
			continue
		}
		same, err := disk.SameFileSystem(first, real)
		if err != nil {
			return err
		}
		if !same {
			return &Error{Text: fmt.Sprintf("%s is on another file system than %s: is each mounted? They must be on one", dir, layout.ItemsDir)}
		}
	}
	return nil
}

// holdsAny reports whether a folder has an entry of one of the names, or may not be looked into.
func holdsAny(dir string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil || errors.Is(err, fs.ErrPermission)
	})
}
