package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

const (
	takenDir  = layout.StateDir + "/taken"
	joinedDir = layout.StateDir + "/taken-sets" // of what others belong to that may come late
)

// taking is the note of a drop that was taken; its fields stand in the order of their keys.
type taking struct {
	At    time.Time     `json:"at"`
	Drop  layout.ItemID `json:"drop"`
	Files []string      `json:"files,omitempty"` // in joinedDir: the names of its files, percent-encoded
	Item  layout.ItemID `json:"item"`
	Name  string        `json:"name,omitempty"` // in joinedDir: of the drop, percent-encoded
	Path  string        `json:"path"`           // in the inbox, as in drop.json
}

// notes are those of takings, in .bagpipe/taken/ and .bagpipe/taken-sets/.
type notes struct{ workspace }

func (ns notes) takingFile(dir, path string) string {
	sum := sha256.Sum256([]byte(ns.shorten(path)))
	return ns.path(dir, hex.EncodeToString(sum[:])+".json")
}

// noteTaking writes the notes before the drop moves. A drop that is not taken after all
// leaves a note of nothing, which counts for nothing.
func (ns notes) noteTaking(d Drop, t Taken) error {
	if !d.byQuiet || d.Stays != "" {
		return nil
	}
	n := taking{At: t.At, Drop: t.ID, Item: t.home(), Path: ns.shorten(d.Path)}
	if !d.IsSet() {
		if err := ns.writeTaking(takenDir, d.Path, n); err != nil || !d.joins {
			return err
		}
	}
	n.Name = layout.EncodePath(d.Name)
	for _, m := range d.members() {
		n.Files = append(n.Files, layout.EncodePath(m.name))
	}
	return ns.writeTaking(joinedDir, d.Path, n)
}

// noteHome has the notes of a drop that became a version name its item.
func (ns notes) noteHome(t Taken) error {
	var errs []error
	for _, dir := range []string{takenDir, joinedDir} {
		n, ok := ns.readTaking(dir, t.Origin)
		if !ok || n.Drop != t.ID || n.Item == t.home() {
			continue
		}
		n.Item = t.home()
		errs = append(errs, ns.writeTaking(dir, t.Origin, n))
	}
	return errors.Join(errs...)
}

// writeTaking needs no sync: a note that a crash takes is missing as any other.
func (ns notes) writeTaking(dir, path string, n taking) error {
	data, err := encode(n)
	if err != nil {
		return err
	}
	err = disk.Overwrite(ns.takingFile(dir, path), data, filePerm)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(ns.path(dir), content.DirPerm); err == nil {
			err = disk.Overwrite(ns.takingFile(dir, path), data, filePerm)
		}
	}
	return err
}

func (ns notes) readTaking(dir, path string) (n taking, ok bool) {
	n, ok = readNote(ns.takingFile(dir, path))
	return n, ok && n.Path == ns.shorten(path)
}

func readNote(file string) (n taking, ok bool) {
	data, err := disk.ReadFile(file)
	return n, err == nil && json.Unmarshal(data, &n) == nil
}

// joinedTakings gives the notes of what was taken from a folder of drops, and may have others
// that belong to it, since a time.
func (ns notes) joinedTakings(from string, since time.Time) (found []taking) {
	entries, err := os.ReadDir(ns.path(joinedDir))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		n, ok := readNote(ns.path(joinedDir, e.Name()))
		if path, err := ns.lengthen(n.Path); ok && err == nil && filepath.Dir(path) == from && !n.At.Before(since) {
			found = append(found, n)
		}
	}
	return found
}

// whereTaken finds the drop that was taken, on its way or in its item's folder.
func (ns notes) whereTaken(n taking, name string) string {
	for _, at := range []string{ns.sourceOf(n.Drop, name), filepath.Join(ns.intakeOf(n.Drop), copyingDir, name), filepath.Join(ns.itemSource(n.Item), name)} {
		if content.Exists(at) {
			return at
		}
	}
	return ""
}
