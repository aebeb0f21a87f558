package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout/disk"
	"bagpipe/layout/disk/faultfs"
)

// joinFrom is how many packs maintenance joins at least.
const joinFrom = 8

// fill makes many small packs, some holding the same objects.
func fill(t testing.TB, s *Store, n int) {
	t.Helper()
	for i := range n {
		put(t, s, fmt.Sprintf("items/%d/e.json", i%7), strings.Repeat(fmt.Sprintf("{\"n\": %d}\n", i/3), 20))
	}
}

// templateRoot makes a root that a store worked on, to be copied.
func templateRoot(t *testing.T, work func(*Store)) string {
	t.Helper()
	root := initRoot(t, testOptions(), nil)
	s, err := Open(root, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	work(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return root
}

func packCount(t testing.TB, root string) int {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(root, ".git/objects/pack/*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestMaintainJoinsPacksAndKeepsEverything(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	fill(t, s, 60)
	before := git(t, root, "rev-list", "--objects", "--all")
	v, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Maintain(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.PacksBefore < 50 || r.PacksAfter != 1 || r.Joined != r.PacksBefore || !r.Graph || r.PacksAfter != packCount(t, root) {
		t.Errorf("report %+v, %d packs", r, packCount(t, root))
	}
	if after := git(t, root, "rev-list", "--objects", "--all"); after != before {
		t.Error("other objects are reachable than before")
	}
	fsck(t, root)
	packs, err := filepath.Glob(filepath.Join(root, ".git/objects/pack/*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	git(t, root, "index-pack", "--strict", "-o", filepath.Join(t.TempDir(), "x.idx"), packs[0])
	git(t, root, "commit-graph", "verify")
	n := 0
	if err := s.Diff(context.Background(), Hash{}, v.Commit(), func(FileChange) error { n++; return nil }); err != nil || n != 8 {
		t.Errorf("an older view: %d files, %v", n, err)
	}
	fill(t, s, 20)
	r, err = s.Compact(context.Background())
	if err != nil || !r.Compacted || r.PacksAfter != 1 {
		t.Errorf("compact: %+v, %v", r, err)
	}
	put(t, s, "items/after/e.json", "1")
	fsck(t, root)
}

func TestMaintainBesideCommits(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var acked [4]int
	for i := range acked {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := tryPut(s, fmt.Sprintf("items/%d/e.json", i), fmt.Sprint(acked[i])); err != nil {
					t.Error(err)
					return
				}
				acked[i]++
			}
		})
	}
	joined := 0
	for range 6 {
		fill(t, s, 12)
		r, err := s.Maintain(context.Background())
		if err != nil {
			t.Error(err)
		}
		joined += r.Joined
	}
	close(stop)
	wg.Wait()
	if joined == 0 {
		t.Error("nothing was joined")
	}
	want := 1 + 6*12 + acked[0] + acked[1] + acked[2] + acked[3]
	if got := git(t, root, "rev-list", "--count", "main"); got != fmt.Sprint(want) {
		t.Errorf("%s commits, want %d", got, want)
	}
	fsck(t, root)
}

// lister does something when the packs have just been listed.
type lister struct {
	disk.FS
	listed func()
}

func (l *lister) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := l.FS.ReadDir(name)
	if filepath.Base(name) == "pack" {
		l.listed()
	}
	return list, err
}

// git repack may take packs away while they are being joined.
func TestMaintainBeginsAgainWhenAPackIsGone(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	machine := &lister{FS: disk.OS{}, listed: func() {}}
	o := testOptions()
	o.FS = machine
	s := openRoot(t, root, o)
	fill(t, s, 60)
	repacked := false
	machine.listed = func() {
		if !repacked {
			repacked = true
			git(t, root, "repack", "-a", "-d", "-q")
		}
	}
	r, err := s.Maintain(context.Background())
	if err != nil || r.PacksAfter != 1 || !repacked {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMaintainCrashSweep(t *testing.T) {
	template := templateRoot(t, func(s *Store) { fill(t, s, 10) })
	want := git(t, template, "rev-list", "--objects", "--all")
	for _, loss := range []faultfs.Loss{faultfs.Nothing, faultfs.Unsynced, faultfs.Bytes} {
		for k, stopped := 1+int(loss), true; stopped; k += sweepEvery() {
			root := copyRoot(t, template)
			machine := faultfs.New(0, nil)
			o := testOptions()
			o.FS = machine
			s, err := Open(root, o)
			if err != nil {
				t.Fatal(err)
			}
			machine.FailNext(k, faultfs.ErrStopped)
			s.maintainer.CompactFrom = 1 // differences, too
			_, err = s.Maintain(context.Background())
			what, failed := machine.Failed()
			if stopped = failed; err != nil && !stopped {
				t.Fatal(err)
			}
			if err := errors.Join(s.Close(), machine.Cut(loss)); err != nil {
				t.Fatal(err)
			}
			again := openRoot(t, root, testOptions())
			fsck(t, root)
			if got := git(t, root, "rev-list", "--objects", "--all"); got != want {
				t.Fatalf("%s, stopped at change %d: %s: objects are missing", loss, k, what)
			}
			if _, err := again.Maintain(context.Background()); err != nil {
				t.Fatalf("%s, stopped at change %d: %s: maintain again: %v", loss, k, what, err)
			}
			fsck(t, root)
			checkNothingLeft(t, root)
			if n := packCount(t, root); n >= joinFrom {
				t.Fatalf("%s, stopped at change %d: %s: %d packs in the end", loss, k, what, n)
			}
		}
	}
}

// TestMaintainStoresVersionsAsDifferences holds the packs to what they were: the
// same objects, the newest versions whole, chains that end, and hints that are
// used once.
func TestMaintainStoresVersionsAsDifferences(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	s.maintainer.CompactFrom = 1
	text := func(item, version int) string {
		var b strings.Builder
		for line := range 60 {
			fmt.Fprintf(&b, "  \"line-%d\": \"%x\"\n", line, (item+1)*(line+7)*7919+version/(1+(line+item)%60))
		}
		return b.String()
	}
	var size [3]int64
	for round := range size {
		for v := range 70 { // more than one chain may be long
			for i := range 3 {
				put(t, s, fmt.Sprintf("items/%d/e.json", i), text(i, 70*round+v))
			}
		}
		before := git(t, root, "rev-list", "--objects", "--all")
		r, err := s.Maintain(context.Background())
		if err != nil || !r.Compacted || r.PacksAfter != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		size[round] = r.BytesAfter
		if after := git(t, root, "rev-list", "--objects", "--all"); after != before {
			t.Error("other objects are reachable than before")
		}
		fsck(t, root)
		pairs, err := os.ReadFile(filepath.Join(root, ".git/bagpipe/replaced"))
		if err != nil || len(pairs) != 0 {
			t.Errorf("%d bytes of hints are left, %v", len(pairs), err)
		}
		for i := range 3 {
			if got := readTip(t, s, fmt.Sprintf("items/%d/e.json", i)); got != text(i, 70*round+69) {
				t.Errorf("item %d reads %.40s", i, got)
			}
		}
	}
	// Three items, the newest of each round and those that begin a chain. A root, an
	// items and an item's tree for each commit. Packs of the same moment may be joined in
	// either order, which begins up to three chains an item more in each round.
	const commits = 3 * 3 * 70
	for kind, want := range map[string]stored{
		"blob":   {n: 600, whole: 3 * 3 * (70/13 + 2), deepest: 13},
		"tree":   {n: 3 * commits, whole: 3*commits/13 + 3*(12+3*3*3), deepest: 13},
		"commit": {n: commits, whole: commits/9 + 10, deepest: 8},
	} {
		if got := storedAs(t, root, kind); got.n < want.n || got.whole > want.whole || got.deepest > want.deepest {
			t.Errorf("%ss are stored as %+v; want at least, at most, at most %+v", kind, got, want)
		}
	}
	for _, newest := range []string{"main^{tree}", "main:items", "main:items/2", "main:items/0"} {
		if base := baseOf(t, root, newest); strings.Trim(base, "0") != "" {
			t.Errorf("%s, which is read most, is a difference from %s", newest, base)
		}
	}
	git(t, root, "repack", "-adq")
	if git := packBytes(t, root); float64(size[2]) > 1.3*float64(git) {
		t.Errorf("%d bytes; git repack leaves %d", size[2], git)
	}
}

// TestMaintainTrustsNoHint: pairs that are torn, random, or name what is no file
// only cost room.
func TestMaintainTrustsNoHint(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	s.maintainer.CompactFrom = 1
	fill(t, s, 30)
	parse := func(rev string) Hash {
		h, err := ParseHash(git(t, root, "rev-parse", rev))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	tree, blob, other := parse("main^{tree}"), parse("main:items/1/e.json"), parse("main:items/2/e.json")
	pairs := odb.AppendPair(nil, blob, tree)
	pairs = odb.AppendPair(pairs, other, blob)
	pairs = odb.AppendPair(pairs, blob, blob)
	pairs = odb.AppendPair(pairs, Hash{1}, Hash{2})
	if err := os.WriteFile(filepath.Join(root, ".git/bagpipe/replaced"), append(pairs, "torn"...), 0o644); err != nil {
		t.Fatal(err)
	}
	before := git(t, root, "rev-list", "--objects", "--all")
	if r, err := s.Maintain(context.Background()); err != nil || !r.Compacted {
		t.Fatalf("%+v, %v", r, err)
	}
	if after := git(t, root, "rev-list", "--objects", "--all"); after != before {
		t.Error("other objects are reachable than before")
	}
	fsck(t, root)
	fill(t, s, 10) // pairs go on after the torn one
	if _, err := s.Maintain(context.Background()); err != nil {
		t.Fatal(err)
	}
	fsck(t, root)
}

func packBytes(t *testing.T, root string) (n int64) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(root, ".git/objects/pack/*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packs {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// stored says how the objects of one kind stand in the packs.
type stored struct{ n, whole, deepest int }

func storedAs(t *testing.T, root, kind string) (got stored) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(root, ".git/objects/pack/*.idx"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(git(t, root, append([]string{"verify-pack", "-v"}, packs...)...), "\n") {
		f := strings.Fields(line)
		if len(f) < 5 || f[1] != kind {
			continue
		}
		got.n++
		if len(f) == 5 {
			got.whole++
			continue
		}
		depth, err := strconv.Atoi(f[5])
		if err != nil {
			t.Fatal(err)
		}
		got.deepest = max(got.deepest, depth)
	}
	return got
}

func baseOf(t *testing.T, root, rev string) string {
	t.Helper()
	cmd := exec.Command("git", "cat-file", "--batch-check=%(deltabase)")
	cmd.Dir, cmd.Stdin = root, strings.NewReader(rev)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
