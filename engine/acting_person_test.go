package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// The person who acts travels with the call: an engine that serves several people signs
// and records each act as its own person's, and never as the person of its options.
func TestTheActingPersonTravelsWithTheCall(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	root, drop := filepath.Join(dir, "w"), filepath.Join(dir, "letter.txt")
	o := fixedOptions(&fixedClock{})
	o.Now = time.Now
	if err := engine.Init(ctx, root, o); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(ctx, root, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := os.WriteFile(drop, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := strings.TrimSpace(git(t, root, "rev-parse", "HEAD"))
	by := ledger.PersonActor(gitstore.Signature{Name: "Anna", Email: "anna@example.org"})
	got, err := e.Intake.Add(ctx, drop, intake.AddOptions{Batch: "june", By: by})
	if err != nil {
		t.Fatal(err)
	}
	acts := e.Act.As(by)
	if _, err := acts.Start(ctx, got.Item, "accession", time.Time{}); err == nil {
		t.Error("a workflow that is not done was started again")
	}
	if _, err := acts.Deactivate(ctx, got.Item, "accession", "wrong"); err != nil {
		t.Fatal(err)
	}
	if _, err := acts.Start(ctx, got.Item, "accession", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(ctx, engine.RunOptions{Parallel: 1, Batch: "june", By: by}); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"register", "batch: closed june", "deactivated"} {
		log := git(t, root, "log", "--format=%an: %s", before+"..HEAD")
		if !strings.Contains(log, subject) {
			t.Errorf("no commit says %q in\n%s", subject, log)
		}
	}
	if ada := git(t, root, "log", "--format=%an: %s%n%b", "--grep=Ada", before+"..HEAD"); ada != "" {
		t.Errorf("commits name the person of the options:\n%s", ada)
	}
	if ada := git(t, root, "log", "--format=%an: %s", "--author=Ada", before+"..HEAD"); ada != "" {
		t.Errorf("commits are signed by the person of the options:\n%s", ada)
	}
	for _, name := range []string{"manifest.json", "execution.json"} {
		data := git(t, root, "show", "HEAD:"+layout.ItemDir(got.Item)+"/"+name)
		if strings.Contains(data, "Ada") || !strings.Contains(data, "Anna") {
			t.Errorf("%s names another person than who acted:\n%s", name, data)
		}
	}
}
