package inbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// place is one folder of drops, as it was listed.
type place struct {
	box        *Box
	found      *findings
	collection layout.Name
	set        *settling
	dir        string
	entries    []fs.DirEntry
	names      map[string]bool
	markers    map[string]*marker  // by the name they mark
	foreign    bool                // on a network file system
	batch      layout.Name         // the folder is that of this batch
	whole      *marker             // of the batch
	paused     string              // why nothing is taken for now
	sidecars   map[string][]string // by the name they are about
	shared     string              // a table about the drops here
	closed     string              // why nothing may be added to the batch
	sets       map[string]*Set     // by each of their files
	joins      bool                // files are joined to sets here
	held       map[string]bool     // files of sets that are being taken
	left       int                 // how much lies in it that may become items yet
	fixed      string              // why nothing may be moved out of it
	sticky     bool                // only owners may move what is theirs
	before     time.Time           // when it was listed the last time; zero: it was not, or the clock was set
}

// marker is a file beside a drop that says that the drop is whole.
type marker struct {
	path string
	at   time.Time // of its last change
	seen string    // which file it is, in which state
}

// covers tells whether a drop has not changed since the marker was set.
func (m *marker) covers(d Drop) bool { return m != nil && !d.Since.After(m.at) }

// openPlace lists a folder; one that is not there is empty.
func (b *Box) openPlace(f *findings, c layout.Name, dir string) (*place, error) {
	p := &place{box: b, found: f, collection: c, set: b.settlingOf(c), dir: dir, names: map[string]bool{}, markers: map[string]*marker{}, sidecars: map[string][]string{}, sets: map[string]*Set{}}
	now := b.opt.Now()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.entries, p.foreign = entries, isNetwork(dir)
	p.fixed, p.sticky = mayMove(dir)
	b.mu.Lock()
	before, ok := b.listed[dir]
	b.mu.Unlock()
	// Only a clock that went on as it should says what is older than something.
	if drift := now.Round(0).Sub(before.Round(0)) - now.Sub(before); ok && drift.Abs() < time.Second {
		p.before = before
	}
	f.listed[dir] = now
	for _, e := range entries {
		p.names[e.Name()] = true
	}
	for _, e := range entries {
		p.noteMarker(e)
		p.noteSidecar(e)
	}
	return p, nil
}

// noteMarker notes a marker whose drop is there.
func (p *place) noteMarker(e fs.DirEntry) {
	base := p.set.marked(e.Name())
	if base == "" || !p.names[base] || !e.Type().IsRegular() || p.markers[base] != nil {
		return
	}
	path := filepath.Join(p.dir, e.Name())
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return // gone
	}
	p.markers[base] = &marker{path: path, at: later(time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix())), seen: stateOf(&st)}
}

// isMarker tells whether an entry marks another one. A file that is named like a
// marker is one if what it marks is there, if it is empty, or if the collection's
// drops wait for markers; reason tells of one that marks nothing.
func (p *place) isMarker(e fs.DirEntry) (yes bool, reason string) {
	base := p.set.marked(e.Name())
	if base == "" || !e.Type().IsRegular() {
		return false, ""
	}
	if p.names[base] {
		return true, ""
	}
	if p.set.Complete != ByMarker {
		if info, err := e.Info(); err == nil && info.Size() > 0 {
			return false, ""
		}
	}
	return true, "marks " + layout.EncodePath(base) + ", which is not here"
}

// stateOf tells a file in one state from any other file, and from itself once it is
// touched.
func stateOf(st *unix.Stat_t) string {
	return fmt.Sprintf("%d.%d", st.Ino, time.Unix(st.Ctim.Unix()).UnixNano())
}

// removeMarker removes the marker of a drop that is done with, unless it has been
// set anew since: then it is that of the next drop of this name.
func removeMarker(path, seen string) error {
	var st unix.Stat_t
	if path == "" || unix.Lstat(path, &st) != nil || stateOf(&st) != seen {
		return nil
	}
	return removeIfThere(path)
}
