package fixity_test

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/fixity"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
	"bagpipe/testdata/sample"
)

// bench is a workspace with items that are on the store, a vault and a tape, and a clock that the test moves.
type bench struct {
	*testing.T
	e     *engine.Engine
	dir   string
	clock *sample.Clock
	item  []layout.ItemID
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func newBench(t *testing.T, items int) *bench {
	t.Helper()
	b := &bench{T: t, dir: sample.TempDir(t), clock: sample.NewClock(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))}
	root := filepath.Join(b.dir, "ws")
	o := engine.Options{Now: b.clock.Now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(), Host: claim.Host{Name: "test", PID: os.Getpid()},
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}}
	b.must(engine.Init(t.Context(), root, o))
	b.must(os.WriteFile(filepath.Join(root, "bagpipe.yaml"), []byte("schema: 1\ntargets:\n  vault: {kind: folder, path: ../vault}\n  tape: {kind: folder, path: ../tape}\n"+
		"defaults: {workflow: accession, targets: [store, vault, tape]}\n"), 0o666))
	var err error
	b.e, err = engine.Open(t.Context(), root, o)
	b.must(err)
	t.Cleanup(func() { b.must(b.e.Close()) })
	var paths []string
	for n := range items {
		path := filepath.Join(b.dir, "in", fmt.Sprintf("drop-%02d", n))
		b.must(os.MkdirAll(path, 0o777))
		b.must(os.WriteFile(filepath.Join(path, "file"), fmt.Appendf(nil, "the bytes of drop %d", n), 0o666))
		paths = append(paths, path)
	}
	b.must(b.e.Intake.AddAll(t.Context(), paths, intake.AddOptions{}, func(a intake.Admitted, err error) {
		b.must(err)
		b.item = append(b.item, a.Item)
	}))
	_, err = b.e.Run(t.Context(), engine.RunOptions{Parallel: 2})
	b.must(err)
	return b
}

// A process that gets a copy into scratch is known to live: another would remove the scratch of a dead one.
func TestWhoGetsACopyIsKnownToLive(t *testing.T) {
	b := newBench(t, 1)
	b.must(b.e.Close())
	root := filepath.Join(b.dir, "ws")
	e, err := engine.Open(t.Context(), root, engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(2)), Robots: steps.Builtins(), Host: claim.Host{Name: "test", PID: os.Getpid()}})
	b.must(err)
	b.e = e
	b.must(e.Index.Load(t.Context()))
	for _, copies := range []string{filepath.Join(b.dir, "vault/?"), filepath.Join(root, "store/?")} {
		lost, err := filepath.Glob(copies)
		if b.must(err); len(lost) != 1 {
			t.Fatal(lost)
		}
		b.must(disk.RemoveTree(lost[0]))
	}
	_, err = e.Fixity.Run(t.Context(), fixity.Which{Mend: true}, func(fixity.Result) {})
	b.must(err)
	if _, err := os.Stat(filepath.Join(root, ".bagpipe/engines", string(e.Ledger.ID))); err != nil {
		t.Error(err)
	}
}

// sweep gives what a sweep found, by item, some time later.
func (b *bench) sweep(later time.Duration, what fixity.Sweep) (fixity.Swept, map[layout.ItemID]fixity.Result, error) {
	b.Helper()
	b.clock.Move(later)
	found := map[layout.ItemID]fixity.Result{}
	s, err := b.e.Fixity.Sweep(b.Context(), what, func(r fixity.Result) { found[r.Item] = r })
	return s, found, err
}

// file is that of an item's copy on a target.
func (b *bench) file(at string, n int) string {
	b.Helper()
	found, err := filepath.Glob(filepath.Join(b.dir, at, "?/?/?/?", string(b.item[n]), "data", "*"))
	if err != nil || len(found) != 1 {
		b.Fatalf("%v %v", found, err)
	}
	b.must(os.Chmod(filepath.Dir(found[0]), 0o777))
	b.must(os.Chmod(found[0], 0o666))
	return found[0]
}

