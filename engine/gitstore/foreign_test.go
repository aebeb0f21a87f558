package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// contest lets writers of every kind commit to one branch at once, while git
// packs and cleans beside them.
type contest struct {
	t       *testing.T
	root    string
	stop    chan struct{}
	writers sync.WaitGroup
	quiet   sync.RWMutex // taken by a pusher that is forestalled again and again

	mu    sync.Mutex
	acked map[string]int // by kind
	turns chan struct{}  // told of each, or of several
	list  []string
}

func (c *contest) running() bool {
	select {
	case <-c.stop:
		return false
	default:
		return true
	}
}

func (c *contest) ack(kind, hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked[kind]++
	select {
	case c.turns <- struct{}{}:
	default:
	}
	if hash != "" {
		c.list = append(c.list, kind+" "+hash)
	}
}

// caller counts up in its own file, so that a lost edit shows.
func (c *contest) caller(kind string, s *Store, n int) {
	path := fmt.Sprintf("items/%s/%d/e.json", kind, n)
	for i := 1; c.running(); i++ {
		c.quiet.RLock()
		h, err := s.Commit(context.Background(), func(r Reader) (*Change, error) {
			data, err := r.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if len(data) != i-1 {
				return nil, fmt.Errorf("%s holds %d edits, %d were acknowledged", path, len(data), i-1)
			}
			return &Change{Files: map[string][]byte{path: append(data[:len(data):len(data)], 'x')}, Message: "own"}, nil
		})
		c.quiet.RUnlock()
		if err != nil {
			c.t.Errorf("%s: %v", kind, err)
			return
		}
		c.ack(kind, h.String())
	}
}

// await returns after the length when each kind came to its turn; on a busy machine that
// takes longer, but not longer than a minute.
func (c *contest) await(length time.Duration, kinds []string) {
	enough, most := time.After(length), time.After(length+time.Minute)
	for missing := true; enough != nil || missing; {
		select {
		case <-enough:
			enough = nil
		case <-c.turns:
		case <-most:
			return
		}
		c.mu.Lock()
		missing = slices.ContainsFunc(kinds, func(kind string) bool { return c.acked[kind] == 0 })
		c.mu.Unlock()
	}
}

// plumber is git commit-tree with git update-ref; a refused update is no commit. On a
// busy machine the branch never stands still for it: every second try it does.
func (c *contest) plumber() {
	for i := 0; c.running(); i++ {
		turn := c.quiet.RLocker()
		if i%2 == 1 {
			turn = &c.quiet
		}
		c.plumb(turn)
	}
}

func (c *contest) plumb(turn sync.Locker) {
	turn.Lock()
	defer turn.Unlock()
	tip, err := tryGit(c.root, "rev-parse", "main")
	if err != nil {
		c.t.Errorf("rev-parse: %s", tip)
		return
	}
	tip = strings.TrimSpace(tip)
	made, err := tryGit(c.root, "commit-tree", "-p", tip, "-m", "plumbing", tip+"^{tree}")
	if err != nil {
		if strings.Contains(made, "unable to create temporary file") {
			return // gc removed the empty folder git was about to write to
		}
		c.t.Errorf("commit-tree: %s", made)
		return
	}
	made = strings.TrimSpace(made)
	if _, err := tryGit(c.root, "update-ref", "refs/heads/main", made, tip); err == nil {
		c.ack("plumbing", made)
	}
}

// pusher commits in a clone and pushes, merging what came in between. A push
// needs a moment in which the branch stands still: every second try it gets one.
func (c *contest) pusher(clone string) {
	for i := 0; c.running(); i++ {
		if err := os.WriteFile(filepath.Join(clone, "pushed"), []byte(fmt.Sprint(i)), 0o644); err != nil {
			c.t.Error(err)
			return
		}
		for _, args := range [][]string{{"add", "."}, {"commit", "-qm", "pushed"}} {
			if out, err := tryGit(clone, args...); err != nil {
				c.t.Errorf("git %v: %s", args, out)
				return
			}
		}
		c.push(clone, i%2 == 1)
	}
}

func (c *contest) push(clone string, quiet bool) {
	if quiet {
		c.quiet.Lock()
		defer c.quiet.Unlock()
	}
	made := git(c.t, clone, "rev-parse", "HEAD")
	if out, err := tryGit(clone, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main"); err != nil {
		c.t.Errorf("pull: %s", out)
		return
	}
	if _, err := tryGit(clone, "push", "-q", "origin", "main"); err == nil {
		c.ack("pushed", made)
	}
}

