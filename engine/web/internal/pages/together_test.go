package pages

import (
	"testing"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// Neighbours that wait for the same are one row; what has a command of its own stays apart, and
// one that was said at a step before counts for nothing.
func TestTogether(t *testing.T) {
	row := func(step, why, command string) ask.WaitingSaid {
		return ask.WaitingSaid{Waiting: ask.Waiting{Workflow: "accession.1", Step: layout.Name(step), Why: why, Remedy: ask.Remedy{Verb: fault.Verb(command)}}, Command: command}
	}
	rows := together([]ask.WaitingSaid{row("unpack", "failed", "retry"), row("bag", "stands still", ""), row("deposit", "stands still", "retry"), row("cleanup", "stands still", "start")})
	var got []string
	for _, r := range rows {
		got = append(got, string(r.Step))
	}
	if len(got) != 3 || got[0] != "unpack" || got[1] != "bag, deposit" || got[2] != "cleanup" {
		t.Errorf("rows %q", got)
	}
}
