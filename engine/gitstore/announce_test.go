package gitstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Two stores of many callers each, of which one is slow to take in what happened: it is
// told of every move once, in their order, of its own before the callers are answered,
// and of the other's before an edit sees them.
func TestMovesAreToldInTheirOrder(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	var (
		mu    sync.Mutex
		at    Hash
		known = map[string]bool{} // the files told of
		calls atomic.Int32
	)
	o := testOptions()
	o.Now = time.Now
	other := openRoot(t, root, o)
	o.Advanced = func(a Advance) {
		if calls.Add(1) != 1 {
			t.Error("told twice at once")
		}
		time.Sleep(2 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if at != a.From && !at.IsZero() {
			t.Errorf("told of %s after %s, not after %s", a.To, at, a.From)
		}
		at = a.To
		for _, c := range a.Changes {
			if known[c.Path] {
				t.Errorf("%s was told twice", c.Path)
			}
			known[c.Path] = true
		}
		calls.Add(-1)
	}
	s := openRoot(t, root, o)
	isKnown := func(path string) bool {
		mu.Lock()
		defer mu.Unlock()
		return known[path]
	}
	const callers, each = 120, 12
	var callersDone sync.WaitGroup
	for c := range callers {
		callersDone.Go(func() {
			for i := range each {
				name := fmt.Sprintf("other/%d/%d", c, i)
				if c%4 > 0 { // three of four are the slow store's
					name = fmt.Sprintf("own/%d/%d", c, i)
					commitFile(t, s, name, func(r Reader) {
						seen := fmt.Sprintf("other/%d/%d", c/4*4, i)
						if _, err := r.ReadFile(seen); err == nil && !isKnown(seen) {
							t.Errorf("an edit sees %s, of which nothing was told", seen)
						}
					})
					if !isKnown(name) {
						t.Errorf("%s was answered before it was told", name)
					}
					continue
				}
				commitFile(t, other, name, nil)
			}
		})
	}
	callersDone.Wait()
	if err := s.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(known) != callers*each {
		t.Errorf("told of %d files, not %d", len(known), callers*each)
	}
}

// commitFile commits one new file; look may read what the edit sees.
func commitFile(t *testing.T, s *Store, name string, look func(Reader)) {
	_, err := s.Commit(context.Background(), func(r Reader) (*Change, error) {
		if look != nil {
			look(r)
		}
		return &Change{Files: map[string][]byte{name: []byte(name)}, Message: name}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A large move by another is told in parts, and all but the last say that more comes.
func TestALargeMoveSaysThatMoreComes(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	var told []Advance
	o := testOptions()
	o.Advanced = func(a Advance) { told = append(told, a) }
	s, other := openRoot(t, root, o), openRoot(t, root, testOptions())
	files := map[string][]byte{}
	for i := range 2*maxTold + 1 {
		files[fmt.Sprintf("d%d/f%d", i%100, i)] = []byte("x")
	}
	if _, err := other.Commit(context.Background(), func(Reader) (*Change, error) { return &Change{Files: files, Message: "many"}, nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(told) != 3 || !told[0].More || !told[1].More || told[2].More || len(told[2].Changes) != 1 {
		t.Errorf("%d parts", len(told))
	}
}

// The callers of a large group do not wait for what is told of the last of them.
func TestALargeGroupIsAnsweredInParts(t *testing.T) {
	const callers = 2*answeredAtOnce + 1
	var (
		parts    []Advance
		answered atomic.Int32
		asked    sync.WaitGroup
		known    = map[string]bool{}
	)
	o := testOptions()
	o.Advanced = func(a Advance) {
		if len(a.Changes) == 1 && a.Changes[0].Path == "first" {
			return
		}
		for end := time.Now().Add(time.Minute); int(answered.Load()) < len(known) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if int(answered.Load()) != len(known) {
			t.Errorf("%d callers are answered, of %d that were told of", answered.Load(), len(known))
		}
		for _, c := range a.Changes {
			known[c.Path] = true
		}
		parts = append(parts, a)
	}
	s := openRoot(t, initRoot(t, testOptions(), nil), o)
	commitFile(t, s, "first", func(Reader) { // while it is made, all others come
		for i := range callers {
			asked.Go(func() {
				commitFile(t, s, fmt.Sprint(i), nil)
				answered.Add(1)
			})
		}
		for len(s.owner.gather.requests) < callers {
			time.Sleep(time.Millisecond)
		}
	})
	asked.Wait()
	if len(parts) != 3 || len(known) != callers {
		t.Fatalf("told of %d files in %d parts", len(known), len(parts))
	}
	for i, a := range parts {
		if a.More != (i < 2) || a.From != parts[0].From || a.To != parts[0].To {
			t.Errorf("part %d: from %s to %s, more %v", i, a.From, a.To, a.More)
		}
	}
}

// While its user is patient the store waits for more edits to share a group, but not
// when the user stops being so, and never long.
func TestAPatientUserIsHeldForOthers(t *testing.T) {
	var patient atomic.Bool
	var moves atomic.Int32
	o := testOptions()
	o.Now = time.Now
	o.Patient = patient.Load
	o.Advanced = func(Advance) { moves.Add(1) }
	s := openRoot(t, initRoot(t, testOptions(), nil), o)
	two := func(first, second string, between func()) {
		var wg sync.WaitGroup
		wg.Go(func() { commitFile(t, s, first, nil) })
		time.Sleep(holdTime / 10)
		between()
		wg.Go(func() { commitFile(t, s, second, nil) })
		wg.Wait()
	}
	together := 0
	for i := range 20 { // a slow machine may take longer than the hold for some
		patient.Store(true)
		before := moves.Load()
		two(fmt.Sprintf("a/%d", i), fmt.Sprintf("b/%d", i), func() {})
		if moves.Load() == before+1 {
			together++
		}
	}
	if together == 0 {
		t.Error("no two edits within the hold made one group")
	}
	before := moves.Load()
	commitFile(t, s, "alone", nil)
	if moves.Load() != before+1 {
		t.Error("a lone edit of a patient user was not committed")
	}
	patient.Store(false)
	two("c", "d", func() { time.Sleep(4 * holdTime) })
	if moves.Load() != before+3 {
		t.Errorf("two edits of an impatient user, one long after the other, made %d groups", moves.Load()-before-1)
	}
}
