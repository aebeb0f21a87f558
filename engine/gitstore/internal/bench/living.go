package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"bagpipe/engine/gitstore"
)

// living measures what counts over the years, on the workspace of one row after
// its transitions: opening, reading everything, an item's history, and the bytes
// of a transition, before maintenance, after it, and compacted.
func living(ctx context.Context, root string, items, transitions int, base int64) error {
	if err := probes(ctx, root, items); err != nil {
		return err
	}
	peer := root + ".peer"
	if err := link(root, peer); err != nil { // before maintenance, for git repack
		return err
	}
	s, err := gitstore.Open(root, options())
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing was written
	if err := walk(ctx, s, items, "read everything"); err != nil {
		return err
	}
	transitions += 1 + probed
	each := func(when string) (int64, error) {
		size, packs, err := packBytes(root)
		if err != nil {
			return 0, err
		}
		fmt.Printf("%s: %d packs, %d bytes a transition, %d MB in all\n", when, packs, (size-base)/int64(max(1, transitions)), size>>20)
		return size, logs(ctx, s, root, items)
	}
	before, err := each("before maintenance")
	if err != nil {
		return err
	}
	begin := time.Now()
	if _, err := s.Join(ctx); err != nil {
		return err
	}
	if _, err := each("joined in " + time.Since(begin).Round(time.Millisecond).String()); err != nil {
		return err
	}
	begin = time.Now()
	if _, err := s.Maintain(ctx); err != nil {
		return err
	}
	after, err := each("maintained in " + time.Since(begin).Round(time.Millisecond).String())
	if err != nil {
		return err
	}
	if err := walk(ctx, s, items, "read everything again"); err != nil {
		return err
	}
	return repack(ctx, peer, before, after)
}

// repack is what git makes of the same history.
func repack(ctx context.Context, peer string, before, after int64) error {
	begin := time.Now()
	if err := git(ctx, peer, nil, "repack", "-adq"); err != nil {
		return err
	}
	took := time.Since(begin)
	size, _, err := packBytes(peer)
	if err != nil {
		return err
	}
	fmt.Printf("git repack -ad of the same in %s: %d MB; before maintenance %.2f x, after it %.2f x as much\n",
		took.Round(time.Millisecond), size>>20, float64(before)/float64(size), float64(after)/float64(size))
	return os.RemoveAll(peer)
}

// itemDepth is how many folders below items/ an item's folder stands.
const itemDepth = 5

func walk(ctx context.Context, s *gitstore.Store, items int, what string) error {
	v, err := s.Tip()
	if err != nil {
		return err
	}
	begin := time.Now()
	var n atomic.Int64
	err = v.Folders(ctx, gitstore.Hash{}, "items", itemDepth, func(f gitstore.Folder) error {
		for _, name := range []string{"manifest.json", "execution.json"} {
			data, err := f.ReadFile(name)
			if err != nil {
				return err
			}
			if data != nil {
				n.Add(1)
			}
		}
		return nil
	})
	fmt.Printf("%s: %d files, %.1f µs an item\n", what, n.Load(), float64(time.Since(begin).Microseconds())/float64(items))
	return err
}

// logs compares an item's history with git log.
func logs(ctx context.Context, s *gitstore.Store, root string, items int) error {
	path := item(items / 2)
	begin, n := time.Now(), 0
	for _, err := range s.History(ctx, gitstore.HistoryOptions{Path: path}) {
		if err != nil {
			return err
		}
		n++
	}
	own := time.Since(begin)
	begin = time.Now()
	if err := git(ctx, root, nil, "log", "--format=%H", "--", path); err != nil {
		return err
	}
	peer := time.Since(begin)
	fmt.Printf("  an item's history (%d commits): %s; git log: %s\n", n, own.Round(10*time.Microsecond), peer.Round(10*time.Microsecond))
	return nil
}

func packBytes(root string) (size int64, packs int, err error) {
	list, err := os.ReadDir(filepath.Join(root, ".git", "objects", "pack"))
	if err != nil {
		return 0, 0, err
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			return 0, 0, err
		}
		size += info.Size()
		if strings.HasSuffix(e.Name(), ".pack") {
			packs++
		}
	}
	return size, packs, nil
}
