package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	rounds := flag.Int("rounds", 5, "interleaved rounds; the median counts")
	dir := flag.String("dir", "", "where to work (default: a temporary folder)")
	only := flag.String("only", "", "what to measure: a part of its name (small, large, one, many, unpack)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *dir, *only, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, only string, rounds int) (err error) {
	work, err := os.MkdirTemp(dir, "bagpipe-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	program := filepath.Join(work, "bagpipe")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "bagpipe/cmd/bagpipe").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	b := &bench{program: program, rounds: rounds}
	for _, s := range []struct {
		name    string
		measure func(ctx context.Context, top string) error
	}{
		{"small", b.small}, {"large", b.large}, {"one", b.one}, {"many", b.many}, {"unpack", b.unpack},
	} {
		if !strings.Contains(s.name, only) {
			continue
		}
		top := filepath.Join(work, s.name)
		if err := errors.Join(os.Mkdir(top, 0o755), s.measure(ctx, top), os.RemoveAll(top)); err != nil {
			return err
		}
	}
	return nil
}

// bench is what the measurements share.
type bench struct {
	program string
	rounds  int
}
