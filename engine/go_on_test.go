package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/intake"
)

// An item that is alone goes on from step to step: each claim but the first is committed behind
// the end before it, and every transition has its commit.
func TestAnItemGoesOnWithItsNextStep(t *testing.T) {
	ctx := t.Context()
	e, root := newWorkspace(t)
	drop := filepath.Join(t.TempDir(), "letter.txt")
	if err := os.WriteFile(drop, []byte("letter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Intake.Add(ctx, drop, intake.AddOptions{Label: "letter"}); err != nil {
		t.Fatal(err)
	}
	before := e.Ledger.Store.Figures()
	if _, err := e.Run(ctx, engine.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	after := e.Ledger.Store.Figures()
	commits, groups := after.Commits-before.Commits, after.Groups-before.Groups
	if want := 6*2 + 3; commits != want {
		t.Errorf("%d commits, want %d: two of each step that is done, one of each that nobody asked for", commits, want)
	}
	if want := 1 + 6; groups != want {
		t.Errorf("%d groups, want %d: the first claim, and an end each", groups, want)
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".bagpipe/claims/*.lock")); len(left) > 0 {
		t.Errorf("claims are left: %v", left)
	}
	out := git(t, root, "log", "--format=%s")
	if n := strings.Count(out, ": in-progress "); n != 6 {
		t.Error(fmt.Sprint(n, " claims in\n"), out)
	}
}
