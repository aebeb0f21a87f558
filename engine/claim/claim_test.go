package claim

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/layout"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv("BAGPIPE_CLAIM_CHILD"); mode != "" {
		child(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

func newID(t testing.TB) layout.EngineID {
	t.Helper()
	id, err := layout.NewEngineID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func thisHost(t testing.TB) Host {
	t.Helper()
	h, err := ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func register(t testing.TB, root string) *Engine {
	t.Helper()
	return registerAs(t, root, thisHost(t), time.Now)
}

func registerAs(t testing.TB, root string, h Host, now func() time.Time) *Engine {
	t.Helper()
	e, err := Register(root, newID(t), h, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// keyOf gives the n-th key of a fixed series of well-formed ones.
func keyOf(n int) Key {
	seed := bytes.NewReader([]byte{1, 2, 3, 4, 5, byte(n >> 8), byte(n)})
	id, err := layout.NewItemID(seed)
	if err != nil {
		panic(err)
	}
	return Key{Item: id, Workflow: "accession.1", Step: "unpack"}
}

func attempt(e *Engine) layout.AttemptKey { return layout.AttemptKey{N: 1, Engine: e.ID()} }

func mustTake(t testing.TB, e *Engine, n int) *Claim {
	t.Helper()
	c, err := e.Take(keyOf(n), attempt(e))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantHeld checks that e cannot take key n because by holds it.
func wantHeld(t testing.TB, e *Engine, n int, by layout.EngineID) {
	t.Helper()
	_, err := e.Take(keyOf(n), attempt(e))
	var held *HeldError
	if !errors.As(err, &held) || held.Holder.Engine != by {
		t.Fatalf("Take: %v, want it held by %s", err, by)
	}
}

func wantAlive(t testing.TB, o interface {
	Alive(layout.EngineID) (bool, error)
}, id layout.EngineID, want bool) {
	t.Helper()
	if alive, err := o.Alive(id); err != nil || alive != want {
		t.Fatalf("Alive(%s) = %v, %v; want %v", id, alive, err, want)
	}
}

func TestTakeAndRelease(t *testing.T) {
	root := t.TempDir()
	a, b := register(t, root), register(t, root)
	c := mustTake(t, a, 1)
	wantHeld(t, b, 1, a.ID())
	wantHeld(t, a, 1, a.ID())

	list, err := List(root)
	if err != nil || len(list) != 1 {
		t.Fatalf("List = %v, %v", list, err)
	}
	h, want := list[0], thisHost(t)
	if h.Item != keyOf(1).Item || h.Workflow != "accession.1" || h.Step != "unpack" || h.Engine != a.ID() ||
		h.PID != want.PID || h.Host != want.Name || h.BootID != want.BootID || h.Attempt != "1-"+string(a.ID()) {
		t.Errorf("List = %+v", h)
	}

	for range 2 {
		if err := c.Release(); err != nil {
			t.Fatal(err)
		}
	}
	again := mustTake(t, b, 1)
	if err := c.Release(); err != nil { // the first claim is over and may not end the second
		t.Fatal(err)
	}
	wantHeld(t, a, 1, b.ID())
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
	if list, err := List(root); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v; want none", list, err)
	}
}

func TestTakeRefusesWhatIsNoClaim(t *testing.T) {
	e := register(t, t.TempDir())
	good := keyOf(1)
	for name, c := range map[string]struct {
		key Key
		att layout.AttemptKey
	}{
		"item":            {Key{Item: "../../etc", Workflow: "a.1", Step: "s"}, attempt(e)},
		"workflow":        {Key{Item: good.Item, Workflow: "a/b.1", Step: "s"}, attempt(e)},
		"no number":       {Key{Item: good.Item, Workflow: "accession", Step: "s"}, attempt(e)},
		"step":            {Key{Item: good.Item, Workflow: "a.1", Step: "a/b"}, attempt(e)},
		"foreign attempt": {good, layout.AttemptKey{N: 1, Engine: "00000000"}},
		"no attempt":      {good, layout.AttemptKey{}},
	} {
		if _, err := e.Take(c.key, c.att); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestCloseReleasesEverything(t *testing.T) {
	root := t.TempDir()
	a, b := register(t, root), register(t, root)
	for n := range 5 {
		mustTake(t, a, n)
	}
	wantAlive(t, b, a.ID(), true)
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantAlive(t, b, a.ID(), false)
	if _, err := os.Stat(enginePath(root, a.ID())); !os.IsNotExist(err) {
		t.Errorf("the engine's file is still there: %v", err)
	}
	if list, err := List(root); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v; want none", list, err)
	}
	if _, err := a.Take(keyOf(1), attempt(a)); !errors.Is(err, ErrClosed) {
		t.Errorf("Take after Close: %v", err)
	}
	if err := a.Beat(); !errors.Is(err, ErrClosed) {
		t.Errorf("Beat after Close: %v", err)
	}
}

func TestRegisterTwice(t *testing.T) {
	root := t.TempDir()
	e := register(t, root)
	if _, err := Register(root, e.ID(), thisHost(t), time.Now); err == nil {
		t.Fatal("a living engine's identifier was given away")
	}
	wantAlive(t, e, e.ID(), true)
}

// .bagpipe may be deleted between runs; done during one, the engine learns it.
func TestStateFolderDeleted(t *testing.T) {
	root := t.TempDir()
	e := register(t, root)
	c := mustTake(t, e, 1)
	if err := e.Beat(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, layout.StateDir)); err != nil {
		t.Fatal(err)
	}
	if err := e.Beat(); !errors.Is(err, ErrLost) {
		t.Fatalf("Beat = %v, want ErrLost", err)
	}
	select {
	case <-c.Lost():
	default:
		t.Error("the claim does not know that it is lost")
	}
	if _, err := e.Take(keyOf(2), attempt(e)); !errors.Is(err, ErrLost) {
		t.Errorf("Take = %v, want ErrLost", err)
	}
	next := register(t, root)
	mustTake(t, next, 1)
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, next, 1, next.ID()) // the lost claim's release did not end it
}

func TestContendedTakesOfDamagedAndFreeSteps(t *testing.T) {
	root := t.TempDir()
	const engines, keys = 4, 300
	es := make([]*Engine, engines)
	for i := range es {
		es[i] = register(t, root)
	}
	old := time.Now().Add(-time.Hour)
	for n := 0; n < keys; n += 3 { // every third is a power cut's empty file
		path := filepath.Join(root, layout.ClaimsDir, keyOf(n).file())
		if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	var won [keys]atomic.Int32
	var wg sync.WaitGroup
	for _, e := range es {
		wg.Go(func() {
			for n := range keys {
				_, err := e.Take(keyOf(n), attempt(e))
				var held *HeldError
				switch {
				case err == nil:
					won[n].Add(1)
				case !errors.As(err, &held):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for n := range won {
		if got := won[n].Load(); got != 1 {
			t.Errorf("key %d has %d winners", n, got)
		}
	}
	for _, e := range es {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantNoTemps(t, root)
}

// TestLockFilesAreUsedAgain: an engine that takes and releases makes no new file
// for each claim, and what stands in one is always its own claim's.
func TestLockFilesAreUsedAgain(t *testing.T) {
	root := t.TempDir()
	e := register(t, root)
	long := Key{Item: keyOf(0).Item, Workflow: "a-long-name-of-a-workflow.1", Step: "with-a-long-name-of-a-step"}
	for n := range 50 {
		first, err := e.Take(long, attempt(e))
		if err != nil {
			t.Fatal(err)
		}
		c := mustTake(t, e, n)
		list, err := List(root)
		if err != nil || len(list) != 2 {
			t.Fatalf("%d claims are listed, %v", len(list), err)
		}
		wantHeld(t, e, n, e.ID())
		for _, c := range []*Claim{c, first} {
			if err := c.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, layout.ClaimsDir))
	if err != nil || len(entries) > 3 {
		t.Errorf("%d files are kept, %v", len(entries), err)
	}
	if list, err := List(root); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v; want none", list, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	wantNoTemps(t, root)
}

// wantNoTemps checks that no temporary file was left behind.
func wantNoTemps(t testing.TB, root string) {
	t.Helper()
	for _, dir := range []string{layout.ClaimsDir, layout.EnginesDir} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".tmp") {
				t.Errorf("left behind: %s", e.Name())
			}
		}
	}
}

func TestHeldErrorNamesTheHolder(t *testing.T) {
	err := &HeldError{Key: keyOf(1), Holder: Holder{Engine: "5c1e9a70", Host: "reading-room", PID: 42}}
	for _, want := range []string{"5c1e9a70", "reading-room:42", "unpack", string(keyOf(1).Item)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

func BenchmarkTakeRelease(b *testing.B) {
	e := register(b, b.TempDir())
	for n := 0; b.Loop(); n++ {
		c, err := e.Take(keyOf(n%60000), attempt(e))
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Release(); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleKey_String() {
	fmt.Println(Key{Item: "3fa9c0d2e1b7a45", Workflow: "accession.1", Step: "unpack"})
	// Output: step unpack of accession.1, item 3fa9c0d2e1b7a45
}

// The floor: create a file with O_EXCL, write the same bytes, remove it.
func BenchmarkFloor(b *testing.B) {
	dir := b.TempDir()
	data := encode(Holder{Host: "host", BootID: strings.Repeat("x", 36), Engine: "5c1e9a70"})
	for n := 0; b.Loop(); n++ {
		path := filepath.Join(dir, keyOf(n%60000).file())
		if err := createByOpen(path, data); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
	}
}

func TestEncodeHolder(t *testing.T) {
	at := time.Date(2026, 11, 24, 3, 4, 5, 600, time.UTC)
	for _, h := range []Holder{
		{},
		{Attempt: "1-5c1e9a70", BootID: "b", Engine: "5c1e9a70", Host: "host", Item: keyOf(1).Item, PID: 7, Schema: 1, Since: at, Step: "unpack", Workflow: "accession.1"},
		{Host: "ein \"Name\" \\ <mit> Zeichen \x01 \u00fc \xff \u2028", Since: at.Truncate(time.Second)},
	} {
		if got, want := encodeHolder(h), encode(h); !bytes.Equal(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
