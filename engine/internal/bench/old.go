package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
)

// old prints what a receipt takes of one of very many items, which an anchor covers; and what the
// first command takes, without anything remembered, where nine tenths of the items are retired,
// against a workspace that never had these.
func old(b *bench, items int) (err error) {
	all, err := b.newWorkspace("old", noopWorkflow())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.remove()) }()
	if err := all.imported("default", items, 0, true); err != nil {
		return err
	}
	key := filepath.Join(b.work, "key")
	if _, err := measure(b.command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)); err != nil {
		return err
	}
	anchor, err := measure(all.command("anchor", "--key", key))
	if err != nil {
		return err
	}
	var receipts []sample
	size := 0
	item, err := all.git("ls-tree", "-r", "--name-only", "main", "items/0/0/")
	if err != nil {
		return err
	}
	id, _, ok := layout.ItemOfPath(strings.SplitN(item, "\n", 2)[0])
	if !ok {
		return fmt.Errorf("no item is in items/0/0: %s", item)
	}
	for range b.rounds {
		s, bytes, err := all.receipt(string(id))
		if err != nil {
			return err
		}
		receipts, size = append(receipts, s), bytes
	}
	s := middle(receipts)
	fmt.Printf("\nold: %d items\n  anchor, all records read   %6.1f s, CPU %.1f s, %d MB\n  a receipt                  %6d ms, CPU %d ms (target: 100 ms), %d bytes beside the records (target: 32768)\n",
		items, anchor.wall.Seconds(), anchor.cpu.Seconds(), anchor.memory>>20, s.wall.Milliseconds(), s.cpu.Milliseconds(), size)
	if err := all.remove(); err != nil {
		return err
	}
	return retired(b, items)
}

// receipt gives the time of a receipt, and its bytes without those of the records in base64.
func (w *workspace) receipt(item string) (s sample, size int, err error) {
	c := w.command("receipt", item)
	var out strings.Builder
	c.Stdout = &out
	if s, err = measure(c); err != nil {
		return s, 0, err
	}
	size = out.Len()
	record := false
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "-- ") {
			record = strings.HasPrefix(line, "-- blob ")
		}
		if record {
			size -= len(line)
		}
	}
	return s, size, nil
}

// retired prints the cold starts.
func retired(b *bench, items int) (err error) {
	few, err := b.newWorkspace("few", noopWorkflow())
	if err != nil {
		return err
	}
	many, err := b.newWorkspace("many", noopWorkflow())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.remove(), many.remove()) }()
	if err := errors.Join(few.imported("default", items/10, 0, true), many.imported("default", items/10, items-items/10, true)); err != nil {
		return err
	}
	var took [2][]sample
	for range b.rounds {
		for i, w := range []*workspace{few, many} {
			if err := os.RemoveAll(filepath.Join(w.root, ".bagpipe")); err != nil {
				return err
			}
			s, err := measure(w.command("status"))
			if err != nil {
				return err
			}
			took[i] = append(took[i], s)
		}
	}
	a, z := middle(took[0]), middle(took[1])
	fmt.Printf("  cold start, %d items           %6.2f s, CPU %.2f s, %d MB\n  the same and %d retired  %6.2f s, CPU %.2f s, %d MB: %.2f of it, CPU %.2f (target: 1.3)\n",
		items/10, a.wall.Seconds(), a.cpu.Seconds(), a.memory>>20, items-items/10, z.wall.Seconds(), z.cpu.Seconds(), z.memory>>20,
		z.wall.Seconds()/a.wall.Seconds(), z.cpu.Seconds()/a.cpu.Seconds())
	return nil
}
