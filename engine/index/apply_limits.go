package index

import (
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
)

// ApplyLimits tells the index which limits are in force.
func (ke *Keeper) ApplyLimits(c *settings.Snapshot) {
	ke.mu.Lock()
	index, s := ke.index, c.Settings
	ke.mu.Unlock()
	if index == nil {
		return
	}
	index.SetLanes(s.QueueLanes())
	index.SetLimits(queue.Limits{InFlight: s.Limits.InFlight, Collection: s.OwnInFlight,
		Step: func(workflow string, step *state.Step) int { return s.Deployed(workflow, step).Limit }})
}
