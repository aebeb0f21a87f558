package guard_test

import (
	"bytes"
	"context"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/layout"
	"bagpipe/steps"
)

const twoSteps = "schema: 1\nname: noops\nsteps:\n  - name: register\n  - name: step1\n    robot: noop\n  - name: step2\n    robot: noop\n"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return string(out)
}

// An answer that another engine gave first is no forgery, though it puts back
// attempts of the engine that looks at it.
func TestTwoEnginesAnswerOnePush(t *testing.T) {
	ctx := context.Background()
	root, clone := filepath.Join(t.TempDir(), "w"), filepath.Join(t.TempDir(), "clone")
	var warns []string
	seed := int64(0)
	options := func() engine.Options {
		seed++
		return engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(seed)), Robots: steps.Builtins(),
			Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()},
			Warn: func(text string) { warns = append(warns, text) }}
	}
	open := func() *engine.Engine {
		t.Helper()
		e, err := engine.Open(ctx, root, options())
		must(t, err)
		return e
	}
	must(t, engine.Init(ctx, root, options()))
	must(t, os.WriteFile(filepath.Join(root, "workflows", "noops.yaml"), []byte(twoSteps), 0o644))
	drop := filepath.Join(t.TempDir(), "drop.txt")
	must(t, os.WriteFile(drop, []byte("x"), 0o644))
	ran := open()
	got, err := ran.Intake.Add(ctx, drop, intake.AddOptions{Workflow: "noops"})
	must(t, err)
	file := layout.ItemDir(got.Item) + "/" + layout.ExecutionJSON
	record := func() string { return git(t, root, "show", "HEAD:"+file) }
	first := record()
	_, err = ran.Run(ctx, engine.RunOptions{Jobs: 1})
	must(t, err)
	other := open()

	git(t, t.TempDir(), "clone", "-q", root, clone)
	must(t, os.WriteFile(filepath.Join(clone, filepath.FromSlash(file)), []byte(strings.Replace(first, `"runner": "host`, `"runner": "other`, 1)), 0o644)) // no mere revert
	git(t, clone, "-c", "user.name=Ada Archivist", "-c", "user.email=ada@example.org", "commit", "-qam", "pushed")
	git(t, clone, "push", "-q")

	must(t, ran.Ledger.Store.Refresh(ctx))
	must(t, ran.Guard.Examine(ctx))
	must(t, other.Ledger.Store.Refresh(ctx))
	must(t, other.Guard.LookAtFew(ctx))
	must(t, ran.Guard.Answer(ctx, got.Item))
	must(t, ran.Ledger.Store.Refresh(ctx))
	must(t, ran.Guard.LookAtFew(ctx))
	must(t, other.Close())
	must(t, ran.Close())
	if len(warns) != 1 || !strings.Contains(warns[0], "removed attempt 1-") {
		t.Errorf("warned %q", warns)
	}
	if x := record(); strings.Count(x, `"state": "completed"`) != 3 {
		t.Errorf("attempts are lost:\n%s", x)
	}
	warns = nil
	again := open()
	_, err = again.Run(ctx, engine.RunOptions{Jobs: 2})
	must(t, err)
	must(t, again.Close())
	if len(warns) != 0 {
		t.Errorf("answered again: %q", warns)
	}
}
