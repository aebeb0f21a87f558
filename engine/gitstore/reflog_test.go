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
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := git(t, root, "rev-parse", "main@{0}"); got != tips[5].String() {
		t.Errorf("after Close the last entry is of %s, want %s", got, tips[5])
	}
	if got := entries(); strings.Count(got, "2 commits: put items/a/e.json") != 3 {
		t.Errorf("after Close:\n%s", got)
	}
	fsck(t, root)
}
