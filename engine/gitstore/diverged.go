package gitstore

import (
	"fmt"
	"strings"
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
	fmt.Fprintf(&b, "%s was rewritten: it is at %s, and %d commits up to %s are missing from it (", e.Branch, e.Tip, e.MissingAll, e.Last)
	for i, h := range e.Missing {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(h.String()[:12])
	}
	if len(e.Missing) < e.MissingAll {
		b.WriteString(", …")
	}
	fmt.Fprintf(&b, "); to bring them back, keeping what is there now as the branch rewritten: %s", e.Command())
	return b.String()
}

// Command is the shell command that brings the missing commits back.
func (e *DivergedError) Command() string {
	return fmt.Sprintf("git branch -f rewritten %s && git update-ref %s %s %s", e.Tip, e.Branch, e.Last, e.Tip)
}
