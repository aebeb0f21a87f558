package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/layout"
)

// The rules are: a folder that settled by quiet alone may have been half a copy, whose
// writer goes on under the same path. What lies there next is the rest of it, and waits
// for a person, when it settles by quiet alone, too, its oldest file was written after
// the drop was taken and within lateFactor × Quiet, at least lateLeast, and it has no
// file path in common with what was taken. A file in common is a copy made anew: a drop
// like any other.
//
// Takings are noted in .bagpipe/taken/HEX.json, by the digest of the path. Without the
// note, as after .bagpipe was removed, a late folder is a drop like any other.

const (
	lateFactor = 10
	lateLeast  = 10 * time.Minute
	takenDir   = layout.StateDir + "/taken"
	sweepEvery = time.Minute
)

// taking is the note of a folder that was taken; its fields stand in the order of their keys.
type taking struct {
	At   time.Time     `json:"at"`
	Drop layout.ItemID `json:"drop"`
	Item layout.ItemID `json:"item"`
	Path string        `json:"path"` // in the inbox, as in drop.json
}

// lateWithin is how long after a taking the rest of a copy may begin.
func (s *settling) lateWithin() time.Duration { return max(lateFactor*s.Quiet, lateLeast) }

func (b *Box) takingFile(path string) string {
	sum := sha256.Sum256([]byte(b.shorten(path)))
	return b.path(takenDir, hex.EncodeToString(sum[:])+".json")
}

// noteTaking writes the note before the drop moves. A drop that is not taken after all
// leaves a note of nothing, which counts for nothing.
func (b *Box) noteTaking(d Drop, t Taken) error {
	if !d.byQuiet || d.Kind != Folder || d.IsSet() || d.Stays != "" {
		return nil
	}
	return b.writeTaking(d.Path, taking{At: t.At, Drop: t.ID, Item: t.home(), Path: b.shorten(d.Path)})
}

// noteHome has the note of a drop that became a version name its item.
func (b *Box) noteHome(t Taken) error {
	n, ok := b.readTaking(t.Origin)
	if !ok || n.Drop != t.ID || n.Item == t.home() {
		return nil
	}
	n.Item = t.home()
	return b.writeTaking(t.Origin, n)
}

// writeTaking needs no sync: a note that a crash takes is missing as any other.
func (b *Box) writeTaking(path string, n taking) error {
	data, err := encode(n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.path(takenDir), dirPerm); err != nil {
		return err
	}
	return os.WriteFile(b.takingFile(path), data, filePerm)
}

func (b *Box) readTaking(path string) (n taking, ok bool) {
	data, err := os.ReadFile(b.takingFile(path))
	return n, err == nil && json.Unmarshal(data, &n) == nil && n.Path == b.shorten(path)
}

// lateFor says of which item a settled drop is the rest; empty: of none.
func (p *place) lateFor(d Drop, s survey) (why string) {
	if !d.byQuiet || d.Kind != Folder || d.IsSet() || s.bad != nil || s.empty() {
		return ""
	}
	n, ok := p.box.readTaking(d.Path)
	if !ok || s.oldest.Before(n.At.Add(-tick)) || s.oldest.Sub(n.At) > p.set.lateWithin() {
		return ""
	}
	taken := p.box.whereTaken(n, d.Name)
	if taken == "" || sharesFile(d.Path, taken) {
		return ""
	}
	return fmt.Sprintf("late: %s was taken in as item %s at %s, and this may be the rest of its copy; drop the whole under another name and remove this",
		layout.EncodePath(d.Name), n.Item.Short(), layout.FormatTime(n.At))
}

// whereTaken finds the folder that was taken, on its way or in its item's folder.
func (b *Box) whereTaken(n taking, name string) string {
	for _, at := range []string{b.sourceOf(n.Drop, name), filepath.Join(b.intakeOf(n.Drop), copyingDir, name), filepath.Join(b.itemSource(n.Item), name)} {
		if exists(at) {
			return at
		}
	}
	return ""
}

// sharesFile reports whether a file below dir has a namesake at the same path below other.
func sharesFile(dir, other string) (shares bool) {
	_ = filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && exists(other+at[len(dir):]) {
			shares = true
			return fs.SkipAll
		}
		return nil
	})
	return shares
}

// sweepTakings removes notes that cannot count any more: old ones, of paths at which
// nothing lies.
func (b *Box) sweepTakings() error {
	now, keep := b.opt.Now(), lateLeast
	b.mu.Lock()
	due := b.opt.Engine != "" && now.Sub(b.swept) >= sweepEvery
	if due {
		b.swept = now
	}
	for _, s := range slices.AppendSeq([]*settling{b.common}, maps.Values(b.own)) {
		keep = max(keep, s.lateWithin())
	}
	b.mu.Unlock()
	if !due {
		return nil
	}
	entries, err := os.ReadDir(b.path(takenDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) <= keep {
			continue
		}
		var n taking
		file := b.path(takenDir, e.Name())
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &n) == nil {
			if path, err := b.lengthen(n.Path); err == nil && exists(path) {
				continue
			}
		}
		errs = append(errs, os.Remove(file))
	}
	return errors.Join(append(errs, err)...)
}
