package intake

import (
	"path/filepath"

	"bagpipe/engine/inbox"
)

// KeepBack takes out of what has settled what must not be taken in yet, as its rule
// file is broken, or the lists keep it out.
func (in *Intake) KeepBack(settled []inbox.Drop, waiting []inbox.Waiting) ([]inbox.Drop, []inbox.Waiting) {
	look := in.settings.Current().Book.Look()
	free := make([]inbox.Drop, 0, len(settled))
	for _, d := range settled {
		c := in.recognition.Candidate(d.Path, d.Name, d.Collection, d.Path)
		c.File = d.Kind == inbox.File || d.IsSet()
		if d.IsSet() { // its name is that of no file
			c.Name = filepath.Base(d.Path)
		}
		if why := look.Waits(c); why != "" {
			waiting = append(waiting, inbox.Waiting{Drop: d, Reason: why, Held: true})
			continue
		}
		free = append(free, d)
	}
	return free, waiting
}
