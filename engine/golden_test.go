package engine_test

import (
	"bytes"
	"context"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/steps"

	"github.com/google/go-cmp/cmp"
)

// fixedClock stands still until the test moves it, as goroutines look at it in
// any order.
type fixedClock struct{ seconds atomic.Int64 }

func (c *fixedClock) now() time.Time {
	return time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).Add(time.Duration(c.seconds.Load()) * time.Second)
}

func fixedOptions(clock *fixedClock) engine.Options {
	return engine.Options{
		Now:    clock.now,
		Random: rand.New(rand.NewSource(1)),
		Person: gitstore.Signature{Name: "Ada Archivist", Email: "ada@example.org"},
		Robots: steps.Builtins(),
		Host:   claim.Host{Name: "host", BootID: "boot", PID: 7},
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
	return string(out) + errOut.String()
}

// TestGoldenLog holds subjects, trailers, authors and hashes: with a fixed clock
// and fixed identifiers they are the same for ever.
func TestGoldenLog(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "w")
	clock := &fixedClock{}
	o := fixedOptions(clock)
	if err := engine.Init(ctx, root, o); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(ctx, root, o)
	if err != nil {
		t.Fatal(err)
	}
	clock.seconds.Add(1)
	if err := e.Settings.AddCollection(ctx, "reading-room", settings.Collection{Approvals: []string{"approve"}}); err != nil {
		t.Fatal(err)
	}
	drop := filepath.Join(t.TempDir(), "letter.txt")
	if err := os.WriteFile(drop, []byte("Sehr geehrte Damen und Herren\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := e.Intake.Add(ctx, drop, intake.AddOptions{Collection: "reading-room", Label: "letter"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Intake.Add(ctx, drop, intake.AddOptions{Label: "x\nBagpipe-To: forged"}); err == nil {
		t.Error("a label of two lines was taken")
	}
	clock.seconds.Add(1)
	if err := e.Act.Hold(ctx, got.Item, "rights?\n\nBagpipe-Step: forged"); err != nil {
		t.Fatal(err)
	}
	clock.seconds.Add(1)
	if err := e.Act.Release(ctx, got.Item, ""); err != nil {
		t.Fatal(err)
	}
	clock.seconds.Add(1)
	if _, err := e.Act.Decide(ctx, ledger.StepRef{Item: got.Item, Step: "unpack"}, "skipped", "done by hand"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	log := git(t, root, "log", "--reverse", "--format=commit %H%nauthor %an <%ae>%ncommitter %cn <%ce> %cI%n%B--")
	want, err := os.ReadFile("testdata/golden.log")
	if os.Getenv("BAGPIPE_UPDATE") != "" {
		err = os.WriteFile("testdata/golden.log", []byte(log), 0o644)
		want = []byte(log)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), log); diff != "" {
		t.Errorf("the log is not as it was (BAGPIPE_UPDATE=1 writes it anew):\n%s", diff)
	}
	if out := git(t, root, "fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("git fsck: %s", out)
	}
	steps := git(t, root, "log", "--format=%(trailers:key=Bagpipe-Step,valueonly)%(trailers:key=Bagpipe-To,valueonly)")
	if strings.Contains(steps, "forged") {
		t.Errorf("foreign text passed for a trailer:\n%s", steps)
	}
}
