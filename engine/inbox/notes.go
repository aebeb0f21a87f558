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

const takenDir = layout.StateDir + "/taken"

// taking is the note of a drop that was taken; its fields stand in the order of their keys.
type taking struct {
	At   time.Time     `json:"at"`
	Drop layout.ItemID `json:"drop"`
	Item layout.ItemID `json:"item"`
	Path string        `json:"path"` // in the inbox, as in drop.json
}

// notes are those of takings, in .bagpipe/taken/.
type notes struct{ workspace }

func (ns notes) takingFile(path string) string {
	sum := sha256.Sum256([]byte(ns.shorten(path)))
	return ns.path(takenDir, hex.EncodeToString(sum[:])+".json")
}

// noteTaking writes the note before the drop moves. A drop that is not taken after all
// leaves a note of nothing, which counts for nothing.
func (ns notes) noteTaking(d Drop, t Taken) error {
	if !d.byQuiet || d.IsSet() || d.Stays != "" {
		return nil
	}
	return ns.writeTaking(d.Path, taking{At: t.At, Drop: t.ID, Item: t.home(), Path: ns.shorten(d.Path)})
}

// noteHome has the note of a drop that became a version name its item.
func (ns notes) noteHome(t Taken) error {
	n, ok := ns.readTaking(t.Origin)
	if !ok || n.Drop != t.ID || n.Item == t.home() {
		return nil
	}
	n.Item = t.home()
	return ns.writeTaking(t.Origin, n)
}

// writeTaking needs no sync: a note that a crash takes is missing as any other.
func (ns notes) writeTaking(path string, n taking) error {
	data, err := encode(n)
	if err != nil {
		return err
	}
	err = disk.Overwrite(ns.takingFile(path), data, filePerm)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(ns.path(takenDir), content.DirPerm); err == nil {
			err = disk.Overwrite(ns.takingFile(path), data, filePerm)
		}
	}
	return err
}

func (ns notes) readTaking(path string) (n taking, ok bool) {
	data, err := disk.ReadFile(ns.takingFile(path))
	return n, err == nil && json.Unmarshal(data, &n) == nil && n.Path == ns.shorten(path)
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
