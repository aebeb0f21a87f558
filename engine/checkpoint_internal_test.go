package engine

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/intake"
	"bagpipe/steps"
)

// beside opens engines on one new workspace.
func beside(t *testing.T) (open func() *Engine, add func(e *Engine, name string)) {
	root, drops := filepath.Join(t.TempDir(), "w"), t.TempDir()
	options := func(seed int64) Options {
		return Options{Now: time.Now, Random: rand.New(rand.NewSource(seed)), Robots: steps.Builtins(),
			Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
	}
	ctx := context.Background()
	must(t, Init(ctx, root, options(1)))
	seed := int64(1)
	open = func() *Engine {
		seed++
		e, err := Open(ctx, root, options(seed))
		must(t, err)
		t.Cleanup(func() { must(t, e.Close()) })
		return e
	}
	add = func(e *Engine, name string) {
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
	e.Ledger.advanced(gitstore.Advance{From: from.Commit(), To: to.Commit(), Changes: changes[:2], More: true})
	must(t, e.Index.SaveIndex())
	verified(t, open())

	e.Ledger.advanced(gitstore.Advance{From: from.Commit(), To: to.Commit(), Changes: changes[2:]})
	must(t, e.Index.SaveIndex())
	last := open()
	verified(t, last)
	if last.LoadedFrom() != to.Tree() {
		t.Errorf("begun with the checkpoint of %s, not %s", last.LoadedFrom(), to.Tree())
	}
}

func verified(t *testing.T, e *Engine) {
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
	w := &attempt.Work{e: e, ctx: ctx, Entry: entry, done: func(*attempt.Work) {}}
	if !w.claim(ctx) {
		t.Fatal(w.Err)
	}
	w.plan, w.ran, w.started = w.planStep(), true, e.Ledger.Now()
	saved := make(chan error, 1)
	e.Index.TellEnded(func(index.Ended) { // the index has the item's new record, and the next is not noted yet
		go func() { saved <- e.Index.SaveIndex() }()
		time.Sleep(50 * time.Millisecond)
	})
	w.finish()
	must(t, w.Err)
	must(t, <-saved)
	tip, err := e.Ledger.Store.Known()
	must(t, err)
	later := open()
	verified(t, later)
	if later.LoadedFrom() != tip.Tree() {
		t.Errorf("the checkpoint is of %s, the tip's tree is %s", later.LoadedFrom(), tip.Tree())
	}
}