// packer runs what people's cron jobs run. gc --prune=now is not for beside git's
// own writers: it deletes their loose objects between commit-tree and update-ref,
// as its manual warns.
func (c *contest) packer(prune string) {
	for i := 0; c.running(); i++ {
		args := [][]string{{"pack-refs", "--all"}, {"gc", "-q", prune}, {"repack", "-adq"}, {"pack-refs", "--all", "--prune"}}[i%4]
		if out, err := tryGit(c.root, args...); err != nil && !passing(out) {
			c.t.Errorf("git %v: %s", args, out)
		}
		c.ack("packing", "")
	}
}

// passing tells what a git program says when another was quicker: a lock that is
// held, an unreachable object (of a refused push or pack) that has just gone.
func passing(out string) bool {
	for _, s := range []string{"cannot lock", "nable to create", "unable to get object info", "unable to add recent objects", "bad tree object"} {
		if strings.Contains(out, s) {
			return true
		}
	}
	return false
}

func TestForeignWriters(t *testing.T) {
	root, c := newContest(t)
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, root, "clone", "-q", root, clone)
	c.run("--prune=2.weeks.ago", map[string]func(){"plumbing": c.plumber, "pushed": func() { c.pusher(clone) }})
}

func TestTwoStoresBesidePruning(t *testing.T) {
	_, c := newContest(t)
	c.run("--prune=now", nil)
}

func newContest(t *testing.T) (string, *contest) {
	root := initRoot(t, testOptions(), nil)
	return root, &contest{t: t, root: root, stop: make(chan struct{}), turns: make(chan struct{}, 1), acked: map[string]int{}}
}

// run lets two stores of four callers each, the packer and the others work for a while, and
// until each came to its turn, and checks that no acknowledged commit was lost.
func (c *contest) run(prune string, others map[string]func()) {
	t, length := c.t, 2*time.Second
	if os.Getenv("BAGPIPE_SOAK") != "" {
		length = 30 * time.Second
	}
	o := testOptions()
	o.Now = time.Now
	first, second := openRoot(t, c.root, o), openRoot(t, c.root, o)
	for i := range 4 {
		c.writers.Go(func() { c.caller("first", first, i) })
		c.writers.Go(func() { c.caller("second", second, i) })
	}
	for _, f := range others {
		c.writers.Go(f)
	}
	c.writers.Go(func() { c.packer(prune) })
	kinds := append(slices.Collect(maps.Keys(others)), "first", "second", "packing")
	c.await(length, kinds)
	close(c.stop)
	c.writers.Wait()
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	t.Logf("acknowledged: %v", c.acked)
	for _, kind := range kinds {
		if c.acked[kind] == 0 {
			t.Errorf("%s never came to its turn", kind)
		}
	}
	reachable := map[string]bool{}
	for h := range strings.SplitSeq(git(t, c.root, "rev-list", "main"), "\n") {
		reachable[h] = true
	}
	for _, line := range c.list {
		if kind, h, _ := strings.Cut(line, " "); !reachable[h] {
			t.Errorf("acknowledged %s of %s is not reachable", h, kind)
		}
	}
	fsck(t, c.root)
	checkNothingLeft(t, c.root)
}

// TestRepackWithOpenPacks reads and writes on while git replaces every pack.
func TestRepackWithOpenPacks(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	for i := range 20 {
		put(t, s, fmt.Sprintf("items/%d/e.json", i), fmt.Sprint(i))
	}
	v, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"gc", "-q", "--prune=now"}, {"repack", "-adq"}, {"repack", "-adqf"}, {"pack-refs", "--all"}} {
		git(t, root, args...)
		n := 0
		if err := s.Diff(context.Background(), Hash{}, v.Commit(), func(FileChange) error { n++; return nil }); err != nil {
			t.Fatalf("after git %v: %v", args, err)
		}
		if n != 20+1 {
			t.Errorf("after git %v: %d files", args, n)
		}
		put(t, s, "items/x/e.json", strings.Join(args, " "))
	}
	fsck(t, root)
}

