package folder

import (
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Attempt is a claimed step, fenced by its key.
type Attempt struct {
	Item     layout.ItemID
	Workflow string
	Step     layout.Name
	Key      layout.AttemptKey
	Claimed  time.Time

	Progress *state.Progress // what its robot told last, once it has ended
	Children int             // registered, of those it made
}
