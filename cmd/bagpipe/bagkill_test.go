package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A bagpipe that makes a folder a bag is killed after a little longer each time.
// The next call leaves a valid bag of all the files.
func TestKilledBagCreateInPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const files = 120
	kills := 0
	for round := range soak(10, 400) {
		for i := range files {
			b.write(fmt.Sprintf("r%d/letters/%d/file-%d.txt", round, i%7, i), strings.Repeat("x", i))
		}
		dir := filepath.Join(b.top, fmt.Sprintf("r%d/letters", round))
		p := b.start("bag", "create", "--in-place", dir)
		<-time.After(time.Duration(round) * time.Second / time.Duration(soak(200, 4000)))
		if p.kill() {
			kills++
		}
		switch {
		case !b.exists(fmt.Sprintf("r%d/letters/bagit.txt", round)):
			b.ok("bag", "create", "--in-place", dir)
		case b.exists(fmt.Sprintf("r%d/letters/.bagpipe-bag", round)):
			b.ok("bag", "update", dir)
		}
		if out := b.ok("bag", "validate", dir); !strings.Contains(out, fmt.Sprintf("valid: BagIt 1.0, %d payload files", files)) {
			t.Fatalf("round %d: %s", round, out)
		}
		if b.exists(fmt.Sprintf("r%d/letters/.bagpipe-bag", round)) {
			t.Errorf("round %d: .bagpipe-bag is left", round)
		}
	}
	if kills < 2 {
		t.Errorf("only %d were killed before they ended", kills)
	}
}
