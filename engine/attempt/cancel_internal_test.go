package attempt

import (
	"bytes"
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// A record begins with its intents, by which one without a cancel is told.
func TestRecordsWithoutIntents(t *testing.T) {
	x := &state.Execution{Item: "3fa9c0d2e1b7a45"}
	if data := x.Encode(); !bytes.HasPrefix(data, noIntents) {
		t.Errorf("a record without intents begins otherwise:\n%s", data)
	}
	x.Intents = map[layout.IntentKey]state.Intent{"01J": {Kind: state.CancelIntent, At: time.Now()}}
	if data := x.Encode(); bytes.HasPrefix(data, noIntents) || !bytes.Contains(data, cancelMark) {
		t.Errorf("a record with a cancel is taken for one without:\n%s", data)
	}
}
