package main

import (
	"context"
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
	dir := flag.String("dir", "", "where to work (default: a temporary folder)")
	seconds := flag.Float64("seconds", 2, "about how long one measurement takes")
	only := flag.String("only", "", "rows to run: a part of their names")
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
	err := run(ctx, *dir, *sizes, *only, *rounds, *seconds)
	stop()
	pprof.StopCPUProfile()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, sizes, only string, rounds int, seconds float64) error {
	work, err := os.MkdirTemp(dir, "bagpipe-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // measured already
	for field := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil {
			return err
		}
		if err := measure(ctx, work, n, rounds, seconds, only); err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
	}
	return nil
}
