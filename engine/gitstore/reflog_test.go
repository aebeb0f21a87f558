package gitstore

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestReflogFollowsByTheMinute: what was committed in a minute is one entry, and
// none is written of a commit that is younger.
func TestReflogFollowsByTheMinute(t *testing.T) {
	o := testOptions()
	now := o.Now()
	o.Now = func() time.Time { return now }
	root := initRoot(t, o, nil)
	s := openRoot(t, root, o)
	entries := func() string { return git(t, root, "reflog", "show", "--format=%gs", "main") }
	var tips []Hash
	for i := range 6 {
		tips = append(tips, put(t, s, "items/a/e.json", fmt.Sprint(i)))
		now = now.Add(40 * time.Second)
		if i == 1 && strings.Contains(entries(), "put") {
			t.Errorf("after 40 seconds: %s", entries())
		}
	}
	// Two commits a minute: those of the first are written, those of the last not.
	if got := entries(); strings.Count(got, "2 commits: put items/a/e.json") != 1 {
		t.Errorf("after four minutes:\n%s", got)
	}
	if got := git(t, root, "rev-parse", "main@{0}"); got != tips[1].String() {
		t.Errorf("the last entry is of %s, want %s", got, tips[1])
	}
	// What is young at Close is left to a process that comes a minute later, and to no earlier.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := git(t, root, "rev-parse", "main@{0}"); got != tips[3].String() {
		t.Errorf("after Close the last entry is of %s, want %s", got, tips[3])
	}
	for i, want := range []int{3, 5} {
		now = now.Add([]time.Duration{10 * time.Second, 2 * time.Minute}[i])
		s := openRoot(t, root, o)
		put(t, s, "items/a/e.json", fmt.Sprint("again", i))
		if got := git(t, root, "rev-parse", "main@{0}"); got == git(t, root, "rev-parse", "main") {
			t.Errorf("an entry of a commit that is being made")
		}
		if got := strings.Count(entries(), "\n") + 1; got != want {
			t.Errorf("%d: %d entries, want %d:\n%s", i, got, want, entries())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := entries(); strings.Count(got, "2 commits: put items/a/e.json") != 3 || strings.Count(got, "bagpipe: put items/a/e.json") != 1 {
		t.Errorf("two minutes later:\n%s", got)
	}
	fsck(t, root)
}