func TestPlainGitCannotRevertBesideIt(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, followItems(testOptions()))
	put(t, s, "items/a/e.json", "1")
	caughtUp(t, s)
	for _, args := range [][]string{
		{"commit", "--allow-empty", "-m", "x"}, {"stash"}, {"reset", "--hard", "HEAD~1"}, {"checkout", "HEAD~1"},
		{"clean", "-fdx"}, {"merge", "HEAD"}, {"add", "."}, {"rm", "-r", "items"},
	} {
		if out, err := tryGit(root, args...); err == nil || !strings.Contains(out, "must be run in a work tree") {
			t.Errorf("git %v: %v: %s", args, err, out)
		}
	}
	for _, args := range [][]string{
		{"log", "--", "items/a"}, {"show", "HEAD"}, {"blame", "HEAD", "--", "items/a/e.json"}, {"grep", "1", "HEAD"},
		{"diff", "HEAD~1", "HEAD"}, {"fsck"}, {"clone", "-q", ".", filepath.Join(t.TempDir(), "c")}, {"gc", "-q"},
	} {
		git(t, root, args...)
	}
	if got := file(t, root, "items/a/e.json"); got != "1" {
		t.Errorf("the item's file is %q", got)
	}
}

// TestReadOnlyAndFullDisk works on a small file system of its own, when the
// tests may make one.
func TestFullFileSystem(t *testing.T) {
	root := t.TempDir()
	if out, err := runCommand("mount", "-t", "tmpfs", "-o", "size=2m", "bagpipe-test", root); err != nil {
		t.Skipf("no right to mount: %s", out)
	}
	defer func() {
		if out, err := runCommand("umount", root); err != nil {
			t.Errorf("umount: %s", out)
		}
	}()
	o := followItems(testOptions())
	if err := Init(context.Background(), root, o, map[string][]byte{"bagpipe.yaml": []byte("schema: 1\n")}, "start", someone); err != nil {
		t.Fatal(err)
	}
	s, err := Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger()
	ballast := filepath.Join(root, "payload")
	var full error
	for i := 0; full == nil; i++ {
		if i > 1000 {
			t.Fatal("the disk never filled")
		}
		full = l.put(s, fmt.Sprintf("items/%d/e.json", i), strings.Repeat(fmt.Sprint(i, " "), 500))
		if i == 5 {
			if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !strings.Contains(full.Error(), "no space left on device") {
		t.Errorf("error %v", full)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := l.put(s, "items/after/e.json", "there is room"); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	caughtUp(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	l.check(t, root)
	if out, err := runCommand("mount", "-o", "remount,ro", root); err != nil {
		t.Fatalf("%s", out)
	}
	if s, err := Open(root, o); err == nil {
		if _, err := tryPut(s, "a", "1"); err == nil || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("commit on a read-only disk: %v", err)
		}
		s.Close()
	} else if !strings.Contains(err.Error(), "read-only") {
		t.Errorf("open on a read-only disk: %v", err)
	}
}

// TestPlainGitReadsBesideFullSpeed runs every reading program of Git, and those
// that copy and pack, while callers commit as fast as they can.
func TestPlainGitReadsBesideFullSpeed(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, followItems(testOptions()))
	put(t, s, "items/a/e.json", "first")
	mirror, clone := filepath.Join(t.TempDir(), "mirror.git"), filepath.Join(t.TempDir(), "clone")
	git(t, root, "clone", "-q", "--bare", root, mirror)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if s.Packs() > 3*ManyPacks { // nobody joins them here, and git cannot open tens of thousands
					time.Sleep(10 * time.Millisecond)
					if err := s.repo.DB.Rescan(); err != nil {
						t.Error(err)
					}
					continue
				}
				if _, err := tryPut(s, fmt.Sprintf("items/%d/e.json", i), fmt.Sprint(n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		for _, args := range [][]string{
			{"log", "-5", "--", "items/a"}, {"log", "--grep=^put", "-3"}, {"show", "--stat", "HEAD"}, {"blame", "HEAD", "--", "items/a/e.json"},
			{"grep", "first", "HEAD"}, {"diff", "HEAD~1", "HEAD"}, {"shortlog", "-s", "HEAD"}, {"fsck", "--strict", "--no-dangling"},
			{"push", "-q", mirror, "main"}, {"fetch", "-q", mirror, "main"}, {"gc", "-q"}, {"rev-list", "--count", "HEAD"},
		} {
			git(t, root, args...)
		}
		if err := os.RemoveAll(clone); err != nil {
			t.Fatal(err)
		}
		git(t, root, "clone", "-q", root, clone)
		fsck(t, clone)
		// The branch stands still for no one: what Git refuses in a bare repository
		// it refuses now as well.
		if out, err := tryGit(root, "reset", "--hard", "HEAD~1"); err == nil {
			t.Errorf("git reset --hard: %s", out)
		}
	}
	close(stop)
	callers.Wait()
	caughtUp(t, s)
	fsck(t, root)
	if got := file(t, root, "items/a/e.json"); got != "first" {
		t.Errorf("the item's file is %q", got)
	}
}
