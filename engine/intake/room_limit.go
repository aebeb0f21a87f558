package intake

import (
	"fmt"
)

// Room is how many more items may be taken in: with a limit on the items in
// flight, as many again as it lets through stand ready behind them, and the rest
// waits in the inbox. why is said when there is no room; without a limit it is -1.
func (in *Intake) Room() (n int, why string) {
	limit := in.settings.Current().Settings.Limits.InFlight
	if limit == 0 {
		return -1, ""
	}
	ahead := in.index.Loaded().Ahead()
	if n = 2*limit - ahead; n > 0 {
		return n, ""
	}
	return 0, fmt.Sprintf("%d items are under way or ready, and limits: inFlight: lets %d be under way; drops wait in the inbox until some are done", ahead, limit)
}
