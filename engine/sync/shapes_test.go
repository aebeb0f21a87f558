package sync_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/engine/sync"
	"bagpipe/layout"
)

// event commits an event of an item on another commit.
func (w *world) event(on gitstore.Hash, id layout.ItemID, workflow string, e state.Event) gitstore.Hash {
	w.Helper()
	v, err := w.e.Ledger.Store.At(on)
	if err != nil {
		w.Fatal(err)
	}
	rec, err := w.e.Ledger.Read(v, id, workflow)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := state.Apply(rec.Execution, rec.Plan, e); err != nil {
		w.Fatal(err)
	}
	rec.Execution.Recompute(w.e.Ledger.PlansAt(v))
	return w.commit(on, map[string][]byte{layout.ItemDir(id) + "/" + layout.ExecutionJSON: rec.Execution.Encode()})
}

// now is a second later with each commit.
func (w *world) now() time.Time { return w.clock.Add(time.Duration(w.n) * time.Second) }

// noted commits a note on an item on another commit, and gives its key.
func (w *world) noted(on gitstore.Hash, id layout.ItemID) (gitstore.Hash, layout.IntentKey) {
	w.Helper()
	at := w.now()
	key, err := layout.NewIntentKey(at, bytes.NewReader(fmt.Appendf(nil, "%32d", w.n)), "0123abcd")
	if err != nil {
		w.Fatal(err)
	}
	return w.event(on, id, "", state.Remark{Key: key, At: at, By: "Ada <ada@example.org>", Text: fmt.Sprint("reason ", w.n)}), key
}

// intents are those of an item at a commit.
func (w *world) intents(at gitstore.Hash, id layout.ItemID) map[layout.IntentKey]state.Intent {
	w.Helper()
	v, err := w.e.Ledger.Store.At(at)
	if err != nil {
		w.Fatal(err)
	}
	data, err := v.ReadFile(layout.ItemDir(id) + "/" + layout.ExecutionJSON)
	if err != nil {
		w.Fatal(err)
	}
	x, err := state.Decode(data)
	if err != nil {
		w.Fatal(err)
	}
	return x.Intents
}

