package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/layout/disk"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		os.Exit(runChild(root))
	}
	goleak.VerifyTestMain(m)
}

var fixed = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

var someone = Signature{Name: "Ada Example", Email: "ada@example.org"}

func testOptions() Options {
	return Options{Now: func() time.Time { return fixed }, Committer: Signature{Name: "Bagpipe", Email: "engine@example.org"}}
}

// git runs plain Git in the workspace.
func git(t testing.TB, root string, args ...string) string {
	t.Helper()
	out, err := tryGit(root, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func tryGit(root string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Foreign", "GIT_AUTHOR_EMAIL=foreign@example.org",
		"GIT_COMMITTER_NAME=Foreign", "GIT_COMMITTER_EMAIL=foreign@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// fsck asserts that plain Git finds nothing to say.
func fsck(t testing.TB, root string) {
	t.Helper()
	if out := git(t, root, "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		t.Fatalf("git fsck says:\n%s", out)
	}
}

func initRoot(t testing.TB, o Options, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	if files == nil {
		files = map[string][]byte{"bagpipe.yaml": []byte("schema: 1\n")}
	}
	if err := Init(context.Background(), root, o, files, "start the workspace", someone); err != nil {
		t.Fatal(err)
	}
	return root
}

func openRoot(t testing.TB, root string, o Options) *Store {
	t.Helper()
	s, err := Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// put commits files, given as path, text, path, text …
func put(t testing.TB, s *Store, pairs ...string) Hash {
	t.Helper()
	h, err := tryPut(s, pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func tryPut(s *Store, pairs ...string) (Hash, error) {
	return s.Commit(context.Background(), func(Reader) (*Change, error) {
		files := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			files[pairs[i]] = []byte(pairs[i+1])
		}
		return &Change{Files: files, Message: "put " + pairs[0], Author: someone}, nil
	})
}

func readTip(t testing.TB, s *Store, path string) string {
	t.Helper()
	v, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	data, err := v.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "<none>"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestInitMakesABareRepositoryPlainGitReads(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	if got := git(t, root, "log", "--format=%an|%cn|%s"); got != "Ada Example|Bagpipe|start the workspace" {
		t.Errorf("git log: %s", got)
	}
	for key, want := range map[string]string{
		"core.bare": "true", "receive.denyNonFastForwards": "true", "core.logAllRefUpdates": "true", "gc.auto": "0",
	} {
		if got := git(t, root, "config", key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := git(t, root, "show", "HEAD:bagpipe.yaml"); got != "schema: 1" {
		t.Errorf("git show: %s", got)
	}
	fsck(t, root)
	err := Init(context.Background(), root, testOptions(), nil, "again", someone)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Init: %v", err)
	}
}

func TestCommitIsSeenByPlainGit(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	h := put(t, s, "items/3/f/a/9/x/manifest.json", "{}\n", "items/3/f/a/9/x/execution.json", "{\"a\": 1}\n")
	if got := git(t, root, "rev-parse", "main"); got != h.String() {
		t.Errorf("main is at %s, want %s", got, h)
	}
	if got := git(t, root, "show", "main:items/3/f/a/9/x/execution.json"); got != `{"a": 1}` {
		t.Errorf("git show: %s", got)
	}
	put(t, s, "items/3/f/a/9/x/execution.json", "{\"a\": 2}\n", "items/3/f/a/9.x", "sorted before the folder 9\n", "items/3/f/a/90", "after\n")
	if got := readTip(t, s, "items/3/f/a/9/x/execution.json"); got != "{\"a\": 2}\n" {
		t.Errorf("tip: %q", got)
	}
	fsck(t, root)
}

func TestDeletingTheLastFileRemovesTheFolders(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	put(t, s, "a/b/c", "1", "a/d", "2")
	_, err := s.Commit(context.Background(), func(Reader) (*Change, error) {
		return &Change{Files: map[string][]byte{"a/b/c": nil, "not/there": nil}, Message: "delete"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := git(t, root, "ls-tree", "-r", "-t", "--name-only", "main"); got != "a\na/d\nbagpipe.yaml" {
		t.Errorf("tree: %s", got)
	}
	put(t, s, "a/b", "a file now")
	put(t, s, "e/f/g", "again")
	fsck(t, root)
}

func TestEditsOfAGroupSeeEachOther(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	const callers, each = 16, 20
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				_, err := s.Commit(context.Background(), func(r Reader) (*Change, error) {
					data, err := r.ReadFile("count")
					if err != nil && !errors.Is(err, fs.ErrNotExist) {
						return nil, err
					}
					return &Change{Files: map[string][]byte{"count": append(data[:len(data):len(data)], '.')}, Message: "count"}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := len(readTip(t, s, "count")); got != callers*each {
		t.Errorf("counted %d, want %d", got, callers*each)
	}
	if got := git(t, root, "rev-list", "--count", "main"); got != fmt.Sprint(callers*each+1) {
		t.Errorf("%s commits", got)
	}
	fsck(t, root)
}

func TestRefusedEditsWriteNothing(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	before := put(t, s, "a/b", "1")
	mine := errors.New("not legal")
	_, err := s.Commit(context.Background(), func(Reader) (*Change, error) { return nil, mine })
	if err != mine { //nolint:errorlint // it must be the very same
		t.Errorf("error %v", err)
	}
	h, err := s.Commit(context.Background(), func(Reader) (*Change, error) { return nil, nil })
	if err != nil || h != before {
		t.Errorf("nothing to do: %s, %v", h, err)
	}
	for _, bad := range []string{"a/b/c", "a", "", "/x", "x/", "x//y", "../x", "x/./y", ".git/config", "x/.GIT", "git~1", ".git. ", ".g\u200cit"} {
		if _, err := tryPut(s, bad, "2"); err == nil {
			t.Errorf("path %q was written", bad)
		}
	}
	if _, err := tryPut(s, "n", "1", "n/m", "2"); err == nil {
		t.Error("a file and a folder of one name were written")
	}
	if got := git(t, root, "rev-parse", "main"); got != before.String() {
		t.Error("the branch moved")
	}
	fsck(t, root)
}

func TestWithdrawnEditWritesNothing(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	ctx, cancel := context.WithCancel(context.Background())
	inside, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // holds the owner
		if _, err := s.Commit(ctx, func(Reader) (*Change, error) {
			close(inside)
			<-goOn
			return &Change{Files: map[string][]byte{"first": []byte("1")}, Message: "first"}, nil
		}); err != nil {
			t.Errorf("edit whose group had begun: %v", err)
		}
	})
	<-inside
	wg.Go(func() {
		cancel()
		_, err := s.Commit(ctx, func(Reader) (*Change, error) {
			t.Error("a withdrawn edit was applied")
			return nil, nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("withdrawn edit: %v", err)
		}
		close(goOn)
	})
	wg.Wait()
	if got := readTip(t, s, "first"); got != "1" {
		t.Errorf("first: %s", got)
	}
}

func TestCloseTwiceAndCommitAfter(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := tryPut(s, "a", "1"); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after close: %v", err)
	}
}

func TestForeignCommitIsTakenInAndEditsAppliedAgain(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	o := testOptions()
	var told []Advance
	o.Advanced = func(a Advance) { told = append(told, a) }
	s := openRoot(t, root, o)
	own := put(t, s, "count", "1")

	clone := filepath.Join(t.TempDir(), "clone")
	git(t, root, "clone", "-q", root, clone)
	if err := os.WriteFile(filepath.Join(clone, "count"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("count", filepath.Join(clone, "link")); err != nil {
		t.Fatal(err)
	}
	git(t, clone, "add", ".")
	git(t, clone, "update-index", "--chmod=+x", "count")
	git(t, clone, "commit", "-qm", "foreign")
	foreign := git(t, clone, "rev-parse", "HEAD")

	calls := 0
	h, err := s.Commit(context.Background(), func(r Reader) (*Change, error) {
		if calls++; calls == 1 { // another writer is quicker than this group
			git(t, clone, "push", "-q", "origin", "main")
		}
		data, err := r.ReadFile("count")
		if err != nil {
			return nil, err
		}
		return &Change{Files: map[string][]byte{"count": append(data[:1:1], '+')}, Message: "own"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls != 2 {
		t.Errorf("applied %d times", calls)
	}
	if got := readTip(t, s, "count"); got != "2+" {
		t.Errorf("count %q", got)
	}
	if got := git(t, root, "rev-parse", "main~1"); got != foreign {
		t.Errorf("parent is %s, not the foreign %s", got, foreign)
	}
	if got := git(t, root, "ls-tree", "main", "link", "count"); !strings.Contains(got, "120000") || !strings.Contains(got, "100755") {
		t.Errorf("modes of others were not kept: %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{own.String() + " count=1", foreign + " foreign count=2", h.String() + " count=2+"}
	var got []string
	for _, a := range told {
		for _, c := range a.Changes {
			line := a.To.String()
			if c.Foreign {
				line += " foreign"
			}
			got = append(got, line+" "+c.Path+"="+string(c.Data))
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	fsck(t, root)
}

func TestBranchMovedBackIsMovedForward(t *testing.T) {
	for _, how := range []string{"while open", "while closed", "deleted"} {
		t.Run(how, func(t *testing.T) {
			root := initRoot(t, testOptions(), nil)
			s := openRoot(t, root, testOptions())
			put(t, s, "a", "1")
			last := put(t, s, "a", "2")
			if how == "while closed" {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if how == "deleted" {
				git(t, root, "update-ref", "-d", "refs/heads/main")
			} else {
				git(t, root, "update-ref", "refs/heads/main", "main~1")
			}
			if how == "while closed" {
				s = openRoot(t, root, testOptions())
			} else if err := s.Refresh(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := git(t, root, "rev-parse", "main"); got != last.String() {
				t.Errorf("main is at %s, want %s", got, last)
			}
			put(t, s, "a", "3")
			if got := git(t, root, "rev-parse", "main~1"); got != last.String() {
				t.Errorf("parent is %s", got)
			}
			fsck(t, root)
		})
	}
}

// Who reads while a group is being published reads the branch as it is, and need not look for its pack on
// the disk: of many callers each would list the folder of packs.
func TestTipWhileTheBranchIsMoved(t *testing.T) {
	root := initRoot(t, testOptions(), map[string][]byte{"a": []byte("0\n")})
	var s *Store
	seen := 0
	m := &meddler{FS: disk.OS{}, renamed: func(name string) {
		if s == nil || !strings.HasSuffix(name, "refs/heads/main") {
			return
		}
		seen++
		if n, err := filepath.Glob(filepath.Join(root, ".git/objects/pack/pack-*.idx")); err != nil || s.Packs() != len(n) {
			t.Errorf("%d packs are known, of %d: %v", s.Packs(), len(n), err)
		}
		v, err := s.Tip()
		if err != nil || v.Commit().String() != strings.TrimSpace(git(t, root, "rev-parse", "HEAD")) {
			t.Errorf("Tip while the branch is moved: %s, %v", v.Commit(), err)
		}
		if data, err := v.ReadFile("a"); err != nil || string(data) != "1\n" {
			t.Errorf("a is %q, %v", data, err)
		}
	}}
	o := testOptions()
	o.FS = m
	s = openRoot(t, root, o)
	put(t, s, "a", "1\n")
	if seen != 1 {
		t.Errorf("the branch was moved %d times", seen)
	}
}

// Readers do not follow a branch that was moved back: before the next group moves
// it forward again, a step would read its own claim as not there, and fail.
func TestTipDoesNotFollowABranchMovedBack(t *testing.T) {
	root := initRoot(t, testOptions(), map[string][]byte{"a": []byte("0\n")})
	s := openRoot(t, root, testOptions())
	before := git(t, root, "rev-parse", "HEAD")
	h := put(t, s, "a", "1\n")
	git(t, root, "update-ref", "refs/heads/main", strings.TrimSpace(before))
	v, err := s.Tip()
	if err != nil || v.Commit() != h {
		t.Errorf("Tip on a branch moved back: %v, %v; want %s", v.Commit(), err, h)
	}
	git(t, root, "update-ref", "-d", "refs/heads/main")
	if v, err = s.Tip(); err != nil || v.Commit() != h {
		t.Errorf("Tip without a branch: %v, %v; want %s", v.Commit(), err, h)
	}
	put(t, s, "b", "2\n")
	if got := readTip(t, s, "a"); got != "1\n" {
		t.Errorf("a is %q after the next commit; want what was acknowledged", got)
	}
}

func TestRewrittenBranchStops(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	put(t, s, "a", "1")
	lost := put(t, s, "a", "2")
	other := git(t, root, "commit-tree", "-p", "main~1", "-m", "rewritten", "main~1^{tree}")
	git(t, root, "update-ref", "refs/heads/main", other)
	_, err := tryPut(s, "a", "3")
	var diverged *DivergedError
	if !errors.As(err, &diverged) {
		t.Fatalf("error %v", err)
	}
	if diverged.MissingAll != 1 || diverged.Missing[0] != lost {
		t.Errorf("missing %v", diverged.Missing)
	}
	if err := s.Refresh(context.Background()); !errors.As(err, &diverged) {
		t.Errorf("refresh: %v", err)
	}
	back := diverged.FaultRemedies()[0]
	command := "git branch -f rewritten " + back.From + " && git update-ref " + back.Name + " " + back.To + " " + back.From
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	put(t, s, "a", "3")
	if got := git(t, root, "rev-parse", "main~1", "rewritten"); got != lost.String()+"\n"+other {
		t.Errorf("after the command: %s", got)
	}
}

func TestForeignLockIsWaitedForAndNamed(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	lock := filepath.Join(root, ".git/refs/heads/main.lock")
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(300*time.Millisecond, func() { os.Remove(lock) })
	defer timer.Stop()
	put(t, s, "a", "1")
	if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Error("committed beside a foreign lock")
	}
}

func TestLockOfADeadBagpipeIsCleared(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	own := filepath.Join(root, ".git/refs/heads/main.bagpipe.lock")
	if err := os.WriteFile(own, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(own, filepath.Join(root, ".git/refs/heads/main.lock")); err != nil {
		t.Fatal(err)
	}
	s := openRoot(t, root, testOptions())
	put(t, s, "a", "1")
	if left, _ := filepath.Glob(filepath.Join(root, ".git/refs/heads/*.lock")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestPackedRefsAndLooseObjectsAndForeignPacksAreRead(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	put(t, s, "a/b", "1")
	git(t, root, "pack-refs", "--all", "--prune")
	put(t, s, "a/c", "2")
	git(t, root, "pack-refs", "--all", "--prune")
	git(t, root, "gc", "-q", "--prune=now")
	put(t, s, "a/d", "3")
	git(t, root, "repack", "-adq")
	put(t, s, "a/b", "4")
	for path, want := range map[string]string{"a/b": "4", "a/c": "2", "a/d": "3"} {
		if got := readTip(t, s, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	fsck(t, root)
}

func TestGoldenHashes(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	put(t, s, "items/3/f/a/9/3fa9c0d2e1b7a45/execution.json", "{}\n")
	put(t, s, "items/3/f/a/9/3fa9c0d2e1b7a45/execution.json", "{\"a\": 1}\n", "items/0/0/0/0/x/manifest.json", "{}\n")
	got := git(t, root, "log", "--format=%H")
	const want = "f5fec28a18b12d6a0068c3b1337f71a14bcd2420\n9d6bcd9820cae56e5385104ac6db57d24e613cc2\nf47787f9f6f95ae33bea2dd0b88c6f7ea1c5c7a6"
	if got != want {
		t.Errorf("commits:\n%s\nwant:\n%s", got, want)
	}
	fsck(t, root)
}

func TestDiffHistory(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	var want []string
	ctx := context.Background()
	start, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Commit(ctx, func(Reader) (*Change, error) {
		c := &Change{Files: map[string][]byte{}, Message: "many"}
		for i := range 1000 {
			p := fmt.Sprintf("items/%x/%x/%x/%03x/m.json", i>>8, i>>4&15, i&15, i)
			c.Files[p] = []byte(p)
			want = append(want, p)
		}
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	var differs []string
	stop := errors.New("stop")
	if err := s.Diff(ctx, Hash{}, v.Commit(), func(FileChange) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("diff stopped: %v", err)
	}
	if _, err := v.List("nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list of nothing: %v", err)
	}
	if err := s.Diff(ctx, start.Commit(), v.Commit(), func(c FileChange) error {
		if string(c.Data) != c.Path {
			return fmt.Errorf("%s holds %q", c.Path, c.Data)
		}
		differs = append(differs, c.Path)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if strings.Join(differs, "\n") != strings.Join(want, "\n") {
		t.Errorf("diff tells of %d files, want %d", len(differs), len(want))
	}
	_, err = s.Commit(ctx, func(Reader) (*Change, error) {
		return &Change{Files: map[string][]byte{want[7]: []byte("new")}, Author: someone,
			Message: "ocr: completed x\n\nSome text: yes\nmore\n\nBagpipe-Item: x\nBagpipe-Step: ocr\n"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	for c, err := range s.History(ctx, HistoryOptions{Path: want[7]}) {
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, fmt.Sprintf("%s|%s|%s|%v", c.Author.Name, c.Subject, c.Body, c.Trailers))
	}
	wantLog := []string{"Ada Example|ocr: completed x|Some text: yes\nmore|[{Bagpipe-Item x} {Bagpipe-Step ocr}]", "Bagpipe|many||[]"}
	if strings.Join(log, "\n") != strings.Join(wantLog, "\n") {
		t.Errorf("history:\n%s", strings.Join(log, "\n"))
	}
	fsck(t, root)
}

func runCommand(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	return string(out), err
}

func TestChangeTooLargeForAPackIsRefused(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	same := make([]byte, (1<<30)/4+1) // never read: the size alone decides
	_, err := s.Commit(context.Background(), func(Reader) (*Change, error) {
		return &Change{Files: map[string][]byte{"a": same, "b": same, "c": same, "d": same}, Message: "large"}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "larger than a pack may be") {
		t.Errorf("error %v", err)
	}
}
