package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
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

// Each write and sync of the same run fails, in turn, as on a broken disk or one that is full. A run in which one failed does not
// end well without a deposit, and once the disk is mended a retry and a run bring the item to the same end.
func TestMainJobFailsAtEachCall(t *testing.T) {
	t.Parallel()
	base := newBench(t)
	base.ok("status") // commits the settings
	base.drop("zip")
	for _, of := range []struct {
		kind, code string
		step       int
	}{{"syncfs", "EIO", 2}, {"fsync", "EIO", 7}, {"write", "EIO", 11}, {"pwrite64", "EIO", 3}, {"syncfs", "ENOSPC", 3}, {"write", "ENOSPC", 13}, {"mkdirat", "ENOSPC", 9}} {
		kind, step, failures := of.kind, of.step, 0
		for n := 1; ; n += soak(step, 1) {
			b := base.copied(t, fmt.Sprintf("failed-%s-%s-%d", kind, of.code, n))
			when := fmt.Sprint(n)
			if n%2 == 0 {
				when += "+" // and all after it
			}
			code, out := b.injected(kind, "error="+of.code+":when="+when, "run", "-q")
			calls, err := os.ReadFile(filepath.Join(b.top, "calls"))
			b.must(err)
			failed := bytes.Contains(calls, []byte("(INJECTED)"))
			if code == 0 && !strings.Contains(out, "waits for a later time") {
				b.deposits(1)
			}
			for _, item := range gjson.Get(b.ok("items", "--json"), "#.item").Array() {
				for _, step := range []string{"unpack", "validate", "inventory", "bag", "deposit", "cleanup"} {
					<-b.start("step", "retry", item.String(), step).end // most did not fail, and wait for nothing
				}
			}
			b.ok("run", "-q")
			b.atRest(1)
			if b.deposits(1); t.Failed() {
				t.Fatalf("call %d of %s failed with %s: exit code %d: %s", n, kind, of.code, code, out)
			}
			b.must(os.RemoveAll(b.top))
			if !failed {
				break
			}
			failures++
		}
		if failures == 0 {
			t.Errorf("no %s failed with %s", kind, of.code)
		}
	}
}
