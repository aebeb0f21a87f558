package gitstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
)

// A git that was killed leaves its lock, and every later one would refuse.
func TestMaintainClearsTheGraphsLockOfADeadGit(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	fill(t, s, 3)
	lock := filepath.Join(root, ".git/objects/info/commit-graphs/commit-graph-chain.lock")
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		t.Fatal(err)
	}
	for age, cleared := range map[time.Duration]bool{time.Hour: true, -time.Hour: true, time.Second: false} {
		if err := os.WriteFile(lock, nil, 0o444); err != nil {
			t.Fatal(err)
		}
		at := s.opts.Now().Add(-age)
		if err := os.Chtimes(lock, at, at); err != nil {
			t.Fatal(err)
		}
		fill(t, s, 2) // else there is nothing to write
		_, err := s.Maintain(context.Background())
		if (err == nil) != cleared {
			t.Errorf("a lock %s old: %v", age, err)
		}
		if _, err := os.Lstat(lock); (err != nil) != cleared {
			t.Errorf("a lock %s old: afterwards: %v", age, err)
		}
		if err := os.Remove(lock); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// One rotten pack must not keep all others apart for good.
func TestMaintainLeavesARottenPackAndJoinsTheOthers(t *testing.T) {
	for what, rot := range map[string]func([]byte) []byte{
		"a byte":    func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)-25] },
		"empty":     func([]byte) []byte { return nil },
	} {
		root := initRoot(t, testOptions(), nil)
		s := openRoot(t, root, testOptions())
		fill(t, s, 30)
		packs, err := filepath.Glob(filepath.Join(root, ".git/objects/pack/*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		name := packs[7]
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(name, 0o644), os.WriteFile(name, rot([]byte(string(whole))), 0o644)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err = s.Join(context.Background())
			put(t, s, "items/x/e.json", what)
			fill(t, s, joinFrom)
		}
		var rotten *odb.RottenError
		if !errors.As(err, &rotten) || !strings.Contains(err.Error(), strings.TrimSuffix(packs[7], ".pack")) {
			t.Errorf("%s: %v", what, err)
		}
		if n := packCount(t, root); n > 4*joinFrom {
			t.Errorf("%s: %d packs are left", what, n)
		}
		if err := os.WriteFile(name, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Join(context.Background()); err != nil {
			t.Errorf("%s: put right again: %v", what, err)
		}
		fsck(t, root)
	}
}

// Nobody asks for maintenance where each command leaves a pack, and they stay few.
func TestManyPacksAreJoinedUnasked(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	for _, of := range []struct{ more, least, most int }{{ManyPacks - 3, ManyPacks / 2, ManyPacks}, {3, 0, ManyPacks / 2}} {
		s := openRoot(t, root, testOptions())
		fill(t, s, of.more)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if n := packCount(t, root); n < of.least || n > of.most {
			t.Errorf("there are %d packs", n)
		}
	}
	fsck(t, root)
}
