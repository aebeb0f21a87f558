package state

import (
	"fmt"
	"sync"
	"testing"
)

// A reason of one prerequisite that is told again names it, whatever was told between, and by several at once.
func TestRequiresReason(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 2 * len(requires) {
				step := fmt.Sprint("step-", n)
				if r := RequiresReason([]string{step}); r.Code != "requires" || r.Text != "waits for "+step || len(r.Steps) != 1 || r.Steps[0] != step {
					t.Errorf("of %s: %+v", step, r)
				}
			}
		})
	}
	wg.Wait()
	if r := RequiresReason([]string{"a", "b"}); r.Text != "waits for a, b" || len(r.Steps) != 2 {
		t.Errorf("of two: %+v", r)
	}
}