func (b *bench) flip(at string, n int) {
	b.Helper()
	data, err := os.ReadFile(b.file(at, n))
	b.must(err)
	data[len(data)-1] ^= 1
	b.must(os.WriteFile(b.file(at, n), data, 0o666))
}

// What was looked at in one place was not looked at in another: a sweep of the tape begins with what was
// unseen longest there, whatever was seen in the vault; and where the tape was away nothing was seen.
func TestASweepGoesByItsOwnCopies(t *testing.T) {
	b := newBench(t, 4)
	tape, vault := fixity.Sweep{Of: fixity.OfTargets, At: []layout.Name{"tape"}}, fixity.Sweep{Of: fixity.OfTargets, At: []layout.Name{"vault"}}
	tape.Sample, vault.Sample = 0.5, 0.5
	_, first, err := b.sweep(time.Hour, tape)
	b.must(err)
	if len(first) != 2 {
		t.Fatalf("%d items of half of four", len(first))
	}
	for range 3 { // all of the vault, and those last that the tape was not asked for
		if _, _, err := b.sweep(time.Hour, vault); err != nil {
			t.Fatal(err)
		}
	}
	aside := filepath.Join(b.dir, "away")
	b.must(os.Rename(filepath.Join(b.dir, "tape"), aside))
	s, _, err := b.sweep(time.Hour, tape)
	if err != nil || s.Away["tape"] != 2 {
		t.Errorf("a tape that is away: %+v, %v", s, err)
	}
	b.must(os.Rename(aside, filepath.Join(b.dir, "tape")))
	_, second, err := b.sweep(time.Hour, tape)
	b.must(err)
	for id := range second {
		if _, twice := first[id]; twice {
			t.Errorf("item %s of the tape is looked at twice, and others are not", id)
		}
	}
	all := fixity.Sweep{Sample: 0.5}
	_, third, err := b.sweep(time.Hour, all)
	b.must(err)
	_, fourth, err := b.sweep(time.Hour, all)
	b.must(err)
	if got := slices.Sorted(maps.Keys(third)); slices.ContainsFunc(got, func(id layout.ItemID) bool { _, twice := fourth[id]; return twice }) {
		t.Errorf("%v, and then %v", got, slices.Sorted(maps.Keys(fourth)))
	}
}

