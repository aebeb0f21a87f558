package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A run of the shipped workflow, from the inbox to the deposit, is killed at each call that changes something on the disk, in
// turn. The next run brings the item to the same end: each step ends once, and the deposit is whole.
func TestMainJobKilledAtEachCall(t *testing.T) {
	t.Parallel()
	base := newBench(t)
	base.ok("status") // commits the settings
	base.drop("zip")
	eachCall(t, base, func(b *bench) {
		b.ok("run", "-q")
		b.atRest(1)
		b.deposits(1)
	}, "run", "-q")
}

// Each write and sync of the same run fails, in turn, as on a broken disk. A run in which one failed does not end well without
// a deposit, and once the disk is mended a retry and a run bring the item to the same end.
func TestMainJobFailsAtEachCall(t *testing.T) {
	t.Parallel()
	base := newBench(t)
	base.ok("status") // commits the settings
	base.drop("zip")
	for kind, step := range map[string]int{"syncfs": 2, "fsync": 7, "write": 11, "pwrite64": 3} {
		failures := 0
		for n := 1; ; n += soak(step, 1) {
			b := base.copied(t, fmt.Sprintf("failed-%s-%d", kind, n))
			when := fmt.Sprint(n)
			if n%2 == 0 {
				when += "+" // and all after it
			}
			code, out := b.injected(kind, "error=EIO:when="+when, "run", "-q")
			calls, err := os.ReadFile(filepath.Join(b.top, "calls"))
			b.must(err)
			failed := bytes.Contains(calls, []byte("(INJECTED)"))
			if code == 0 {
				b.deposits(1)
			}
			for _, step := range []string{"unpack", "validate", "inventory", "bag", "deposit", "cleanup"} {
				<-b.start("step", "retry", step, "--status", "failed", "--yes").end // of most steps no item failed
			}
			b.ok("run", "-q")
			b.atRest(1)
			if b.deposits(1); t.Failed() {
				t.Fatalf("call %d of %s failed: exit code %d: %s", n, kind, code, out)
			}
			b.must(os.RemoveAll(b.top))
			if !failed {
				break
			}
			failures++
		}
		if failures == 0 {
			t.Errorf("no %s failed", kind)
		}
	}
}
