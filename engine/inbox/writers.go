package inbox

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"bagpipe/layout"
)

// The rules are: a program that pauses holds its file open, so a drop that has been
// still for Quiet is asked for its writers, file by file, before it settles, and once
// more after it was renamed into the intake, when nobody can open it by its old path.
// A file whose writers the kernel does not tell of waits for unseenFactor × Quiet, unless
// a marker or a rename says that its drop is whole.

// unseenFactor × Quiet is how long a drop waits whose writers cannot be seen.
const unseenFactor = 2

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
		case err != nil || s.Sig != m.sig:
			return growing, 0 // the next look tells
		case s.Held != "":
			return heldText(m.within(s.Held)), 0
		case s.Unseen != "" && unseen == "":
			unseen = m.within(s.Unseen)
		}
	}
	if unseen != "" && still < unseenFactor*p.set.Quiet {
		return fmt.Sprintf("whether a program still writes to %s cannot be seen, as it belongs to another account or its file system does not tell; it is taken in when nothing has changed for %s, %d × inbox: quiet:",
			layout.EncodePath(unseen), unseenFactor*p.set.Quiet, unseenFactor), unseenFactor * p.set.Quiet
	}
	b.noteAsked(d)
	return "", 0
}
