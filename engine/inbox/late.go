package inbox

import (
	"bytes"
	"context"
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
)

// The rules are: a drop that settled by quiet alone may have been half a copy, whose
// writer goes on under the same path. What lies there next is the rest of it, and waits
// for a person, when it settles by quiet alone, too, its oldest file was written after
// the drop was taken and within lateFactor × Quiet, at least lateLeast, and it is no copy
// made anew: a folder with a file path in common with the one that was taken, a file that
// begins with the same bytes. A side-car that comes as late waits, too. So does a loose file
// that would have been of the same drop as others, had it come with them: of a set that was
// taken, or of one that is whole with it and the file that was taken.
//
// Takings are noted in .bagpipe/taken/HEX.json, by the digest of the path, and those to which
// others can belong in .bagpipe/taken-sets/HEX.json. Without the note, as after .bagpipe was
// removed, what is late is a drop like any other.

const (
	lateFactor = 10
	lateLeast  = 10 * time.Minute
	sweepEvery = time.Minute
	lateSweep  = 2 // a late file settles some time after it was written: its set is known for so much longer
	headLen    = 4 // as long as the marks by which most formats begin
)

// lateWithin is how long after a taking the rest of a copy may begin.
func (s *settling) lateWithin() time.Duration { return max(lateFactor*s.Quiet, lateLeast) }

// lateFor has a settled drop wait for a person that may be the rest of another.
func (p *place) lateFor(ctx context.Context, d Drop, s content.Survey) (w Waiting, late bool) {
	if !d.byQuiet || d.IsSet() || s.Bad != nil || s.Empty() {
		return w, false
	}
	w = Waiting{Drop: d, Barred: true}
	n, ok := p.takenBy(d.Path, s.Oldest)
	taken := ""
	if ok {
		taken = p.box.whereTaken(n, d.Name)
	}
	if taken != "" && !madeAnew(d, taken) {
		w.Reason = n.late(d.Name) + "this may be the rest of its copy; drop the whole under another name and remove this"
	} else if n, ok = p.belongsTo(ctx, d.Name); ok && p.isLate(n, s.Oldest) {
		w.Reason = n.lateAs(n.Name) + "this would have been of the same drop; drop all of its files once more"
	}
	if w.Reason == "" || !content.Exists(d.Path) { // another engine took it meanwhile: it is what was taken
		return Waiting{}, false
	}
	w.Remedies = []fault.Remedy{{Verb: fault.AddVersion, Item: n.Item}, {Verb: fault.AddDrop, Name: d.Path, Collection: d.Collection, Batch: d.Batch}}
	return w, true
}

// belongsTo gives the note of what was taken from here a while ago that a loose file belongs to.
func (p *place) belongsTo(ctx context.Context, name string) (n taking, ok bool) {
	if p.late == nil {
		p.late = map[string]taking{}
		if p.joins {
			p.joinLate(ctx)
		}
	}
	n, ok = p.late[name]
	return n, ok
}

// joinLate asks which loose files belong together with files that were taken.
func (p *place) joinLate(ctx context.Context) {
	taken := map[string]taking{} // by the names that are not here any more
	for _, n := range p.box.joinedTakings(p.dir, p.box.opt.Now().Add(-lateSweep*p.set.lateWithin())) {
		for _, enc := range n.Files {
			if name, err := layout.DecodePath(enc); err == nil && !p.names[name] {
				taken[name] = n
			}
		}
	}
	if len(taken) == 0 {
		return
	}
	names := slices.Collect(maps.Keys(taken))
	for _, e := range p.entries {
		if s := p.sets[e.Name()]; p.mayJoin(e) && (s == nil || s.Lacks != "") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, s := range p.box.opt.Together(ctx, p.collection, p.dir, names) {
		i := slices.IndexFunc(s.Files, func(name string) bool { return !p.names[name] })
		if i < 0 {
			continue
		}
		n := taken[s.Files[i]]
		if name, err := layout.DecodePath(n.Name); err != nil || s.Lacks != "" && len(n.Files) == 1 || p.box.whereTaken(n, name) == "" {
			continue
		}
		for _, name := range s.Files {
			if p.names[name] {
				p.late[name] = n
			}
		}
	}
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
	n, ok = p.box.readTaking(takenDir, path)
	return n, ok && p.isLate(n, written)
}

// isLate reports whether what was written at a time may be late for what was taken.
func (p *place) isLate(n taking, written time.Time) bool {
	return !written.Before(n.At.Add(-content.Tick)) && written.Sub(n.At) <= p.set.lateWithin()
}

func (n taking) late(name string) string { return n.lateAs(layout.EncodePath(name)) }

// lateAs is late for a name that is percent-encoded.
func (n taking) lateAs(name string) string {
	return fmt.Sprintf("late: %s was taken in as item %s at %s, and ", name, n.Item.Short(), layout.FormatTime(n.At))
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
	return errors.Join(b.sweepNotes(takenDir, keep), b.sweepNotes(joinedDir, lateSweep*keep))
}

// sweepNotes removes those of a folder that are older than keep, of paths at which nothing lies.
func (b *Box) sweepNotes(dir string, keep time.Duration) error {
	entries, err := os.ReadDir(b.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || b.opt.Now().Sub(info.ModTime()) <= keep {
			continue
		}
		file := b.path(dir, e.Name())
		if n, ok := readNote(file); ok {
			if path, err := b.lengthen(n.Path); err == nil && content.Exists(path) {
				continue
			}
		}
		errs = append(errs, os.Remove(file))
	}
	return errors.Join(append(errs, err)...)
}
