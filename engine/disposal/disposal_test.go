package disposal_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/disposal"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/warrant"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/testdata/sample"
)

var errCrash = errors.New("crashed here")

// bench is a workspace with two items, of which one is approved to go.
type bench struct {
	t    *testing.T
	dir  string
	root string
	gone layout.ItemID
	kept layout.ItemID
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) open(person string) *engine.Engine {
	b.t.Helper()
	e, err := engine.Open(b.t.Context(), b.root, options(person))
	b.must(err)
	b.must(e.Index.Load(b.t.Context()))
	return e
}

func options(person string) engine.Options {
	return engine.Options{Now: time.Now, Random: rand.Reader, Robots: steps.Builtins(), Host: claim.Host{Name: "test", PID: os.Getpid()},
		Person: gitstore.Signature{Name: person, Email: person + "@example.org"}}
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: sample.TempDir(t)}
	b.root = filepath.Join(b.dir, "ws")
	ctx := t.Context()
	b.must(engine.Init(ctx, b.root, options("ada")))
	b.must(os.WriteFile(filepath.Join(b.root, "bagpipe.yaml"), []byte("schema: 1\ninbox: {quiet: 10ms}\ntargets:\n  vault: {kind: folder, path: ../vault}\n"+
		"defaults: {workflow: accession, targets: [store, vault]}\n"), 0o666))
	e := b.open("ada")
	for i, to := range []*layout.ItemID{&b.gone, &b.kept} {
		path := filepath.Join(b.dir, "in", fmt.Sprintf("drop-%d", i))
		b.must(os.MkdirAll(path, 0o777))
		for n := range 3 {
			b.must(os.WriteFile(filepath.Join(path, fmt.Sprint("file-", n)), fmt.Appendf(nil, "the bytes of drop %d, %d", i, n), 0o666))
		}
		b.must(e.Intake.AddAll(ctx, []string{path}, intake.AddOptions{}, func(a intake.Admitted, err error) {
			b.must(err)
			*to = a.Item
		}))
	}
	_, err := e.Run(ctx, engine.RunOptions{Parallel: 2})
	b.must(err)
	key, err := e.Disposal.Propose(ctx, disposal.Draft{Items: []layout.ItemID{b.gone}, Reason: "its time is over"})
	b.must(err)
	b.must(e.Close())
	for _, person := range []string{"bob", "carol"} {
		e := b.open(person)
		b.must(e.Disposal.Say(ctx, e.Ledger.ByPerson(), key, warrant.Approved, ""))
		b.must(e.Close())
	}
	return b
}

// found lists the files outside of the repository whose bytes have a text.
func (b *bench) found(text string) (paths []string) {
	b.t.Helper()
	b.must(filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == ".git" || path == filepath.Join(b.dir, "in")) {
				return fs.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(text)) {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// Of two processes that dispose of an item at once one makes the tombstone, and the other leaves it as it is.
func TestTwoDisposalsAtOnceMakeOneTombstone(t *testing.T) {
	b := newBench(t)
	one, two := b.open("ada"), b.open("bob")
	defer one.Close()
	defer two.Close()
	told := 0
	disposal.SetAfter(one.Disposal, func(what string) error {
		if what != "begun" {
			return nil
		}
		return two.Disposal.Run(t.Context(), "", func(disposal.Told) { told++ })
	})
	b.must(one.Disposal.Run(t.Context(), "", func(to disposal.Told) {
		if told++; !to.Gone || to.Disposed == nil || to.Inventory == nil {
			t.Errorf("told %+v", to)
		}
	}))
	_, rec, err := one.Ledger.ReadTip(b.gone, "")
	b.must(err)
	if d := rec.Manifest.Disposed; told != 2 || d == nil || d.Inventory == nil || len(d.History) == 0 {
		t.Errorf("%d told; the tombstone says %+v", told, d)
	}
}

// A disposal that is ended after any of its durable steps, with all that only memory knew lost,
// is gone on with: no byte of the item is left, and no other item lost one.
func TestADisposalEndedAnywhereIsGoneOnWith(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	others := b.found("the bytes of drop 1")
	if len(others) < 6 || len(b.found("the bytes of drop 0")) != len(others) {
		t.Fatalf("there are %d and %d files with bytes", len(others), len(b.found("the bytes of drop 0")))
	}
	ended := 0
	for at := 0; ; at++ {
		e, n, some := b.open("ada"), 0, false
		disposal.SetAfter(e.Disposal, func(string) error {
			if n++; n > at {
				return errCrash
			}
			return nil
		})
		err := e.Disposal.Run(ctx, "", func(disposal.Told) { some = true })
		b.must(err)
		b.must(e.Close())
		if got := b.found("the bytes of drop 1"); len(got) != len(others) {
			t.Fatalf("ended after step %d: the other item has %d of %d files", at, len(got), len(others))
		}
		if !some { // it is done
			break
		}
		if ended++; ended > 100 {
			t.Fatal("it never ends")
		}
	}
	if ended < 5 {
		t.Errorf("it was ended %d times only", ended)
	}
	if left := b.found("the bytes of drop 0"); len(left) > 0 {
		t.Errorf("bytes are left: %v", left)
	}
	e := b.open("ada")
	defer e.Close()
	v, rec, err := e.Ledger.ReadTip(b.gone, "")
	b.must(err)
	d := rec.Manifest.Disposed
	if d == nil || d.Reason != "its time is over" || len(d.Voices) != 3 || d.Inventory == nil || d.Inventory.Files != 3 {
		t.Errorf("the tombstone says %+v", d)
	}
	for _, name := range []string{layout.InventoryJSON, layout.DepositsJSON} {
		if _, err := v.ReadFile(layout.ItemDir(b.gone) + "/" + name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := e.Fixity.Check(ctx, b.kept)
	b.must(err)
	if failed := r.Failed(); len(failed) > 0 {
		t.Errorf("the other item is damaged: %v", failed)
	}
	if err := e.Disposal.Run(context.WithoutCancel(ctx), "", func(to disposal.Told) { t.Errorf("told %+v", to) }); err != nil {
		t.Error(err)
	}
}
