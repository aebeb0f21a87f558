package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
)

// measure makes a workspace of n items and runs every row over a copy of its
// own, round after round.
func measure(ctx context.Context, work string, n int, p plan) error {
	template := filepath.Join(work, fmt.Sprint(n))
	if err := populateOnce(ctx, template, n); err != nil {
		return err
	}
	var list []row
	for _, r := range rows() {
		if strings.Contains(r.name, p.only) && (r.most == 0 || n <= r.most) {
			list = append(list, r)
		}
	}
	results := make([][]result, len(list))
	for i := range list {
		if err := os.RemoveAll(rootOf(template, i)); err != nil {
			return err
		}
		if err := link(template, rootOf(template, i)); err != nil {
			return err
		}
	}
	for round := range p.rounds {
		for i, r := range list {
			res, err := r.run(ctx, rootOf(template, i), n, 1+round*len(list)+i, p.seconds)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			results[i] = append(results[i], res)
			fmt.Fprintf(os.Stderr, "  round %d: %-24s %8.0f/s\n", round+1, r.name, res.rate())
		}
	}
	print(n, list, results)
	base, _, err := packBytes(template)
	if err != nil {
		return err
	}
	for i, r := range list {
		if r.name != livingRow {
			continue
		}
		made := 0
		for _, res := range results[i] {
			made += res.n
		}
		if err := living(ctx, rootOf(template, i), n, made, base); err != nil {
			return err
		}
	}
	for i := range list {
		for _, dir := range []string{rootOf(template, i), rootOf(template, i) + ".checkout"} {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// livingRow is the row whose workspace is maintained in the end.
const livingRow = "64 callers"

func rootOf(template string, i int) string { return fmt.Sprintf("%s.%d", template, i) }

// populateOnce makes the workspace when it is not there from an earlier call.
func populateOnce(ctx context.Context, root string, n int) error {
	if _, err := os.Stat(filepath.Join(root, "complete")); err == nil {
		return nil
	}
	begin := time.Now()
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	if err := populate(ctx, root, n); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d items made in %s\n", n, time.Since(begin).Round(time.Millisecond))
	return os.WriteFile(filepath.Join(root, "complete"), nil, 0o644)
}

// populate commits the items, a few thousand at a time, and joins the packs.
func populate(ctx context.Context, root string, n int) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	err := gitstore.Init(ctx, root, options(), map[string][]byte{"bagpipe.yaml": []byte("schema: 1\n")}, "start", gitstore.Signature{})
	if err != nil {
		return err
	}
	s, err := gitstore.Open(root, options())
	if err != nil {
		return err
	}
	const batch = 5000
	for from := 0; from < n; from += batch {
		files := map[string][]byte{}
		for i := from; i < min(n, from+batch); i++ {
			files[item(i)+"/manifest.json"] = document(i, 0, manifestSize)
			files[item(i)+"/execution.json"] = document(i, 0, executionSize)
		}
		if err := commit(ctx, s, transition{files: files, message: "populate\n"}); err != nil {
			return err
		}
	}
	if _, err := s.Maintain(ctx); err != nil {
		return err
	}
	return s.Close()
}

// link copies a workspace, sharing the files of packs, which never change.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case strings.HasPrefix(d.Name(), "pack-"):
			return os.Link(path, target)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}

// print writes the table: medians, and each row against the two peers.
func print(n int, list []row, results [][]result) {
	med := make([]result, len(list))
	peers := map[string]result{}
	for i, rs := range results {
		slices.SortFunc(rs, func(a, b result) int {
			if a.rate() < b.rate() {
				return -1
			}
			return 1
		})
		med[i] = rs[len(rs)/2]
		peers[list[i].name] = med[i]
	}
	fmt.Printf("\n%d items in the tree\n%-24s %10s %12s %14s %12s %12s\n", n, "", "a second", "cpu µs each", "x add+commit", "x fast-imp.", "cpu x f.-i.")
	for i, r := range med {
		fmt.Printf("%-24s %10.0f %12.0f", list[i].name, r.rate(), r.cpuEach())
		for _, c := range []struct {
			peer  string
			of    func(result) float64
			width int
		}{{"git add + commit", result.rate, 14}, {"git fast-import", result.rate, 12}, {"git fast-import", result.cpuEach, 12}} {
			p, ok := peers[c.peer]
			if !ok || c.of(p) == 0 {
				fmt.Printf(" %*s", c.width, "")
				continue
			}
			fmt.Printf(" %*.2f", c.width, c.of(r)/c.of(p))
		}
		fmt.Println()
	}
}
