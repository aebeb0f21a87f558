package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Beside an engine at full speed a pull and a push that take their turn with it, by the lock
// of publications, are not overtaken.
func TestAPushTakesItsTurn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock")
	}
	b := newBench(t)
	b.workflow("busy", "  - name: one\n    robot: noop\n  - name: two\n    robot: noop\n  - name: three\n    robot: noop\n")
	b.addItems("busy", 60)
	clone := filepath.Join(b.top, "clone")
	in := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = clone, b.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	b.git("clone", "-q", b.dir, clone)
	r := b.start("run", "-q")
	b.awaitMoves(r, 3)
	b.write("clone/note.md", "a note")
	in("git", "add", "note.md")
	in("git", "commit", "-qm", "a note")
	in("flock", filepath.Join(b.dir, ".bagpipe/publish.lock"), "sh", "-c", "git pull -q --rebase && git push -q")
	select {
	case <-r.end:
		t.Log("the engine was done before the push")
	default:
	}
	r.code(0)
	if out := b.git("log", "--format=%s", "--", "note.md"); out != "a note" && out != "a note\n" {
		t.Errorf("%q", out)
	}
	b.atRest(60)
}
