package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout/disk"
	"bagpipe/layout/disk/faultfs"
)

// joinOnce is what a run does: it joins, and extends the commit-graph.
func joinOnce(t testing.TB, s *Store) {
	t.Helper()
	if _, err := s.Join(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func chainOf(t testing.TB, root string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".git/objects/info/commit-graphs/commit-graph-chain"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// sameGraph wants the graph to say of each commit what git finds out anew.
func sameGraph(t *testing.T, root string) {
	t.Helper()
	git(t, root, "commit-graph", "verify")
	fresh := copyRoot(t, root)
	if err := os.RemoveAll(filepath.Join(fresh, ".git/objects/info/commit-graphs")); err != nil {
		t.Fatal(err)
	}
	git(t, fresh, "commit-graph", "write", "--reachable", "--changed-paths")
	want, got := odb.OpenGraph(filepath.Join(fresh, ".git/objects")), odb.OpenGraph(filepath.Join(root, ".git/objects"))
	defer want.Close()
	defer got.Close()
	if want.Len() == 0 {
		t.Fatal("git wrote no graph")
	}
	for pos := range uint32(want.Len()) {
		w, parents, _ := want.Commit(pos, nil)
		at, ok := got.Find(w.Hash)
		if !ok {
			t.Fatalf("the graph has no %s", w.Hash)
		}
		g, gotParents, _ := got.Commit(at, nil)
		names := func(of *odb.Graph, list []uint32) (all []odb.Hash) {
			for _, p := range list {
				c, _, _ := of.Commit(p, nil)
				all = append(all, c.Hash)
			}
			return all
		}
		if g != w || fmt.Sprint(names(got, gotParents)) != fmt.Sprint(names(want, parents)) {
			t.Fatalf("%+v, parents %v; git says %+v, %v", g, names(got, gotParents), w, names(want, parents))
		}
		level, date := want.Ages(pos)
		if l, d := got.Ages(at); l != level || d != date {
			t.Fatalf("%s: level %d, date %d; git says %d, %d", w.Hash, l, d, level, date)
		}
		if f, of := got.Filter(at), want.Filter(pos); string(f) != string(of) && string(f) != "\xff" {
			t.Fatalf("%s: filter %x; git says %x", w.Hash, f, of)
		}
	}
}

func TestAStoreAtWorkExtendsTheCommitGraph(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	o := testOptions()
	clock := o.Now()
	o.Now = func() time.Time { return clock }
	s := openRoot(t, root, o)
	fill(t, s, 3)
	joinOnce(t, s) // there is none: git makes one
	for i := range 100 {
		clock = clock.Add(time.Duration(i%7-2) * time.Hour) // back, too
		put(t, s, fmt.Sprintf("items/%02d/%d/e.json", i%16, i), "x")
		if i%3 == 0 {
			joinOnce(t, s)
		}
	}
	joinOnce(t, s)
	if n := len(chainOf(t, root)); n < 3 || n > 14 {
		t.Errorf("%d layers", n)
	}
	sameGraph(t, root)

	change := &Change{Files: map[string][]byte{"items/é/a.json": []byte("1")}, Message: "not ASCII"}
	for i := range 600 {
		change.Files[fmt.Sprintf("many/%d.json", i)] = []byte("1")
	}
	for range 2 { // the second changes nothing
		if _, err := s.Commit(context.Background(), func(Reader) (*Change, error) { return change, nil }); err != nil {
			t.Fatal(err)
		}
	}
	joinOnce(t, s)
	sameGraph(t, root)
	if got := git(t, root, "log", "--format=%s", "--", "items/é/a.json"); got != "not ASCII" {
		t.Errorf("git log of the path: %q", got)
	}

	// What others commit, git has to look at; afterwards the store goes on.
	byHand := git(t, root, "-c", "user.name=P", "-c", "user.email=p@x", "commit-tree", "-p", "main", "-m", "by hand", "main^{tree}")
	git(t, root, "update-ref", "refs/heads/main", byHand)
	put(t, s, "items/a/e.json", "2")
	joinOnce(t, s)
	before := chainOf(t, root)
	put(t, s, "items/a/e.json", "3")
	joinOnce(t, s)
	if after := chainOf(t, root); after[0] != before[0] {
		t.Errorf("the chain was written anew: %v, then %v", before, after)
	}
	sameGraph(t, root)
	g := odb.OpenGraph(filepath.Join(root, ".git/objects"))
	defer g.Close()
	if _, ok := g.Find(*s.known.tip.Load()); !ok {
		t.Error("the graph does not reach the tip")
	}
}

// A graph of another kind is git's to go on with.
func TestAGraphOfAnotherKindIsLeftToGit(t *testing.T) {
	for what, args := range map[string][]string{
		"one file":   {"commit-graph", "write", "--reachable"},
		"no filters": {"commit-graph", "write", "--reachable", "--split", "--no-changed-paths"},
	} {
		root := initRoot(t, testOptions(), nil)
		s := openRoot(t, root, testOptions())
		fill(t, s, 3)
		git(t, root, args...)
		for range 2 {
			fill(t, s, 2)
			joinOnce(t, s)
		}
		git(t, root, "commit-graph", "verify")
		g := odb.OpenGraph(filepath.Join(root, ".git/objects"))
		if g.Len() == 0 {
			t.Errorf("%s: no graph", what)
		}
		g.Close()
	}
}

func TestExtendingTheGraphCrashSweep(t *testing.T) {
	template := templateRoot(t, func(s *Store) {
		fill(t, s, 4)
		joinOnce(t, s)
	})
	for _, loss := range []faultfs.Loss{faultfs.Nothing, faultfs.Unsynced, faultfs.Bytes} {
		for k, stopped := 1, true; stopped; k++ {
			root := copyRoot(t, template)
			machine := faultfs.New(0, nil)
			o := testOptions()
			o.FS = machine
			s, err := Open(root, o)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, s, 2)
			want := git(t, root, "rev-list", "--all")
			machine.FailNext(k, faultfs.ErrStopped)
			err = s.maintainer.Graph.Extend(context.Background())
			what, failed := machine.Failed()
			if stopped = failed; (err != nil) != stopped {
				t.Fatalf("%s: stopped %v: %v", what, stopped, err)
			}
			if err := errors.Join(s.Close(), machine.Cut(loss)); err != nil {
				t.Fatal(err)
			}
			if got := git(t, root, "rev-list", "--all"); got != want {
				t.Fatalf("%s, stopped at change %d: %s: the history is another", loss, k, what)
			}
			git(t, root, "commit-graph", "verify")
			o = testOptions()
			later := o.Now().Add(time.Hour)
			o.Now = func() time.Time { return later }
			again := openRoot(t, root, o)
			fill(t, again, 3)
			joinOnce(t, again)
			sameGraph(t, root)
			checkNothingLeft(t, root)
		}
	}
}

// A layer that rotted is not merged into one whose checksum is right, nor gone on with.
func TestADamagedGraphIsMadeAnew(t *testing.T) {
	template := templateRoot(t, func(s *Store) {
		fill(t, s, 12)
		joinOnce(t, s)
		for range 3 {
			fill(t, s, 2)
			joinOnce(t, s)
		}
	})
	chain := chainOf(t, template)
	for _, layer := range []string{chain[0], chain[len(chain)-1]} {
		file := ".git/objects/info/commit-graphs/graph-" + layer + ".graph"
		data, err := os.ReadFile(filepath.Join(template, file))
		if err != nil {
			t.Fatal(err)
		}
		for at := 100; at <= len(data); at += len(data) / 9 {
			damaged := append([]byte(nil), data...)
			if at < len(data) {
				damaged[at] ^= 16
			} else {
				damaged = damaged[:at-40]
			}
			root := copyRoot(t, template)
			if err := errors.Join(os.Remove(filepath.Join(root, file)), os.WriteFile(filepath.Join(root, file), damaged, 0o444)); err != nil {
				t.Fatal(err)
			}
			s := openRoot(t, root, testOptions())
			fill(t, s, 40)
			joinOnce(t, s)
			sameGraph(t, root)
		}
	}
}

// A store that is killed holding the lock on the chain holds up nobody.
func TestTheGraphsLockOfADeadStore(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	fill(t, s, 3)
	joinOnce(t, s)
	for _, next := range []func() error{
		func() error { return s.maintainer.Graph.Extend(context.Background()) },
		func() error { return s.maintainer.Graph.Write(context.Background()) },
	} {
		lock, err := s.maintainer.Graph.Lock()
		if err != nil || lock == nil {
			t.Fatal(err)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		fill(t, s, 3)
		if err := next(); err != nil {
			t.Fatal(err)
		}
		sameGraph(t, root)
	}
	checkNothingLeft(t, root)

	// That of a git that is at it stays.
	lock := filepath.Join(root, ".git/objects/info/commit-graphs/commit-graph-chain.lock")
	now := s.opts.Now()
	if err := errors.Join(os.WriteFile(lock, nil, 0o444), os.Chtimes(lock, now, now)); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 3)
	if err := s.maintainer.Graph.Extend(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(lock); err != nil {
		t.Error(err)
	}
}

// meddler does something when a chain has just been renamed.
type meddler struct {
	disk.FS
	renamed func(to string)
}

func (m *meddler) Rename(from, to string) error {
	err := m.FS.Rename(from, to)
	if err == nil {
		m.renamed(to)
	}
	return err
}

// A git that takes the lock the moment it is free keeps the layer it writes.
func TestAGitThatFollowsAtOnceKeepsItsLayer(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	m := &meddler{FS: disk.OS{}, renamed: func(string) {}}
	o := testOptions()
	o.FS = m
	s := openRoot(t, root, o)
	fill(t, s, 10)
	joinOnce(t, s)
	fill(t, s, 2)
	m.renamed = func(to string) {
		if filepath.Base(to) == "commit-graph-chain" {
			m.renamed = func(string) {}
			byHand := git(t, root, "-c", "user.name=P", "-c", "user.email=p@x", "commit-tree", "-p", "main", "-m", "by hand", "main^{tree}")
			git(t, root, "update-ref", "refs/heads/by-hand", byHand)
			git(t, root, "commit-graph", "write", "--reachable", "--split=no-merge", "--changed-paths")
		}
	}
	if err := s.maintainer.Graph.Extend(context.Background()); err != nil {
		t.Fatal(err)
	}
	if text := git(t, root, "commit-graph", "verify"); text != "" {
		t.Error(text)
	}
	g := odb.OpenGraph(filepath.Join(root, ".git/objects"))
	defer g.Close()
	if g.Len() != 13+1 {
		t.Errorf("%d commits in the graph", g.Len())
	}
}
