package history

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout/disk"
)

// forest is random histories: lines, merges of up to three, several roots, clocks that are years off.
type forest struct {
	testing.TB
	*rand.Rand
	root    string
	commits []odb.Hash
	known   map[odb.Hash]map[odb.Hash]bool // the commits that lead to one
}

func (f *forest) git(in string, args ...string) string {
	f.Helper()
	cmd := exec.Command("git", append([]string{"--git-dir=" + filepath.Join(f.root, ".git")}, args...)...)
	cmd.Dir = f.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = strings.NewReader(in)
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		f.Fatalf("git %q: %v: %s", args, err, wrong.Bytes())
	}
	return string(out)
}

// grow adds commits, most of them to the newest.
func (f *forest) grow(n int) {
	var in strings.Builder
	for i := range n {
		at := len(f.commits) + i
		name := func(k int) string {
			if k < len(f.commits) {
				return f.commits[k].String()
			}
			return fmt.Sprintf(":%d", k+1)
		}
		some := func() int { return max(0, at-1-int(f.ExpFloat64()*5)) }
		fmt.Fprintf(&in, "commit refs/heads/c%d\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata 0\n", at, at+1, 1_500_000_000+at+f.IntN(2)*f.IntN(60_000_000))
		if at > 0 && f.IntN(40) > 0 {
			parents := []int{some()}
			for range f.IntN(8) / 5 * f.IntN(3) {
				if p := some(); !slices.Contains(parents, p) {
					parents = append(parents, p)
				}
			}
			fmt.Fprintf(&in, "from %s\n", name(parents[0]))
			for _, p := range parents[1:] {
				fmt.Fprintf(&in, "merge %s\n", name(p))
			}
		}
		in.WriteString("\n")
	}
	for k := range n {
		fmt.Fprintf(&in, "get-mark :%d\n", len(f.commits)+k+1)
	}
	for line := range strings.FieldsSeq(f.git(in.String()+"done\n", "fast-import", "--quiet", "--done")) {
		h, err := odb.ParseHash(line)
		if err != nil {
			f.Fatal(err)
		}
		f.commits = append(f.commits, h)
	}
}

// What two commits have in common and what lies between them is found in whatever order it is asked for, while
// commits come, and the commit-graph is there, is old or is not there.
func TestAncestry(t *testing.T) {
	for seed := range uint64(4) {
		f := &forest{TB: t, Rand: rand.New(rand.NewPCG(seed, 7)), root: filepath.Join(t.TempDir(), "r"), known: map[odb.Hash]map[odb.Hash]bool{}}
		if err := os.Mkdir(f.root, 0o777); err != nil {
			t.Fatal(err)
		}
		f.git("", "init", "-q", "-b", "main")
		f.git("", "config", "core.bare", "true")
		f.grow(60)
		r, err := repo.Open(f.root, disk.OS{}, time.Now, slog.New(slog.DiscardHandler), false)
		if err != nil {
			t.Fatal(err)
		}
		y := NewAncestry(r)
		for round := range 10 {
			if f.grow(1 + f.IntN(20)); round%3 == int(seed%3) && seed > 0 {
				f.git("", "commit-graph", "write", "--reachable", "--split")
			}
			for range 12 {
				a, b := f.commits[len(f.commits)-1-int(min(f.ExpFloat64()*10, 50))], f.commits[f.IntN(len(f.commits))]
				if f.IntN(2) == 0 {
					a, b = b, a
				}
				f.compare(y, a, b)
			}
		}
		if err := r.DB.Close(); err != nil {
			t.Error(err)
		}
	}
}

// leading gives the commits that lead to one, itself too.
func (f *forest) leading(db *odb.DB, to odb.Hash) map[odb.Hash]bool {
	f.Helper()
	if all := f.known[to]; all != nil {
		return all
	}
	c, err := db.ReadCommit(to)
	if err != nil {
		f.Fatal(err)
	}
	all := map[odb.Hash]bool{to: true}
	for _, p := range c.Parents {
		maps.Copy(all, f.leading(db, p))
	}
	f.known[to] = all
	return all
}

