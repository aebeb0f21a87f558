package queue

import (
	"bagpipe/engine/state"
)

func code(why *state.Reason) string {
	if why == nil {
		return ""
	}
	return why.Code
}
