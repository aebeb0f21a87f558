package search_test

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/query"
	"bagpipe/engine/search"
	"bagpipe/layout"
)

// TestSearchAnswersBeforeChangesAreTakenIn: the search that finds the young part crowded answers from it; then it is
// taken into the others, of which none names a document of it, and the answers stay.
func TestSearchAnswersBeforeChangesAreTakenIn(t *testing.T) {
	l := newLibrary(t, 1, 400)
	l.large = true
	young := func() (docs, replaced int) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(l.root, layout.SearchDir, "index.db")+"?vfs=bagpipe")
		l.must(err)
		l.must(db.QueryRow("SELECT next, (SELECT count(*) FROM replaced) FROM part ORDER BY part DESC LIMIT 1").Scan(&docs, &replaced))
		l.must(db.Close())
		return docs, replaced
	}
	l.do(false, func(e *engine.Engine) {
		l.commit(e, l.items[20:], false)
		l.find(e, query.Query{}, 0)
		l.commit(e, l.items[:60], false)
		l.commit(e, l.items[60:70], true)
		l.find(e, query.Query{}, 0)
	})
	if docs, replaced := young(); docs < 50 || replaced == 0 {
		t.Fatalf("the young part has %d documents in place of those of %d parts", docs, replaced)
	}
	l.do(false, func(e *engine.Engine) {
		l.commit(e, l.items[70:110], false)
		shown := false
		l.must(e.Search.Find(t.Context(), query.Query{}, 0, func(search.Hit) bool {
			if !shown {
				if docs, _ := young(); docs < 80 {
					t.Errorf("while the first item is shown, the young part has %d documents", docs)
				}
			}
			shown = true
			return true
		}))
	}) // which ends what goes on behind the search
	if docs, replaced := young(); docs != 0 || replaced != 0 {
		t.Errorf("the young part still has %d documents in place of those of %d parts", docs, replaced)
	}
	if testing.Short() {
		l.same(10)
	} else {
		l.same(40)
	}
	if l.built != 0 {
		t.Errorf("the index was built %d times", l.built)
	}
}

// TestIndexKilledWhileItIsKeptCurrent: a process that is killed at any instant of an update, or of a taking-in, leaves an index that
// answers as the records do.
func TestIndexKilledWhileItIsKeptCurrent(t *testing.T) {
	const where = "BAGPIPE_TEST_KILLED_INDEX"
	l := &library{TB: t, Rand: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)), root: os.Getenv(where), large: true}
	change := func(n int) {
		l.do(false, func(e *engine.Engine) {
			l.commit(e, l.items[:n], false)
			l.find(e, query.Query{}, 3)
		})
	}
	if l.root != "" { // the process that is killed
		files, err := filepath.Glob(filepath.Join(l.root, layout.ItemsDir, "*", "*", "*", "*", "*"))
		l.must(err)
		for _, file := range files {
			l.items = append(l.items, layout.ItemID(filepath.Base(file)))
		}
		if len(l.items) < 100 {
			t.Fatalf("%d items lie in their folders", len(l.items))
		}
		for {
			l.Shuffle(len(l.items), func(i, j int) { l.items[i], l.items[j] = l.items[j], l.items[i] })
			change(len(l.items) / 4)
		}
	}
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	l.root = filepath.Join(t.TempDir(), "ws")
	l.must(engine.Init(context.Background(), l.root, l.options(false)))
	for range 200 {
		id, err := layout.NewItemID(crand.Reader)
		l.must(err)
		l.items = append(l.items, id)
	}
	change(len(l.items))
	for range rounds {
		child := exec.Command(os.Args[0], "-test.run=^TestIndexKilledWhileItIsKeptCurrent$")
		child.Env = append(os.Environ(), where+"="+l.root)
		l.must(child.Start())
		time.Sleep(time.Duration(300+l.IntN(700)) * time.Millisecond) // what it is at then is left to chance
		l.must(child.Process.Kill())
		_ = child.Wait()
		if status, is := child.ProcessState.Sys().(syscall.WaitStatus); is && !status.Signaled() {
			t.Fatalf("the process ended by itself: %s", child.ProcessState)
		}
		l.same(8)
	}
	if l.built != 0 {
		t.Errorf("the index was built %d times", l.built)
	}
}

// An index of a workspace without items is kept current with the first, and with those that have nothing in common with
// any other, down to none again.
func TestAnIndexOfNothingIsKeptCurrent(t *testing.T) {
	l := newLibrary(t, 1, 3)
	l.do(false, func(e *engine.Engine) {
		for n, step := range []func(){func() {}, func() { l.commit(e, l.items[:1], false) }, func() { l.commit(e, l.items[1:], false) }, func() { l.commit(e, l.items, true) }} {
			step()
			hits, _ := l.find(e, query.Query{}, 0)
			if want := []int{0, 1, 3, 0}[n]; len(hits) != want {
				t.Errorf("after change %d there are %d items, not %d", n, len(hits), want)
			}
		}
	})
}
