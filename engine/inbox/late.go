package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: a drop that settled by quiet alone may have been half a copy, whose
// writer goes on under the same path. What lies there next is the rest of it, and waits
// for a person, when it settles by quiet alone, too, its oldest file was written after
// the drop was taken and within lateFactor × Quiet, at least lateLeast, and it is no copy
// made anew: a folder with a file path in common with the one that was taken, a file that
// begins with the same bytes. A side-car that comes as late waits, too.
//
// Takings are noted in .bagpipe/taken/HEX.json, by the digest of the path. Without the
// note, as after .bagpipe was removed, a late folder is a drop like any other.

const (
	lateFactor = 10
	lateLeast  = 10 * time.Minute
	sweepEvery = time.Minute
	headLen    = 4 // as long as the marks by which most formats begin
)

// lateWithin is how long after a taking the rest of a copy may begin.
func (s *settling) lateWithin() time.Duration { return max(lateFactor*s.Quiet, lateLeast) }

// lateFor has a settled drop wait for a person that may be the rest of another.
func (p *place) lateFor(d Drop, s content.Survey) (w Waiting, late bool) {
	if !d.byQuiet || d.IsSet() || s.Bad != nil || s.Empty() {
		return w, false
	}
	n, ok := p.takenBy(d.Path, s.Oldest)
	if !ok {
		return w, false
	}
	taken := p.box.whereTaken(n, d.Name)
	if taken == "" || madeAnew(d, taken) {
		return w, false
	}
	return Waiting{Drop: d, Barred: true, Reason: n.late(d.Name) + "this may be the rest of its copy; drop the whole under another name and remove this",
		Remedies: []fault.Remedy{{Verb: fault.AddVersion, Item: n.Item}, {Verb: fault.AddDrop, Name: d.Path, Collection: d.Collection, Batch: d.Batch}}}, true
}

// lateSidecar says of which item a side-car is about that has been still; empty: of none.
func (p *place) lateSidecar(e fs.DirEntry, about string) (why string) {
	info, err := e.Info()
	if err != nil || p.box.opt.Now().Sub(info.ModTime()) < p.set.Quiet {
		return ""
	}
	n, ok := p.takenBy(filepath.Join(p.dir, about), info.ModTime())
	if !ok {
		return ""
	}
	return n.late(about) + fmt.Sprintf("this is about it; drop %s beside it once more, or remove this", layout.EncodePath(about))
}

// takenBy gives the note of the drop that was taken from a path, where what was written at
// a time may be late for it.
func (p *place) takenBy(path string, written time.Time) (n taking, ok bool) {
	n, ok = p.box.readTaking(path)
	return n, ok && !written.Before(n.At.Add(-content.Tick)) && written.Sub(n.At) <= p.set.lateWithin()
}

func (n taking) late(name string) string {
	return fmt.Sprintf("late: %s was taken in as item %s at %s, and ", layout.EncodePath(name), n.Item.Short(), layout.FormatTime(n.At))
}

// madeAnew reports whether a drop is another copy, or another kind, of what was taken.
func madeAnew(d Drop, taken string) bool {
	info, err := os.Lstat(taken)
	switch {
	case err != nil || info.IsDir() != (d.Kind == Folder):
		return true
	case info.IsDir():
		return sharesFile(d.Path, taken)
	}
	a, b := headOf(d.Path), headOf(taken)
	n := min(len(a), len(b))
	return bytes.Equal(a[:n], b[:n])
}

func headOf(path string) []byte {
	f, _, err := content.OpenRegular(path, ".")
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, headLen)
	n, _ := io.ReadFull(f, head) // a shorter file has less
	return head[:n]
}

// sharesFile reports whether a file below dir has a namesake at the same path below other.
func sharesFile(dir, other string) (shares bool) {
	_ = filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && content.Exists(other+at[len(dir):]) {
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
	b.mu.Unlock()
	if !due {
		return nil
	}
	b.inForce.mu.Lock()
	for _, s := range slices.AppendSeq([]*settling{b.common}, maps.Values(b.own)) {
		keep = max(keep, s.lateWithin())
	}
	b.inForce.mu.Unlock()
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
		if data, err := disk.ReadFile(file); err == nil && json.Unmarshal(data, &n) == nil {
			if path, err := b.lengthen(n.Path); err == nil && content.Exists(path) {
				continue
			}
		}
		errs = append(errs, os.Remove(file))
	}
	return errors.Join(append(errs, err)...)
}
