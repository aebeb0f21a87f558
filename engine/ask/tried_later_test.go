package ask

import (
	"testing"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/steps"
)

// What differs in figures alone is one reason, of which one stands as it is: its paths have their digits.
func TestReasonsAlike(t *testing.T) {
	now := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	groups := LaterGroups{}
	for _, need := range []string{"7", "4", "4", "9"} {
		run := &queue.Run{Name: "flow.1", Plan: &state.Definition{Steps: []state.Step{{Name: "bag"}}}}
		run.Steps = []queue.Step{{}}
		run.Steps[0].Message = (&steps.Later{Reason: "no space in the store: /dev/shm/A22/store, the bag needs " + need + " KiB"}).Error()
		run.Steps[0].Blocked = &state.Reason{Code: "retry", Until: now.Add(time.Hour)}
		groups.Add(run, now, func(*state.Step) bool { return true })
	}
	rows := groups.Rows()
	if len(rows) != 1 || rows[0].Items != 4 || !rows[0].Alike || rows[0].Text() != "no space in the store: /dev/shm/A22/store, the bag needs 4 KiB; of others with other figures" {
		t.Errorf("%+v", rows)
	}
}
