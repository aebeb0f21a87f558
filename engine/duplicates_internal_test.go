package engine

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	open := func(seed int64) *Engine {
		t.Helper()
		o := Options{Now: time.Now, Random: rand.New(rand.NewSource(seed)), Robots: steps.Builtins(),
			Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
		if seed == 1 {
			if err := Init(ctx, root, o); err != nil {
				t.Fatal(err)
			}
			settings := "schema: 1\ndefaults: {workflow: accession}\ninbox: {duplicates: reject}\n"
			if err := os.WriteFile(filepath.Join(root, "bagpipe.yaml"), []byte(settings), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		e, err := Open(ctx, root, o)
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
	k, err := b.Intake.theKnown(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.Intake.Add(ctx, write("first"), intake.AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(k.candidates(intake.digestKey("sha256:" + strings.Repeat("0", 64)))); n != 0 {
		t.Fatalf("%d candidates for what nobody has", n)
	}
	box, err := b.Intake.Box(false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ledger.Seat.Engine(); err != nil {
		t.Fatal(err)
	}
	taken, err := box.Accept(ctx, write("second"), intake.ticket(intake.AddOptions{Collection: "default"}, "Ada"))
	if err != nil {
		t.Fatal(err)
	}
	// As if it had looked before the other engine committed.
	d := &intake.drop{taken: taken, Admitted: intake.Admitted{Item: taken.ID, Collection: "default", Label: "second"}}
	b.Intake.Known.Store(&intake.known{})
	if err := b.Intake.prepare(ctx, box, d); err != nil || d.refused != "" {
		t.Fatalf("%v, %q", err, d.refused)
	}
	b.Intake.Known.Store(k)
	b.Intake.admitPrepared(ctx, box, []*intake.drop{d}, b.Ledger.ByPerson())
	if d.err != nil || !strings.Contains(d.Rejected, string(first.Item)) {
		t.Fatalf("rejected: %q, %v", d.Rejected, d.err)
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
