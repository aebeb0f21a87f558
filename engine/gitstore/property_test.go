package gitstore

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"bagpipe/layout/disk/faultfs"
)

// world is a machine with two processes on one workspace, and a map in memory
// that says what they were answered.
type world struct {
	t       *testing.T
	root    string
	machine *faultfs.FS
	stores  [2]*Store
	count   int
	state   map[string]string // by path
	log     map[string][]string
	unsure  map[string]string // edits that failed: by path, their text
}

func (w *world) open(rt *rapid.T) {
	o := followItems(testOptions())
	o.FS = w.machine
	for i := range w.stores {
		s, err := Open(w.root, o)
		if err != nil {
			rt.Fatalf("open: %v", err)
		}
		w.stores[i] = s
	}
}

func (w *world) close() {
	for _, s := range w.stores {
		if s != nil {
			s.Close() //nolint:errcheck // the machine may have stopped
		}
	}
}

// commit edits one item through one store, checking that the edit sees what was
// acknowledged.
func (w *world) commit(rt *rapid.T) error {
	s := w.stores[rapid.IntRange(0, 1).Draw(rt, "store")]
	path := fmt.Sprintf("items/%c/e.json", 'a'+rapid.IntRange(0, 3).Draw(rt, "item"))
	w.count++
	text := fmt.Sprint(w.count)
	h, err := s.Commit(context.Background(), func(r Reader) (*Change, error) {
		data, err := r.ReadFile(path)
		if want, ok := w.state[path]; ok != (err == nil) || string(data) != want {
			return nil, fmt.Errorf("%s is %q (%v), acknowledged was %q", path, data, err, want)
		}
		return &Change{Files: map[string][]byte{path: []byte(text)}, Message: text}, nil
	})
	if err != nil {
		w.unsure[path] = text
		return err
	}
	w.state[path] = text
	w.log[path] = append(w.log[path], h.String())
	return nil
}

// together edits different items at once, so that they form groups.
func (w *world) together(rt *rapid.T) {
	var wg sync.WaitGroup
	hashes := make([]Hash, 6)
	for i := range hashes {
		wg.Go(func() {
			path := fmt.Sprintf("items/g%d/e.json", i)
			h, err := tryPut(w.stores[i%2], path, fmt.Sprint(w.count))
			if err != nil {
				w.t.Errorf("together: %v", err)
			}
			hashes[i] = h
		})
	}
	wg.Wait()
	for i, h := range hashes {
		path := fmt.Sprintf("items/g%d/e.json", i)
		w.state[path] = fmt.Sprint(w.count)
		w.log[path] = append(w.log[path], h.String())
	}
	w.count++
}

// crash stops the machine within the next changes, edits until it does, and
// starts it again.
func (w *world) crash(rt *rapid.T) {
	w.machine.FailNext(rapid.IntRange(1, 40).Draw(rt, "after"), faultfs.ErrStopped)
	for w.commit(rt) == nil {
	}
	w.close()
	loss := faultfs.Loss(rapid.IntRange(0, 2).Draw(rt, "loss"))
	if err := w.machine.Cut(loss); err != nil {
		rt.Fatal(err)
	}
	w.machine = faultfs.New(0, nil)
	w.open(rt)
	for path, text := range w.unsure { // it may have landed or not, but nothing between
		if got := readTip(w.t, w.stores[0], path); got == text {
			w.state[path] = text
			w.log[path] = append(w.log[path], git(w.t, w.root, "log", "-1", "--format=%H", "main", "--", path))
		}
	}
	clear(w.unsure)
}

// check compares everything that can be seen with the map in memory.
func (w *world) check(rt *rapid.T) {
	// The first one opened follows; it learns of the other's commits by looking.
	if err := w.stores[0].Repair(context.Background()); err != nil {
		rt.Fatal(err)
	}
	v, err := w.stores[1].Tip()
	if err != nil {
		rt.Fatal(err)
	}
	seen := map[string]string{}
	if err := w.stores[1].Diff(context.Background(), Hash{}, v.Commit(), func(c FileChange) error {
		seen[c.Path] = string(c.Data)
		return nil
	}); err != nil {
		rt.Fatal(err)
	}
	delete(seen, "bagpipe.yaml")
	if fmt.Sprint(seen) != fmt.Sprint(w.state) {
		rt.Fatalf("committed: %v\nacknowledged: %v", seen, w.state)
	}
	for path, hashes := range w.log {
		want := slices.Clone(hashes)
		slices.Reverse(want)
		if got := git(w.t, w.root, "log", "--format=%H", "main", "--", path); got != strings.Join(want, "\n") {
			rt.Fatalf("git log -- %s:\n%s\nacknowledged:\n%s", path, got, strings.Join(want, "\n"))
		}
		var own []string
		for c, err := range w.stores[0].History(context.Background(), HistoryOptions{Path: path}) {
			if err != nil {
				rt.Fatal(err)
			}
			own = append(own, c.Hash.String())
		}
		if !slices.Equal(own, want) {
			rt.Fatalf("History of %s: %v, acknowledged: %v", path, own, want)
		}
		if shown := file(w.t, w.root, path); shown != w.state[path] {
			rt.Fatalf("%s shows %q, acknowledged was %q", path, shown, w.state[path])
		}
	}
}

// TestTransitionsFoldToTheSameStates is the store's main property.
func TestTransitionsFoldToTheSameStates(t *testing.T) {
	if os.Getenv("BAGPIPE_SOAK") == "" {
		if err := flag.Set("rapid.checks", "10"); err != nil {
			t.Fatal(err)
		}
	}
	template := initRoot(t, testOptions(), nil)
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: t, root: copyRoot(t, template), machine: faultfs.New(0, nil), state: map[string]string{},
			log: map[string][]string{}, unsure: map[string]string{}}
		w.open(rt)
		defer func() { w.close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				if err := w.commit(rt); err != nil {
					rt.Fatal(err)
				}
			},
			"together": w.together,
			"crash":    w.crash,
			"reopen":   func(rt *rapid.T) { w.close(); w.open(rt) },
			"rm -rf .bagpipe": func(rt *rapid.T) {
				w.close()
				if err := os.RemoveAll(w.root + "/.bagpipe"); err != nil {
					rt.Fatal(err)
				}
				w.machine = faultfs.New(0, nil)
				w.open(rt)
			},
			"gc": func(*rapid.T) {
				git(t, w.root, "gc", "-q", "--prune=now")
				w.machine.Forget()
			},
		})
		w.check(rt)
		fsck(t, w.root)
	})
}
