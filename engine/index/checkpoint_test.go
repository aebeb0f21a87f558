package index_test

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/attempt"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/intake"
	"bagpipe/layout"
	"bagpipe/steps"
)

// beside opens engines on one new workspace.
func beside(t *testing.T) (open func() *engine.Engine, add func(e *engine.Engine, name string)) {
	root, drops := filepath.Join(t.TempDir(), "w"), t.TempDir()
	options := func(seed int64) engine.Options {
		return engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(seed)), Robots: steps.Builtins(),
			Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
	}
	ctx := context.Background()
	must(t, engine.Init(ctx, root, options(1)))
	seed := int64(1)
	open = func() *engine.Engine {
		seed++
		e, err := engine.Open(ctx, root, options(seed))
		must(t, err)
		t.Cleanup(func() { must(t, e.Close()) })
		return e
	}
	add = func(e *engine.Engine, name string) {
		drop := filepath.Join(drops, name)
		must(t, os.WriteFile(drop, []byte(name), 0o644))
		_, err := e.Intake.Add(ctx, drop, intake.AddOptions{})
		must(t, err)
	}
	return open, add
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A checkpoint that is asked for in the middle of a large push is not one of the
// commit that the push leads to.
func TestNoCheckpointOfAPartOfAMove(t *testing.T) {
	ctx := context.Background()
	open, add := beside(t)
	e, other := open(), open()
	must(t, e.Index.Load(ctx))
	for _, name := range []string{"a", "b", "c"} {
		add(other, name)
	}
	from, err := e.Ledger.Store.Known()
	must(t, err)
	to, err := other.Ledger.Store.Known()
	must(t, err)
	var changes []gitstore.FileChange
	must(t, e.Ledger.Store.Diff(ctx, from.Commit(), to.Commit(), func(c gitstore.FileChange) error {
		c.Foreign = true
		changes = append(changes, c)
		return nil
	}))
	e.Index.NoteItems(gitstore.Advance{From: from.Commit(), To: to.Commit(), Changes: changes[:2], More: true})
	must(t, e.Index.SaveIndex())
	verified(t, open())

	e.Index.NoteItems(gitstore.Advance{From: from.Commit(), To: to.Commit(), Changes: changes[2:]})
	must(t, e.Index.SaveIndex())
	last := open()
	verified(t, last)
	if last.Index.LoadedFrom() != to.Tree() {
		t.Errorf("begun with the checkpoint of %s, not %s", last.Index.LoadedFrom(), to.Tree())
	}
}

func verified(t *testing.T, e *engine.Engine) {
	t.Helper()
	ctx := context.Background()
	must(t, e.Index.Load(ctx))
	v, err := e.Index.VerifyIndex(ctx)
	must(t, err)
	if len(v.Differences) > 0 {
		t.Errorf("an engine started then holds otherwise: %q", v.Differences)
	}
}

// A checkpoint that is asked for while the index takes in a commit is of that commit,
// not of the one before with a part of what came: where that was reverted, nothing
// would read the items again.
func TestACheckpointIsOfOneTree(t *testing.T) {
	ctx := context.Background()
	open, add := beside(t)
	e := open()
	add(e, "a")
	must(t, e.Index.Load(ctx))
	entry, ok, _ := e.Index.Loaded().Take(time.Now(), nil)
	if !ok {
		t.Fatal("nothing is ready")
	}
	w := e.Attempt.NewWork(entry, func() bool { return true }, func(*attempt.Work) {})
	step := w.ForPool(ctx)
	if !step.Claim() {
		t.Fatal(w.Err)
	}
	step.Run(ctx, nil)
	saved := make(chan error, 1)
	e.Index.TellEnded(func(index.Ended) { // the index has the item's new record, and the next is not noted yet
		go func() { saved <- e.Index.SaveIndex() }()
		time.Sleep(50 * time.Millisecond)
	})
	step.Finish()
	must(t, w.Err)
	must(t, <-saved)
	tip, err := e.Ledger.Store.Known()
	must(t, err)
	later := open()
	verified(t, later)
	if later.Index.LoadedFrom() != tip.Tree() {
		t.Errorf("the checkpoint is of %s, the tip's tree is %s", later.Index.LoadedFrom(), tip.Tree())
	}
}

// A checkpoint spares reading what is as it was: with the records gone from the
// repository's packs but for those that changed, the index is there all the same.
func TestACheckpointIsRead(t *testing.T) {
	ctx := context.Background()
	open, add := beside(t)
	first := open()
	add(first, "a")
	must(t, first.Index.Load(ctx))
	must(t, first.Index.SaveIndex())
	before := checkpoints(t, first)
	other := open()
	must(t, other.Index.Load(ctx))
	rows, err := other.Ask.Items(ask.Filter{}, ask.Page{})
	must(t, err)
	must(t, other.Act.Hold(ctx, rows[0].Item, "so"))
	e := open()
	must(t, e.Index.Load(ctx))
	if from := e.Index.LoadedFrom(); from == (gitstore.Hash{}) || len(before) != 1 || filepath.Base(before[0]) != from.String()+".checkpoint" {
		t.Errorf("loaded from %s, not %s", from, before)
	}
	rows, err = e.Ask.Items(ask.Filter{Held: true}, ask.Page{})
	must(t, err)
	if len(rows) != 1 {
		t.Errorf("%d held", len(rows))
	}
	must(t, e.Index.SaveIndex())
	if after := checkpoints(t, e); len(after) != 1 || after[0] == before[0] {
		t.Errorf("%q", after)
	}
}

func checkpoints(t *testing.T, e *engine.Engine) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(e.Root(), layout.IndexDir, "*"))
	must(t, err)
	return names
}
