package inbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// The rules are: regular files that lie side by side, and that Options.Together says
// belong together, are one drop, a folder of the name that it gives. It is still only
// when each of its files is, and a rename into place settles none of them, as files are
// renamed one by one. While a set lacks a file its files wait for each other to be still,
// and are then drops of their own. What is named as unfinished, markers and side-cars
// belong to no set. A set with a file that cannot be read waits. A marker of the set's
// name, or of one of its files, marks it; so do side-cars.

// joinSets finds out which of the files listed belong together.
func (p *place) joinSets(ctx context.Context) {
	if p.box.opt.Together == nil || p.set.Apart {
		return
	}
	var loose []string
	for _, e := range p.entries {
		if p.mayJoin(e) {
			loose = append(loose, e.Name())
		}
	}
	p.joins = true
	if len(loose) < 2 {
		return
	}
	for _, s := range p.box.opt.Together(ctx, p.collection, p.dir, loose) {
		if s.Lacks == "" && p.names[s.Name] {
			s.Name = s.Files[0]
		}
		for _, name := range s.Files {
			p.sets[name] = &s
		}
		if s.Lacks == "" {
			p.nameSet(s.Name)
		}
	}
}

// mayHaveCompanions tells whether others that belong to a loose file may be on their way.
func (p *place) mayHaveCompanions(d Drop) bool {
	if !p.joins || d.Kind != File {
		return false
	}
	return p.box.opt.Companions == nil || p.sets[d.Name] != nil || p.box.opt.Companions(p.collection, d.Name)
}

// SetOf gives the set that a file in a folder of drops belongs to; nil: none.
func (b *Box) SetOf(ctx context.Context, c layout.Name, path string) (*Set, error) {
	p, err := b.openPlace(&findings{listed: map[string]time.Time{}}, c, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if p.held, err = p.heldNames(); err != nil {
		return nil, err
	}
	p.joinSets(ctx)
	if s := p.sets[filepath.Base(path)]; s != nil && s.Lacks == "" {
		return s, nil
	}
	return nil, nil
}

// nameSet lets what is about a set be noted by its name.
func (p *place) nameSet(name string) {
	if p.names[name] {
		return
	}
	p.names[name] = true
	for _, e := range p.entries {
		if p.set.marked(e.Name()) == name {
			p.noteMarker(e)
		}
		if about, yes := p.isSidecar(e); yes && about == name {
			p.noteSidecar(e)
		}
	}
}

func (p *place) mayJoin(e fs.DirEntry) bool {
	if !e.Type().IsRegular() || p.held[e.Name()] || p.set.ignore.Match(e.Name()) || p.set.marked(e.Name()) != "" || p.unfinished(e.Name()) != "" {
		return false
	}
	_, sidecar := p.isSidecar(e)
	return !sidecar
}

// judgeSet looks at the files of one set and puts the drop that they are into one of
// the lists.
func (p *place) judgeSet(ctx context.Context, s *Set) error {
	b := p.box
	main := filepath.Join(p.dir, s.Files[0])
	d := Drop{Collection: p.collection, Batch: p.batch, Name: s.Name, Path: main, Kind: Folder, Companions: Companions{Shared: p.shared}}
	all := content.Survey{Kind: Folder}
	marker := p.markers[s.Name]
	d.Sidecars = slices.Clone(p.sidecars[s.Name])
	for _, name := range s.Files {
		one, err := b.survey(ctx, filepath.Join(p.dir, name), p.set, false)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrChanged) || err == nil && one.Kind != File {
			return nil // another look tells
		}
		if err != nil {
			return err
		}
		d.set = append(d.set, member{name, one.Sig})
		all.Add(name, one)
		if marker == nil {
			marker = p.markers[name]
		}
		if name != s.Name {
			d.Sidecars = append(d.Sidecars, p.sidecars[name]...)
		}
	}
	all.Sig = signatureOf(d.set)
	p.found.present[main] = true
	p.left++
	d.Files, d.Bytes, d.Since, d.sig = all.Files, all.Bytes, all.Newest, all.Sig
	if marker != nil {
		d.Marker, d.markerSeen = marker.path, marker.seen
	}
	still, _ := b.stillFor(d, p.foreign)
	d.byQuiet, d.joins = p.set.Complete == ByQuiet, true
	if marker.covers(d) || p.whole.covers(d) {
		still, d.byQuiet = max(still, unseenFactor*p.set.Quiet), false
	}
	reason, quiet := p.whyWait(d, all, still)
	switch {
	case reason == growing:
		reason = fmt.Sprintf("is still growing: %d files that belong together", len(s.Files))
	case reason == "" && all.Bad != nil:
		reason = all.Bad.Error() + "; it belongs to the others of " + layout.EncodePath(s.Name)
	case reason == "" && all.Bytes == 0:
		reason = "its files are all empty"
	}
	return p.settle(ctx, d, all, reason, quiet, still)
}

