package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
)

func main() {
	sizes := flag.String("items", "1000,10000,100000", "items in the tree, one size after the other")
	rounds := flag.Int("rounds", 3, "interleaved rounds; the median counts")
	dir := flag.String("dir", "", "where to work; the workspaces made there stay, and are used again (default: a temporary folder)")
	seconds := flag.Float64("seconds", 2, "about how long one measurement takes")
	only := flag.String("only", "", "rows to run: a part of their names")
	history := flag.Bool("history", false, "measure instead what counts over the years, after so many transitions as -items says")
	over := flag.Int("over", 10_000, "with -history: the items in the tree")
	shapes := flag.Bool("fanout", false, "measure instead how the items' folders are best nested")
	probed := flag.String("probe", "", "what one process needs that opens this workspace, and with -items commits so many transitions")
	profile := flag.String("cpuprofile", "", "write a profile of the processor's time to this file")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	o := plan{sizes: *sizes, only: *only, rounds: *rounds, seconds: *seconds, over: *over}
	var err error
	switch {
	case *probed != "":
		err = probe(ctx, *probed, *sizes)
	default:
		measureAll := run
		switch {
		case *shapes:
			measureAll = fanouts
		case *history:
			measureAll = histories
		}
		err = inFolder(*dir, func(work string) error { return measureAll(ctx, work, o) })
	}
	stop()
	pprof.StopCPUProfile()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// plan is what was asked for.
type plan struct {
	sizes, only string
	rounds      int
	over        int
	seconds     float64
}

// inFolder gives do the folder asked for, or a temporary one.
func inFolder(dir string, do func(string) error) (err error) {
	if dir != "" {
		return do(dir)
	}
	work, err := os.MkdirTemp("", "bagpipe-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	return do(work)
}

func (p plan) each(do func(n int) error) error {
	for field := range strings.SplitSeq(p.sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil {
			return err
		}
		if err := do(n); err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
	}
	return nil
}

func run(ctx context.Context, work string, p plan) error {
	return p.each(func(n int) error { return measure(ctx, work, n, p) })
}
