package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
)

// probe is the process that probes starts: it opens a workspace, commits some
// transitions, and says how long it took to open, to commit the first one, and
// how much memory it held at most.
func probe(ctx context.Context, root, counts string) error {
	items, transitions, _ := strings.Cut(counts, ",")
	n, err := strconv.Atoi(items)
	if err != nil {
		return err
	}
	todo, err := strconv.Atoi(transitions)
	if err != nil {
		return err
	}
	begin := time.Now()
	s, err := gitstore.Open(root, options())
	if err != nil {
		return err
	}
	opened := time.Since(begin)
	if err := commit(ctx, s, newTransition(9_000, 0, n)); err != nil {
		return err
	}
	first := time.Since(begin)
	const group = 500
	for k := 1; k < todo; k += group {
		list := make([]transition, group)
		for i := range list {
			list[i] = newTransition(9_000, k+i, n)
		}
		if err := together(ctx, s, list); err != nil {
			return err
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	fmt.Printf("a process with %d transitions: open %s, first commit durable after %s, at most %d MB of memory\n",
		max(1, todo), opened.Round(10*time.Microsecond), first.Round(10*time.Microsecond), peak>>10)
	return nil
}

// peakMemory is the most the process had resident, in KiB.
func peakMemory() (int, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			return strconv.Atoi(strings.Fields(rest)[0])
		}
	}
	return 0, fmt.Errorf("read %s: no VmHWM", f.Name())
}

// probed is about how many transitions the process commits that commits for long.
const probed = 50_000

// probes opens the workspace in processes of their own: one command's, and one
// that commits for long.
func probes(ctx context.Context, root string, items int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, todo := range []int{1, probed} {
		cmd := exec.CommandContext(ctx, self, "-probe", root, "-items", fmt.Sprintf("%d,%d", items, todo))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}
