package engine

import (
	"fmt"

	"bagpipe/engine/queue"
	"bagpipe/layout"
)

// applyLimits tells the index which limits are in force.
func (e *Engine) applyLimits(c *config) {
	e.mu.Lock()
	index, s := e.index, c.settings
	e.mu.Unlock()
	if index == nil {
		return
	}
	index.SetLanes(s.queueLanes())
	index.SetLimits(queue.Limits{InFlight: s.Limits.InFlight, Collection: func(name layout.Name) int {
		if c, ok := s.Collections[string(name)]; ok && c.InFlight > 0 {
			return c.InFlight
		}
		return s.Defaults.InFlight
	}})
}

func (s *Settings) queueLanes() (lanes queue.Lanes) {
	for _, l := range s.lanes() {
		lanes.Names = append(lanes.Names, layout.Name(l))
	}
	for name, w := range s.LaneWeights {
		if lanes.Weights == nil {
			lanes.Weights = map[layout.Name]float64{}
		}
		lanes.Weights[layout.Name(name)] = w
	}
	return lanes
}

// room is how many more items may be taken in: with a limit on the items in
// flight, as many again as it lets through stand ready behind them, and the rest
// waits in the inbox. why is said when there is no room; without a limit it is -1.
func (e *Engine) room() (n int, why string) {
	limit := e.current().settings.Limits.InFlight
	if limit == 0 {
		return -1, ""
	}
	ahead := e.index.Ahead()
	if n = 2*limit - ahead; n > 0 {
		return n, ""
	}
	return 0, fmt.Sprintf("%d items are under way or ready, and limits: inFlight: lets %d be under way; drops wait in the inbox until some are done", ahead, limit)
}
