package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
)

// living measures what counts over the years, on the workspace of one row after
// its transitions: opening, reading everything, an item's history, and the bytes
// of a transition, before maintenance, after it, and compacted.
func living(ctx context.Context, root string, items, transitions int, base int64) error {
	begin := time.Now()
	s, err := gitstore.Open(root, options())
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing was written
	fmt.Printf("open: %s\n", time.Since(begin).Round(10*time.Microsecond))
	if err := walk(ctx, s, items, "read everything"); err != nil {
		return err
	}
	each := func(when string) error {
		size, packs, err := packBytes(root)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d packs, %d bytes a transition\n", when, packs, (size-base)/int64(max(1, transitions)))
		return logs(ctx, s, root, items)
	}
	if err := each("before maintenance"); err != nil {
		return err
	}
	begin = time.Now()
	if _, err := s.Maintain(ctx); err != nil {
		return err
	}
	if err := each("maintained in " + time.Since(begin).Round(time.Millisecond).String()); err != nil {
		return err
	}
	if err := walk(ctx, s, items, "read everything again"); err != nil {
		return err
	}
	begin = time.Now()
	if _, err := s.Compact(ctx); err != nil {
		return err
	}
	size, _, err := packBytes(root)
	if err != nil {
		return err
	}
	fmt.Printf("compacted in %s: %d bytes in all\n", time.Since(begin).Round(time.Millisecond), size)
	if err := git(ctx, root, nil, "repack", "-adq"); err != nil {
		return err
	}
	peer, _, err := packBytes(root)
	if err != nil {
		return err
	}
	fmt.Printf("git repack -ad: %d bytes in all; compacted is %.2f of it\n", peer, float64(size)/float64(peer))
	return nil
}

func walk(ctx context.Context, s *gitstore.Store, items int, what string) error {
	v, err := s.Tip()
	if err != nil {
		return err
	}
	begin, n := time.Now(), 0
	err = v.Walk(ctx, "items", nil, func(string, []byte) error { n++; return nil })
	fmt.Printf("%s: %d files, %.1f µs an item\n", what, n, float64(time.Since(begin).Microseconds())/float64(items))
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
