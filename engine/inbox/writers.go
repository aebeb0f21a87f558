package inbox

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: a program that pauses holds its file open, so a drop that has been
// still for Quiet is asked for its writers, file by file, before it settles, and once
// more after it was renamed into the intake, when nobody can open it by its old path.
// A file whose writers the kernel does not tell of waits for unseenFactor × Quiet, unless
// a marker or a rename says that its drop is whole.

// unseenFactor × Quiet is how long a drop waits whose writers cannot be seen.
const unseenFactor = 2

// askWriters notes the first file that is held open for writing, and the first of which
// nothing can be said.
func (s *surveyor) askWriters(path, rel string) {
	if !s.asks || s.held != "" {
		return
	}
	switch disk.WritersOf(path) {
	case disk.HasWriters:
		s.held = rel
	case disk.UnseenWriters:
		if s.unseen == "" {
			s.unseen = rel
		}
	}
}

// writersOf says why a drop that is still does not settle yet: a file of it is held open
// for writing, or nobody can tell and it has not been still for long enough.
func (p *place) writersOf(ctx context.Context, d Drop, still time.Duration) (reason string, quiet time.Duration) {
	b := p.box
	if b.askedLately(d, p.set.Quiet) {
		return "", 0
	}
	unseen := ""
	for _, m := range d.members() {
		s, err := b.survey(ctx, filepath.Join(filepath.Dir(d.Path), m.name), p.set, true)
		switch {
		case err != nil || s.sig != m.sig:
			return growing, 0 // the next look tells
		case s.held != "":
			return heldText(m.within(s.held)), 0
		case s.unseen != "" && unseen == "":
			unseen = m.within(s.unseen)
		}
	}
	if unseen != "" && still < unseenFactor*p.set.Quiet {
		return fmt.Sprintf("whether a program still writes to %s cannot be seen, as it belongs to another account or its file system does not tell; it is taken in when nothing has changed for %s, %d × inbox: quiet:",
			layout.EncodePath(unseen), unseenFactor*p.set.Quiet, unseenFactor), unseenFactor * p.set.Quiet
	}
	b.noteAsked(d)
	return "", 0
}

// members are the files of a set, or the drop itself.
func (d Drop) members() []member {
	if d.IsSet() {
		return d.set
	}
	return []member{{filepath.Base(d.Path), d.sig}}
}

// within names a file of the member.
func (m member) within(rel string) string { return filepath.Join(m.name, rel) }

// askedLately reports whether nobody was found to write to the drop as it is now, less
// than the given time ago. The answer counts for the list alone: the drop is asked again
// when it is taken.
func (b *Box) askedLately(d Drop, ago time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.seen[d.Path]
	return s.sig == d.sig && !s.asked.IsZero() && b.opt.Now().Sub(s.asked) < ago
}

func (b *Box) noteAsked(d Drop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.seen[d.Path]; ok && s.sig == d.sig {
		s.asked = b.opt.Now()
		b.seen[d.Path] = s
	}
}

func heldText(name string) string {
	return fmt.Sprintf("a program has %s open for writing", layout.EncodePath(name))
}

// heldError gives a drop back that is still being written to.
func heldError(rel string) error {
	return fmt.Errorf("%w: %s", ErrChanged, heldText(rel))
}