// merged commits a tree of one commit with several parents, as a person does.
func (w *world) merged(tree gitstore.Hash, parents ...gitstore.Hash) gitstore.Hash {
	w.Helper()
	args := []string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit-tree", tree.String() + "^{tree}", "-m", "merged"}
	for _, p := range parents {
		args = append(args, "-p", p.String())
	}
	h, err := gitstore.ParseHash(w.git(nil, args...))
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// Two histories that merged each other crosswise have two commits from which both began.
func TestCrissCross(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	id := w.items[0]
	join := func(a, b gitstore.Hash) gitstore.Hash {
		t.Helper()
		base, err := w.e.Ledger.Store.Base(ctx, a, b)
		if err != nil {
			t.Fatal(err)
		}
		joined, err := w.e.Guard.Joiner.Commit(ctx, base, a, b)
		if err != nil {
			t.Fatal(err)
		}
		return joined
	}
	a1, k1 := w.noted(w.base, id)
	b1, k2 := w.noted(w.base, id)
	tree := join(a1, b1)
	a2, k3 := w.noted(w.merged(tree, a1, b1), id)
	b2, k4 := w.noted(w.merged(tree, b1, a1), id)
	if bases := w.git(nil, "merge-base", "--all", a2.String(), b2.String()); strings.Count(bases, "\n") != 1 {
		t.Fatalf("both began from %q, want two commits", bases)
	}
	joined := join(a2, b2)
	if again := join(b2, a2); again != joined {
		t.Errorf("joined as %s, and the other way round as %s", joined, again)
	}
	got := w.intents(joined, id)
	for _, k := range []layout.IntentKey{k1, k2, k3, k4} {
		if _, there := got[k]; !there {
			t.Errorf("the join lacks note %s", k)
		}
	}
	if len(got) != 4 {
		t.Errorf("the join has %d intents, want 4", len(got))
	}
}

// A merge of three that has the files of one alone is completed by those of the others.
func TestOctopus(t *testing.T) {
	w := newWorld(t)
	id := w.items[0]
	a, k1 := w.noted(w.base, id)
	b, k2 := w.noted(w.base, id)
	c, k3 := w.noted(w.base, id)
	got := w.intents(w.answered(w.merged(a, a, b, c)), id)
	for _, k := range []layout.IntentKey{k1, k2, k3} {
		if _, there := got[k]; !there {
			t.Errorf("the history lacks note %s", k)
		}
	}
	if len(got) != 3 {
		t.Errorf("there are %d intents, want the 3 notes", len(got))
	}
}

// What one side did to an item that both had touched before they parted is that side's, whichever
// parent a join names first, and a join of the join is no breach.
func TestAJoinOfAJoinIsLawful(t *testing.T) {
	w := newWorld(t)
	id, other := w.items[0], w.items[1]
	const run = "accession.1"
	attempt := layout.AttemptKey{N: 1, Engine: "0123abcd"}
	for range 8 { // parents stand in the order of their hashes
		trunk, _ := w.noted(w.base, id)
		w.by = "Bagpipe <bagpipe@host>"
		done := w.event(trunk, id, run, state.Claim{Workflow: run, Step: "unpack", Attempt: attempt, At: w.now(), Runner: "host:1"})
		done = w.event(done, id, run, state.End{Workflow: run, Step: "unpack", Attempt: attempt, State: state.Completed, At: w.now()})
		w.by = ""
		apart, _ := w.noted(trunk, other)
		later, _ := w.noted(trunk, id)
		tip := w.join(later, w.join(apart, done))
		if open := w.breaches(tip); len(open) > 0 {
			t.Errorf("open: %v", open)
		}
	}
}

// answered moves main to a commit and gives what the guard made of it.
func (w *world) answered(h gitstore.Hash) gitstore.Hash {
	w.Helper()
	ctx := context.Background()
	w.git(nil, "update-ref", "refs/heads/main", h.String())
	if err := w.e.Ledger.Store.Refresh(ctx); err != nil {
		w.Fatal(err)
	}
	if err := w.e.Guard.LookAtAll(ctx, func() bool { return false }); err != nil {
		w.Fatal(err)
	}
	v, err := w.e.Ledger.Store.Tip()
	if err != nil {
		w.Fatal(err)
	}
	return v.Commit()
}

// breaches are those of the history up to a commit that nothing answers.
func (w *world) breaches(tip gitstore.Hash) (open []string) {
	w.Helper()
	commits, err := gitstore.ParentsFirst(context.Background(), w.e.Root(), tip, w.base)
	if err != nil {
		w.Fatal(err)
	}
	told, _, err := w.e.Guard.Review(context.Background(), w.base, gitstore.Hash{}, commits)
	if err != nil {
		w.Fatal(err)
	}
	for _, b := range told {
		if b.Open {
			open = append(open, fmt.Sprintf("%s at %s: %v", b.Item, b.Commit.Hash, b.What))
		}
	}
	return open
}

// A revert that one side answered is answered, though the other side had it, too.
func TestWhatOneSideAnsweredIsAnswered(t *testing.T) {
	w := newWorld(t)
	id, other := w.items[0], w.items[1]
	path := layout.ItemDir(id) + "/" + layout.ExecutionJSON
	for range 6 { // parents stand in the order of their hashes
		before, err := w.e.Ledger.Store.At(w.base)
		if err != nil {
			t.Fatal(err)
		}
		was, err := before.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		key, err := layout.NewIntentKey(w.now(), bytes.NewReader(fmt.Appendf(nil, "%32d", w.n)), "0123abcd")
		if err != nil {
			t.Fatal(err)
		}
		held := w.event(w.base, id, "", state.Hold{Key: key, At: w.now(), By: "Ada <ada@example.org>", Text: "why"})
		reverted := w.commit(held, map[string][]byte{path: was})
		apart, _ := w.noted(reverted, other)
		answered := w.answered(reverted)
		if answered == reverted {
			t.Fatal("nothing answered the revert")
		}
		tip := w.join(answered, apart)
		if open := w.breaches(tip); len(open) > 0 {
			t.Errorf("open: %v", open)
		}
		w.base = w.answered(tip)
	}
}

// Who joins a history that removed an item's records, and that nobody had answered, answers the
// commit that did.
func TestAnAnswerNamesWhatRemovedTheItem(t *testing.T) {
	w := newWorld(t)
	id, other := w.items[0], w.items[1]
	dir := layout.ItemDir(id)
	gone := w.commit(w.base, map[string][]byte{dir + "/" + layout.ExecutionJSON: nil, dir + "/" + layout.ManifestJSON: nil})
	apart, _ := w.noted(w.base, other)
	tip := w.answered(w.join(gone, apart))
	if body := w.git(nil, "log", "-1", "--format=%B", tip.String()); !strings.Contains(body, "Bagpipe-Answers: "+gone.String()) {
		t.Errorf("the answer does not name %s:\n%s", gone, body)
	}
	if open := w.breaches(tip); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
}

// A site whose clock is a year ahead, or behind, loses nothing by a join: a release ends the hold that it
// names, whichever of the two is later by its own clock, and the join is dated as the later parent.
func TestClocksAYearApart(t *testing.T) {
	w := newWorld(t)
	id, here := w.items[0], w.clock
	key := func() layout.IntentKey {
		k, err := layout.NewIntentKey(w.now(), bytes.NewReader(fmt.Appendf(nil, "%32d", w.n)), "0123abcd")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	w.clock = here.AddDate(1, 0, 0)
	held := w.event(w.base, id, "", state.Hold{Key: key(), At: w.now(), By: "Ada <ada@example.org>", Text: "why"})
	w.clock = here.AddDate(-1, 0, 0)
	released := w.event(held, id, "", state.Release{Key: func() (layout.IntentKey, error) { return key(), nil }, At: w.now(), By: "Ada <ada@example.org>", Text: "because"})
	behind, noted := w.noted(w.base, id)
	w.clock = here
	ahead, later := w.noted(held, id)
	tip := w.join(w.join(released, behind), ahead)
	got := w.intents(tip, id)
	for _, k := range []layout.IntentKey{noted, later} {
		if _, there := got[k]; !there {
			t.Errorf("the join lacks note %s", k)
		}
	}
	if len(got) != 4 {
		t.Errorf("there are %d intents, want a hold, a release and two notes", len(got))
	}
	if open := w.breaches(tip); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
	if is, want := w.git(nil, "log", "-1", "--format=%ct", tip.String()), w.git(nil, "log", "-1", "--format=%ct", ahead.String()); is != want {
		t.Errorf("the join is dated %s, want %s", is, want)
	}
	v, err := w.e.Ledger.Store.At(tip)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := w.e.Ledger.Read(v, id, "accession.1")
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Execution.Holds()) > 0 {
		t.Error("the item is held though its hold was released")
	}
}

// Branches that stay, however many, keep none behind them from being joined; make soak has 100,000.
func TestOffersBehindMany(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	alien := w.git(nil, "-c", "user.name=Eve", "-c", "user.email=eve@example.org", "commit-tree", w.base.String()+"^{tree}", "-m", "unrelated")
	var in bytes.Buffer
	many, atOnce := 12, 5
	if os.Getenv("BAGPIPE_SOAK") != "" {
		many, atOnce = 100_000, 1000
	}
	for i := range many {
		fmt.Fprintf(&in, "create refs/heads/for/a%06d %s\n", i, alien)
	}
	good, key := w.noted(w.base, w.items[0])
	fmt.Fprintf(&in, "create refs/heads/for/z %s\n", good)
	w.git(in.Bytes(), "update-ref", "--stdin")
	s := sync.New(w.e.Ledger, w.e.Guard)
	s.AtOnce(atOnce)
	looked := 0
	for range many/atOnce + 2 {
		some, err := s.TakeOffers(ctx, false)
		if err != nil {
			t.Fatal(err)
		}
		looked += len(some)
	}
	if looked != many+1 {
		t.Errorf("%d branches were looked at, want each of %d once", looked, many+1)
	}
	v, err := w.e.Ledger.Store.Tip()
	if err != nil {
		t.Fatal(err)
	}
	if _, there := w.intents(v.Commit(), w.items[0])[key]; !there {
		t.Error("the branch behind those that stay was not joined")
	}
}
