package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/gitstore"
)

const historyGroup = 100 // transitions a pack: about what running steps make

// histories makes a history of n transitions over p.over items and measures what
// counts over the years on it.
func histories(ctx context.Context, work string, p plan) error {
	template := filepath.Join(work, fmt.Sprint(p.over))
	if err := populateOnce(ctx, template, p.over); err != nil {
		return err
	}
	base, _, err := packBytes(template)
	if err != nil {
		return err
	}
	return p.each(func(n int) error {
		root := filepath.Join(work, fmt.Sprintf("history-%d", n))
		if err := link(template, root); err != nil {
			return err
		}
		begin := time.Now()
		if err := commitMany(ctx, root, n, p.over); err != nil {
			return err
		}
		fmt.Printf("\na history of %d transitions over %d items, in groups of %d, made in %s\n", n, p.over, historyGroup, time.Since(begin).Round(time.Millisecond))
		if err := living(ctx, root, p.over, n, base); err != nil {
			return err
		}
		return os.RemoveAll(root)
	})
}

func commitMany(ctx context.Context, root string, n, items int) error {
	s, err := gitstore.Open(root, options())
	if err != nil {
		return err
	}
	for k := 0; k < n; k += historyGroup {
		list := make([]transition, min(historyGroup, n-k))
		for i := range list {
			list[i] = newTransition(8_000, k+i, items)
		}
		if err := together(ctx, s, list); err != nil {
			return err
		}
	}
	return s.Close()
}
