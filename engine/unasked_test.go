package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/intake"
	"bagpipe/engine/settings"
)

// Steps that nobody asked for are skipped with the end of the step before them, however many
// items are at work; where one is asked for, what comes after it waits.
func TestUnaskedStepsAreSkippedWithTheEndBeforeThem(t *testing.T) {
	ctx := t.Context()
	e, root := newWorkspace(t)
	if err := e.Settings.AddCollection(ctx, "reading-room", settings.Collection{Approvals: []string{"shelve"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		drop := filepath.Join(t.TempDir(), "letter.txt")
		if err := os.WriteFile(drop, fmt.Appendf(nil, "letter %d\n", i), 0o644); err != nil {
			t.Fatal(err)
		}
		add := intake.AddOptions{Label: fmt.Sprint("letter ", i)}
		if i%4 == 0 {
			add.Collection = "reading-room"
		}
		if _, err := e.Intake.Add(ctx, drop, add); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Run(ctx, engine.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	then := map[string][]string{"inventory: completed": {"approve: skipped"}, "deposit: completed": {"shelve: skipped", "publish: skipped"}}
	lines := strings.Split(strings.TrimSpace(git(t, root, "log", "--reverse", "--format=%s")), "\n")
	seen := 0
	for i, line := range lines {
		step, item, _ := strings.Cut(line, ": ")
		status, item, _ := strings.Cut(item, " ")
		for k, want := range then[step+": "+status] {
			if strings.Contains(item, "reading-room") && step == "deposit" {
				break
			}
			if got, want := strings.Join(lines[i+k+1:min(len(lines), i+k+2)], ""), want+" "+item; got != want {
				t.Errorf("behind %q, %d: %q, want %q", line, k+1, got, want)
			}
			seen++
		}
	}
	if want := 24 + 18*2; seen != want {
		t.Errorf("%d skips, want %d", seen, want)
	}
	for _, line := range lines {
		if strings.Contains(line, "reading-room") && (strings.HasPrefix(line, "shelve") || strings.HasPrefix(line, "publish")) {
			t.Errorf("%q, though it was asked for", line)
		}
	}
	if out := git(t, root, "fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("git fsck: %s", out)
	}
}
