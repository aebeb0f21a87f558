package gitstore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func historyOf(t *testing.T, s *Store, path string) string {
	t.Helper()
	var list []string
	for c, err := range s.History(context.Background(), HistoryOptions{Path: path}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c.Hash.String())
	}
	return strings.Join(list, "\n")
}

// TestHistoryIsGits compares History with git log: without a commit-graph, with
// one, with a chain of several, and with commits on top; over merges, too.
func TestHistoryIsGits(t *testing.T) {
	now := fixed
	o := testOptions()
	o.Now = func() time.Time { now = now.Add(time.Second); return now }
	root := initRoot(t, o, nil)
	s := openRoot(t, root, o)
	paths := []string{"items/0", "items/1/e.json", "items/ä", "items", "nowhere", "bagpipe.yaml"}
	compare := func(when string) {
		t.Helper()
		for _, p := range paths {
			want := git(t, root, "log", "--format=%H", "--diff-merges=first-parent", "--full-history", "main", "--", p)
			if got := historyOf(t, s, p); got != want {
				t.Errorf("%s: history of %s:\n%s\ngit log:\n%s", when, p, got, want)
			}
		}
		if got, want := historyOf(t, s, ""), git(t, root, "log", "--format=%H", "main"); got != want {
			t.Errorf("%s: history:\n%s\ngit log:\n%s", when, got, want)
		}
	}
	fill := func() {
		for i := range 40 {
			put(t, s, fmt.Sprintf("items/%d/e.json", i%9), fmt.Sprint(now))
			if i%13 == 0 {
				put(t, s, "items/ä/e.json", fmt.Sprint(now))
			}
		}
	}
	fill()
	compare("without a graph")
	for i := range 3 {
		if _, err := s.Maintain(context.Background()); err != nil {
			t.Fatal(err)
		}
		compare(fmt.Sprintf("after %d maintenances", i+1))
		fill()
		compare("with commits on top")
	}
	if chain, err := filepath.Glob(filepath.Join(root, ".git/objects/info/commit-graphs/*.graph")); err != nil || len(chain) == 0 {
		t.Errorf("no graph was written: %v", err)
	}
	git(t, root, "commit-graph", "write", "--reachable", "--changed-paths")
	compare("with one graph")
}

func TestHistoryEndsAtItsLimit(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	fill(t, s, 9)
	n := 0
	for _, err := range s.History(context.Background(), HistoryOptions{Limit: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range s.History(ctx, HistoryOptions{}) {
		if err == nil {
			t.Error("a history was given after its context had ended")
		}
	}
	if n != 3 {
		t.Errorf("%d commits, want 3", n)
	}
}
