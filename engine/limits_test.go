package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/ledger"
)

// Two engines look at the same states, and each takes a step that a limit lets
// through once: the second one's claim finds the first one's, and is refused.
func TestTwoEnginesDoNotPassALimit(t *testing.T) {
	const step = "  - name: read\n    robot: trial\n"
	for name, c := range map[string]struct{ workflow, settings string }{
		"of a step":          {step + "    limit: 1\n", ""},
		"of a workflow":      {step + "inFlight: 1\n", ""},
		"of all workflows":   {step, "limits: {inFlight: 1}\n"},
		"of each collection": {step, "defaults: {inFlight: 1}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPolicy(t, c.workflow, 2)
			p.must(os.WriteFile(filepath.Join(p.root, "bagpipe.yaml"), []byte("schema: 1\n"+c.settings), 0o644))
			p.do(func(*engine.Engine) {}) // commits them
			p.do(func(a *engine.Engine) {
				p.do(func(b *engine.Engine) {
					p.must(a.Index.Load(p.ctx))
					p.must(b.Index.Load(p.ctx))
					first, okA := a.TakeOne("item-1")
					second, okB := b.TakeOne("item-2")
					if !okA || !okB {
						t.Fatalf("taken: %t, %t", okA, okB)
					}
					p.must(first(p.ctx))
					if err := second(p.ctx); !ledger.IsRefused(err) {
						t.Errorf("the second claim: %v", err)
					}
				})
			})
		})
	}
}