// signatureOf is that of a set: it changes with each of its files, and with one more.
func signatureOf(set []member) content.Signature {
	h, buf := fnv.New64a(), make([]byte, 0, 300)
	for _, m := range set {
		buf = binary.LittleEndian.AppendUint64(append(append(buf[:0], m.name...), 0), m.sig.Hash)
		h.Write(buf)
	}
	return content.Signature{Entries: len(set), Hash: h.Sum64()}
}

// awaits tells of a file that belongs with this one, to no whole set yet, and grows.
func (p *place) awaits(d Drop) (reason string, still time.Duration) {
	s := p.sets[d.Name]
	if s == nil || d.Kind != File {
		return "", 0
	}
	now := p.box.opt.Now()
	for _, name := range s.Files {
		path := filepath.Join(p.dir, name)
		var st unix.Stat_t
		if name == d.Name || unix.Lstat(path, &st) != nil {
			continue
		}
		still := now.Sub(content.Later(time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix())))
		if p.foreign || still < 0 {
			still = now.Sub(p.box.seenSince(path, now))
		}
		if still < p.set.Quiet {
			return "waits for " + layout.EncodePath(name) + ", which belongs with it and is still growing", still
		}
	}
	return "", 0
}

// heldNames are the files here that belong to sets which are being taken or put back, by
// any process. It is asked once the folder is listed: whoever takes a set has its folder
// there from before the first rename to after the last.
func (p *place) heldNames() (map[string]bool, error) {
	entries, err := os.ReadDir(filepath.Join(p.dir, setsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 { // left by a crash; whoever is to gather there makes it anew
		_ = os.Remove(filepath.Join(p.dir, setsName)) // where it may not be removed it may stay
		return nil, nil
	}
	held := map[string]bool{}
	for _, e := range entries {
		path := filepath.Join(p.dir, setsName, e.Name())
		if _, err := layout.ParseItemID(e.Name()); err != nil {
			p.wait(e, path, "is no set that is being taken; move it away")
			continue
		}
		j, err := readJournal(p.box.path(layout.IntakeDir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			p.orphaned(e, path)
			continue
		}
		if err != nil {
			return nil, err
		}
		p.left++
		for _, enc := range j.Set {
			if name, err := layout.DecodePath(enc); err == nil && !content.Exists(filepath.Join(path, name)) {
				held[name] = true
			}
		}
	}
	return held, nil
}

// orphaned tells of files that were gathered by a take whose journal is gone.
func (p *place) orphaned(e fs.DirEntry, path string) {
	if os.Remove(path) == nil { // it was empty
		return
	}
	if _, err := os.Lstat(path); err == nil {
		p.wait(e, path, "holds files that were gathered by a take that nobody finishes; move them to "+strings.TrimPrefix(p.dir, p.box.opt.Root+"/")+" to have them taken anew")
	}
}