// Within every: each item comes, those unchecked longest first, by so many a day.
func TestWithinItsTimeASweepComesToAll(t *testing.T) {
	b := newBench(t, 6)
	seen := map[layout.ItemID]int{}
	for range 3 {
		_, found, err := b.sweep(24*time.Hour, fixity.Sweep{Every: 3 * 24 * time.Hour})
		b.must(err)
		if len(found) != 2 {
			t.Errorf("%d items of 6 in a day of three", len(found))
		}
		for id := range found {
			seen[id]++
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d of 6 were looked at", len(seen))
	}
}

// Each outcome is told for what it is, and what is wrong is on the item's record.
func TestOutcomesOfASweep(t *testing.T) {
	b := newBench(t, 3)
	b.flip("vault", 0)
	b.must(disk.RemoveTree(filepath.Dir(filepath.Dir(b.file("tape", 1)))))
	s, found, err := b.sweep(time.Hour, fixity.Sweep{})
	b.must(err)
	if s.OK != 1 || s.Changed != 1 || s.Missing != 1 || s.Healed != 0 {
		t.Errorf("%+v", s)
	}
	for n, want := range []string{fixity.HowChanged, fixity.HowMissing, ""} {
		copies := found[b.item[n]].Copies
		how := ""
		for _, name := range found[b.item[n]].Failed() {
			how = copies[name].How
		}
		_, rec, err := b.e.Ledger.ReadTip(b.item[n], "")
		b.must(err)
		if how != want || len(rec.Execution.Holds()) > 0 != (want != "") {
			t.Errorf("item %d is %q, held %v", n, how, rec.Execution.Holds())
		}
	}
}

// Copies of many items that are healed are no less the sign of a disk at fault.
func TestAHealingSweepStopsAtADiskAtFault(t *testing.T) {
	b := newBench(t, 14)
	for n := range 14 {
		b.flip("vault", n)
	}
	s, _, err := b.sweep(time.Hour, fixity.Sweep{Heal: true, Parallel: 1})
	if err != nil || s.Healed != 10 || !strings.Contains(s.Stopped, "a disk may be at fault") {
		t.Errorf("%+v, %v", s, err)
	}
}

// What healing reads and writes counts for the rate: the sound copy is read, the bad one written anew and read back.
func TestHealingIsPaced(t *testing.T) {
	b := newBench(t, 1)
	plain, _, err := b.sweep(time.Hour, fixity.Sweep{})
	b.must(err)
	b.flip("vault", 0)
	healed, _, err := b.sweep(time.Hour, fixity.Sweep{Heal: true})
	b.must(err)
	payload, err := os.Stat(b.file("vault", 0))
	b.must(err)
	if more := healed.Bytes - plain.Bytes; healed.Healed != 1 || plain.Bytes == 0 || more < 3*payload.Size() {
		t.Errorf("%d bytes were read where all was sound, %d more where a file of %d was healed", plain.Bytes, more, payload.Size())
	}
}

// What cannot be healed is damaged all the same: counted, on record, held, and it is told why.
func TestWhatCannotBeHealedIsOnRecord(t *testing.T) {
	b := newBench(t, 2)
	b.flip("vault", 0)
	folder := filepath.Dir(filepath.Dir(b.file("vault", 0)))
	b.must(os.WriteFile(filepath.Join(filepath.Dir(folder), "."+filepath.Base(folder)+".damaged"), []byte("in the way"), 0o666))
	s, found, err := b.sweep(time.Hour, fixity.Sweep{Heal: true})
	why := fmt.Sprint(err, found[b.item[0]].Copies["vault"].Message)
	if s.Changed != 1 || s.OK != 1 || !strings.Contains(why, "mend") {
		t.Errorf("%+v: %s", s, why)
	}
	_, rec, err := b.e.Ledger.ReadTip(b.item[0], "")
	b.must(err)
	if len(rec.Execution.Holds()) != 1 {
		t.Errorf("the item is not held: its copy in %s is damaged", folder)
	}
}

// What a sweep of more than a page of items found stands in pages, each a commit, and in one record of all of them; no
// item's own record is touched.
func TestASweepIsRecordedInPages(t *testing.T) {
	const items = 1005
	b := newBench(t, 0)
	var paths []string
	dir := t.TempDir()
	for n := range items {
		paths = append(paths, filepath.Join(dir, fmt.Sprint(n)))
		b.must(os.WriteFile(paths[n], fmt.Append(nil, n), 0o666))
	}
	b.must(b.e.Intake.AddAll(t.Context(), paths, intake.AddOptions{}, func(_ intake.Admitted, err error) { b.must(err) }))
	before, err := b.e.Ledger.Store.Tip()
	b.must(err)
	s, found, err := b.sweep(time.Hour, fixity.Sweep{})
	b.must(err)
	if s.OK != items || s.Pages != 2 || len(found) != items {
		t.Errorf("%+v of %d", s, len(found))
	}
	after, err := b.e.Ledger.Store.Tip()
	b.must(err)
	var subjects []string
	for c, err := range b.e.Ledger.Store.History(t.Context(), gitstore.HistoryOptions{From: after.Commit()}) {
		b.must(err)
		if c.Hash == before.Commit() {
			break
		}
		subjects = append(subjects, c.Subject)
	}
	if want := []string{"fixity: items 1005 items, 0 damaged, 0 healed", "fixity: page 2, 5 items", "fixity: page 1, 1000 items"}; !slices.Equal(subjects, want) {
		t.Errorf("%q, want %q", subjects, want)
	}
	was, err := before.TreeOf(layout.ItemsDir)
	b.must(err)
	if is, err := after.TreeOf(layout.ItemsDir); err != nil || is != was {
		t.Errorf("records of items changed: %v", err)
	}
}
