package packed

import (
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

var (
	t0  = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	eng = layout.EngineID("5c1e9a70")
)

func plan(t testing.TB) *state.Definition {
	t.Helper()
	d, err := state.ParseDefinition("w.yaml", []byte("schema: 1\nname: w\nsteps:\n  - name: register\n  - name: a\n    robot: noop\n  - name: b\n    robot: noop\n    requires: [register]\n  - name: approve\n    manual: true\n    requires: [a, b]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
