package gitstore

import (
	"fmt"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// DivergedError says that the branch was rewritten: commits that were
// acknowledged are no longer reachable from it.
type DivergedError struct {
	Branch     string
	Tip, Last  Hash   // where the branch is; where it was last
	Missing    []Hash // the newest of the commits that are missing from it
	MissingAll int    // how many there are
}

func (e *DivergedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s was rewritten: it is at %s, and lacks %s up to %s (", e.Branch, e.Tip, layout.Count(e.MissingAll, "commit"), e.Last)
	for i, h := range e.Missing {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(h.String()[:12])
	}
	if len(e.Missing) < e.MissingAll {
		b.WriteString(", …")
	}
	b.WriteString(")")
	return b.String()
}

// FaultKind is always fault.Damaged.
func (e *DivergedError) FaultKind() fault.Kind { return fault.Damaged }

// FaultRemedies has the branch brought back, and its present tip kept beside.
func (e *DivergedError) FaultRemedies() []fault.Remedy {
	return []fault.Remedy{{Verb: fault.RestoreBranch, Name: e.Branch, From: e.Tip.String(), To: e.Last.String()}}
}
