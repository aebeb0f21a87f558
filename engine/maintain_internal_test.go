package engine

import "testing"

// Branches that are taken ask for upkeep, too, as each leaves a pack: people may push where no step is done.
func TestTakenBranchesAskForUpkeep(t *testing.T) {
	u := &upkeep{asked: make(chan struct{}, 1)}
	asked := func() bool {
		select {
		case <-u.asked:
			return true
		default:
			return false
		}
	}
	for n := range packsFrom {
		if asked() {
			t.Fatalf("asked after %d branches", n)
		}
		u.tookBranches(1)
	}
	if !asked() {
		t.Errorf("not asked after %d branches", packsFrom)
	}
}
