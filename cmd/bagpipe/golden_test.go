package main

import (
	"context"
	"math/rand/v2"
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
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/testdata/sample"

	"github.com/google/go-cmp/cmp"
)

// With a fixed clock and fixed randomness the history is the same to the last
// byte, wherever the workspace lies: what a commit holds depends on nothing else.
func TestCommitsAreStable(t *testing.T) {
	one, two := filepath.Join(sample.TempDir(t), "ws"), filepath.Join(sample.TempDir(t), "elsewhere")
	goldenHistory(t, one)
	goldenHistory(t, two)
	if d := cmp.Diff(gitLog(t, one, "%H %s"), gitLog(t, two, "%H %s")); d != "" {
		t.Errorf("two histories of the same acts differ:\n%s", d)
	}
}

// The golden log has every commit's message and the tree of the items after it.
// The shipped settings are left out, so that they may be changed. BAGPIPE_UPDATE=1
// writes it anew.
func TestGoldenLog(t *testing.T) {
	const file = "testdata/golden/log.txt"
	dir := filepath.Join(sample.TempDir(t), "ws")
	goldenHistory(t, dir)
	var got strings.Builder
	for hash := range strings.Lines(gitLog(t, dir, "%H")) {
		hash = strings.TrimSpace(hash)
		got.WriteString(git(t, dir, "show", "-s", "--date=iso-strict", "--format=-- %an <%ae> %ad, by %cn <%ce>%n%B", hash))
		if tree, err := exec.Command("git", "-C", dir, "rev-parse", "--verify", "-q", hash+":items").Output(); err == nil {
			got.WriteString("items " + string(tree))
		}
		got.WriteString("\n")
	}
	if os.Getenv("BAGPIPE_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
	if out := git(t, dir, "fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("git fsck: %s", out)
	}
}

func gitLog(t *testing.T, dir, format string) string {
	t.Helper()
	return git(t, dir, "log", "--reverse", "--format="+format)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// fixedOptions are an engine's with nothing of this machine in them.
func fixedOptions(seed uint64, id layout.EngineID) engine.Options {
	var key [32]byte
	key[0] = byte(seed)
	return engine.Options{
		Now:    func() time.Time { return time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC) },
		Random: rand.NewChaCha8(key),
		Person: gitstore.Signature{Name: "Ada Keeper", Email: "ada@example.org"},
		Robots: steps.Builtins(),
		Host:   claim.Host{Name: "archive", BootID: "0f1e2d3c", PID: 4711},
		ID:     id,
	}
}

// goldenWorkflow leaves out deposit, whose message names the store's path.
const goldenWorkflow = `schema: 1
name: golden
steps:
  - name: register
    milestone: registered
  - name: unpack
    robot: unpack
  - name: validate
    robot: validate
  - name: inventory
    robot: inventory
  - name: approve
    manual: true
    milestone: approved
  - name: bag
    robot: bag
`

func goldenHistory(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(engine.Init(ctx, dir, fixedOptions(1, "00000001")))
	check(os.WriteFile(filepath.Join(dir, "workflows/golden.yaml"), []byte(goldenWorkflow), 0o666))
	stage := sample.TempDir(t)
	check(sample.MakeIn(stage, []string{"tar", "parent.tar"}))
	e, err := engine.Open(ctx, dir, fixedOptions(2, "00000002"))
	check(err)
	defer func() { check(e.Close()) }()
	// One item at a time: of several the order is nobody's.
	run := func() {
		t.Helper()
		_, err := e.Run(context.WithoutCancel(ctx), engine.RunOptions{Parallel: 1})
		check(err)
	}
	var ids []layout.ItemID
	for _, name := range []string{"letters.tar", "parent.tar"} {
		a, err := e.Intake.Add(ctx, filepath.Join(stage, name), intake.AddOptions{Workflow: "golden"})
		check(err)
		ids = append(ids, a.Item)
		run()
	}
	check(e.Act.Hold(ctx, ids[0], "asked the sender"))
	check(e.Act.Release(ctx, ids[0], ""))
	_, err = e.Act.Decide(ctx, ledger.StepRef{Item: ids[0], Step: "approve"}, state.Completed, "read\n\nBagpipe-Step: no trailer")
	check(err)
	run()
	_, err = e.Act.Retry(ctx, ledger.StepRef{Item: ids[1], Step: "unpack"}, "try again")
	check(err)
	run()
}
