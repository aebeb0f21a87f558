package intake_test

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/steps"
)

// Another engine took the same content in after this one had looked: the transaction
// finds it, and the drop goes back from its item's folder, to be rejected.
func TestDuplicateFoundWithinTheTransaction(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "w")
	open := func(seed int64) *engine.Engine {
		t.Helper()
		o := engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(seed)), Robots: steps.Builtins(),
			Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
		if seed == 1 {
			if err := engine.Init(ctx, root, o); err != nil {
				t.Fatal(err)
			}
			settings := "schema: 1\ndefaults: {workflow: accession}\ninbox: {duplicates: reject}\n"
			if err := os.WriteFile(filepath.Join(root, "bagpipe.yaml"), []byte(settings), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		e, err := engine.Open(ctx, root, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	}
	write := func(name string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("the same"), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := open(1), open(2)
	d, err := b.Intake.Prepare(ctx, write("second"), b.Ledger.ByPerson())
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.Intake.Add(ctx, write("first"), intake.AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Admit(ctx)
	if err != nil || !strings.Contains(got.Rejected, string(first.Item)) {
		t.Fatalf("rejected: %q, %v", got.Rejected, err)
	}
	if _, err := os.Stat(filepath.Join(root, "rejected/default/second")); err != nil {
		t.Error(err)
	}
	if items, err := filepath.Glob(filepath.Join(root, "items/*/*/*/*/*")); err != nil || len(items) != 1 {
		t.Errorf("items: %v, %v", items, err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "intake")); err != nil || len(left) != 0 {
		t.Errorf("intake: %v, %v", left, err)
	}
}