func (f *forest) compare(y *Ancestry, a, b odb.Hash) {
	f.Helper()
	toA, toB := f.leading(y.repo.DB, a), f.leading(y.repo.DB, b)
	var want odb.Hash
	for h := range toA {
		last := toB[h]
		for other := range toA {
			if last = last && (other == h || !toB[other] || !f.leading(y.repo.DB, other)[h]); !last {
				break
			}
		}
		if last && (want.IsZero() || h.String() < want.String()) {
			want = h
		}
	}
	base, err := y.Base(a, b)
	if err != nil {
		f.Fatal(err)
	}
	if base != want {
		f.Errorf("%s and %s began from %s, not %s", a, b, want, base)
	}
	beyond, err := y.Beyond(a, b)
	if err != nil {
		f.Fatal(err)
	}
	before := map[odb.Hash]bool{}
	for _, h := range beyond {
		c, err := y.repo.DB.ReadCommit(h)
		if err != nil {
			f.Fatal(err)
		}
		if !toA[h] || toB[h] || before[h] || slices.ContainsFunc(c.Parents, func(p odb.Hash) bool { return !toB[p] && !before[p] }) {
			f.Errorf("between %s and %s is %s", b, a, h)
		}
		before[h] = true
	}
	for h := range toA {
		if !toB[h] && !before[h] {
			f.Errorf("between %s and %s is no %s", b, a, h)
		}
	}
}

// That one commit leads to another is found by the commits between them.
func TestAncestryOfCommitsThatAreNear(t *testing.T) {
	f := &forest{TB: t, Rand: rand.New(rand.NewPCG(1, 7)), root: t.TempDir(), known: map[odb.Hash]map[odb.Hash]bool{}}
	f.git("", "init", "-q", "-b", "main")
	f.git("", "config", "core.bare", "true")
	f.grow(200)
	r, err := repo.Open(f.root, disk.OS{}, time.Now, slog.New(slog.DiscardHandler), false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.DB.Close() //nolint:errcheck // nothing was written
	tip := f.commits[len(f.commits)-1]
	c, err := r.DB.ReadCommit(tip)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range [][2]odb.Hash{{tip, tip}, {tip, c.Parents[0]}, {c.Parents[0], tip}} {
		y := NewAncestry(r)
		if base, err := y.Base(of[0], of[1]); err != nil || base != slices.MinFunc(of[:], func(a, b odb.Hash) int { return len(f.leading(r.DB, a)) - len(f.leading(r.DB, b)) }) {
			t.Errorf("%s began from %s: %v", of, base, err)
		}
		if len(y.commits) > 0 {
			t.Errorf("%s: the ages of %d commits were asked for", of, len(y.commits))
		}
	}
}

// What is too far back is left to the git program, and so is what cannot be read.
func TestAncestryThatIsFar(t *testing.T) {
	f := &forest{TB: t, Rand: rand.New(rand.NewPCG(1, 7)), root: t.TempDir(), known: map[odb.Hash]map[odb.Hash]bool{}}
	f.git("", "init", "-q", "-b", "main")
	f.git("", "config", "core.bare", "true")
	f.grow(5)
	r, err := repo.Open(f.root, disk.OS{}, time.Now, slog.New(slog.DiscardHandler), false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.DB.Close() //nolint:errcheck // nothing was written
	y := NewAncestry(r)
	if _, err := y.Base(f.commits[0], odb.Hash{1}); !errors.Is(err, ErrFar) {
		t.Errorf("of a commit that is not there: %v", err)
	}
	f.compare(y, f.commits[0], f.commits[4])
	for n := range mostAged/2 + 1 {
		y.commits[odb.Hash{1, byte(n), byte(n >> 8), byte(n >> 16)}] = &aged{}
	}
	if f.compare(y, f.commits[0], f.commits[4]); len(y.commits) > len(f.commits) {
		t.Errorf("%d commits are remembered", len(y.commits))
	}
}
