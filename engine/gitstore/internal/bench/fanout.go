package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/gitstore"
)

// shapes are the ways to nest the items' folders that are compared, with as many
// items as make a transition of megabytes.
var shapes = []struct {
	name  string
	shape shape
	most  int
}{
	{"16 x 16 x 16 x 16", shape{1, 1, 1, 1}, 1e9},
	{"16 x 16 x 16", shape{1, 1, 1}, 1e9},
	{"16, five deep", shape{1, 1, 1, 1, 1}, 1e9},
	{"256 x 256", shape{2, 2}, 1e9},
	{"4096", shape{3}, 100_000},
	{"flat", shape{}, 100_000},
}

// fanouts prints, for each number of items and each shape, the bytes of pack and
// the time of a transition, alone and in groups of 100.
func fanouts(ctx context.Context, work string, p plan) error {
	return p.each(func(n int) error {
		fmt.Printf("\n%d items\n%-20s %18s %14s %18s %14s\n", n, "", "alone: bytes", "µs", "by 100: bytes", "µs")
		for i, s := range shapes {
			if n > s.most {
				continue
			}
			root := filepath.Join(work, fmt.Sprintf("fanout-%d-%d", n, i))
			if err := fanout(ctx, root, n, s.name, s.shape, p.seconds); err != nil {
				return err
			}
			if err := os.RemoveAll(root); err != nil {
				return err
			}
		}
		return nil
	})
}

func fanout(ctx context.Context, root string, n int, name string, sh shape, seconds float64) error {
	if err := nest(ctx, root, n, sh); err != nil {
		return err
	}
	s, err := gitstore.Open(root, options())
	if err != nil {
		return err
	}
	fmt.Printf("%-20s", name)
	for _, group := range []int{1, 100} {
		before, _, err := packBytes(root)
		if err != nil {
			return err
		}
		begin, done := time.Now(), 0
		for time.Since(begin).Seconds() < seconds && done < 200*group {
			list := make([]transition, group)
			for k := range list {
				i := rand.New(rand.NewPCG(uint64(group), uint64(done+k))).IntN(n)
				list[k] = changeOf(i, sh.path(i), done+k+1)
			}
			if err := together(ctx, s, list); err != nil {
				return err
			}
			done += group
		}
		took := time.Since(begin)
		after, _, err := packBytes(root)
		if err != nil {
			return err
		}
		fmt.Printf(" %18d %14d", (after-before)/int64(done), took.Microseconds()/int64(done))
	}
	fmt.Println()
	return s.Close()
}

// nest makes a workspace whose items are all there, with next to nothing in
// them: their trees are what is measured.
func nest(ctx context.Context, root string, n int, sh shape) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := gitstore.Init(ctx, root, options(), map[string][]byte{"bagpipe.yaml": []byte("schema: 1\n")}, "start", gitstore.Signature{}); err != nil {
		return err
	}
	s, err := gitstore.Open(root, options())
	if err != nil {
		return err
	}
	const batch = 50_000
	for from := 0; from < n; from += batch {
		files := map[string][]byte{}
		for i := from; i < min(n, from+batch); i++ {
			dir := sh.path(i)
			files[dir+"/manifest.json"], files[dir+"/execution.json"] = []byte("{}\n"), []byte("{ }\n")
		}
		if err := commit(ctx, s, transition{files: files, message: "populate\n"}); err != nil {
			return err
		}
	}
	return s.Close()
}
