package inbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// place is one folder of drops.
type place struct {
	listing
	terms
	box        *Box
	found      *findings
	collection layout.Name
	set        *settling
	dir        string
	sets       map[string]*Set   // by each of their files
	joins      bool              // files are joined to sets here
	late       map[string]taking // what files here would have been of the same drop as; nil: not asked yet
	left       int               // how much lies in it that may become items yet
}

// listing is a folder of drops as it was listed.
type listing struct {
	entries  []fs.DirEntry
	names    map[string]bool
	markers  map[string]*marker  // by the name they mark
	sidecars map[string][]string // by the name they are about
	shared   string              // a table about the drops here
	held     map[string]bool     // files of sets that are being taken
	before   time.Time           // when it was listed the last time; zero: it was not, or the clock was set
}

// openPlace lists a folder; one that is not there is empty.
func (b *Box) openPlace(f *findings, c layout.Name, dir string) (*place, error) {
	p := &place{box: b, found: f, collection: c, set: b.settlingOf(c), dir: dir, sets: map[string]*Set{},
		listing: listing{names: map[string]bool{}, markers: map[string]*marker{}, sidecars: map[string][]string{}}}
	now := b.opt.Now()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.entries, p.foreign = entries, content.IsNetwork(dir)
	p.fixed, p.sticky = mayMove(dir)
	b.observed.mu.Lock()
	before, ok := b.listed[dir]
	b.observed.mu.Unlock()
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
	p.markers[base] = &marker{path: path, at: content.Later(time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix())), seen: stateOf(&st)}
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

// isSidecar tells what a file is about; about is empty for a table about several.
func (p *place) isSidecar(e fs.DirEntry) (about string, yes bool) {
	if !p.set.Sidecars || !e.Type().IsRegular() {
		return "", false
	}
	if e.Name() == SharedSidecar {
		return "", true
	}
	for _, suffix := range sidecarSuffixes {
		if base, ok := strings.CutSuffix(e.Name(), suffix); ok && base != "" {
			return base, true
		}
	}
	return "", false
}

func (p *place) noteSidecar(e fs.DirEntry) {
	about, yes := p.isSidecar(e)
	path := filepath.Join(p.dir, e.Name())
	switch {
	case yes && about == "":
		p.shared = path
	case yes && p.names[about]: // entries come sorted: csv before json
		p.sidecars[about] = append(p.sidecars[about], path)
	}
}

// sidecarGrows tells of a side-car that is still being written.
func (p *place) sidecarGrows(d Drop) string {
	for _, path := range append([]string{d.Shared}, d.Sidecars...) {
		var st unix.Stat_t
		if path == "" || unix.Lstat(path, &st) != nil {
			continue
		}
		age := p.box.opt.Now().Sub(content.Later(time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix())))
		if !p.foreign && age >= 0 && age < p.set.Quiet {
			return filepath.Base(path) + " is still growing"
		}
	}
	return ""
}
