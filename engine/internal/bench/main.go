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
	"strconv"
	"strings"
)

func main() {
	rounds := flag.Int("rounds", 3, "interleaved rounds; the median counts")
	dir := flag.String("dir", "", "where to work (default: a temporary folder)")
	only := flag.String("only", "", "tables to print: steps, commands, robots, latency, inbox, accession, feeds, schedules, fixity, exports, sites, pushes, old or catalogs (default: all)")
	items := flag.String("items", "1000,10000,100000", "how many items the no-op steps are measured with")
	drops := flag.Int("drops", 10_000, "how many folders are dropped into the inbox")
	peer := flag.String("peer", "", "a script that is given folders IN, WORK and TO, and makes a checked bag in TO of each folder of IN (default: shared/peers/accession.py beside the repository)")
	robots := flag.Int("robots", 10_000, "how many items a robot that lives is measured with")
	synced := flag.Int("synced", 100_000, "how many items two sites have")
	aged := flag.Int("old", 1_000_000, "how many items a workspace has of which most are retired")
	posts := flag.Int("posts", manyPosts, "how many activities the feeds are made of")
	files := flag.Int("files", 1_000_000, "how many files a catalog has, twenty in a folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, &bench{rounds: *rounds, peer: *peer, posts: *posts, synced: *synced, aged: *aged, files: *files}, *dir, *only, *items, *drops, *robots)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b *bench, dir, only, items string, drops, robots int) (err error) {
	work, err := os.MkdirTemp(dir, "bagpipe-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	b.command = func(name string, args ...string) *exec.Cmd { return exec.CommandContext(ctx, name, args...) }
	if err := b.findPeer(); err != nil {
		return err
	}
	b.work, b.program = work, filepath.Join(work, "bagpipe")
	if out, err := b.command("go", "build", "-o", b.program, "bagpipe/cmd/bagpipe").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	var sizes []int
	for s := range strings.SplitSeq(items, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("-items %s: expected numbers", items)
		}
		sizes = append(sizes, n)
	}
	tables := map[string]func() error{
		"steps":     func() error { return b.noops(sizes) },
		"commands":  b.commands,
		"robots":    func() error { return b.living(robots) },
		"latency":   b.latency,
		"inbox":     func() error { return b.inbox(drops) },
		"accession": b.accessions,
		"feeds":     func() error { return b.feeds(b.posts) },
		"schedules": b.schedules,
		"fixity":    b.fixity,
		"exports":   func() error { return exports(b) },
		"sites":     func() error { return b.sites(b.synced) },
		"pushes":    func() error { return pushes(b) },
		"old":       func() error { return old(b, b.aged) },
		"catalogs":  func() error { return catalogs(b) },
	}
	for _, name := range []string{"steps", "commands", "robots", "latency", "inbox", "accession", "feeds", "schedules", "fixity", "exports", "sites", "pushes", "old", "catalogs"} {
		if only == "" || only == name {
			if err := tables[name](); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// findPeer finds the script that stands beside the repository, from whatever folder of it the
// program was started.
func (b *bench) findPeer() (err error) {
	if b.peer != "" {
		b.peer, err = filepath.Abs(b.peer)
		return err
	}
	mod, err := b.command("go", "list", "-m", "-f", "{{.Dir}}", "bagpipe").Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	b.peer = filepath.Join(strings.TrimSpace(string(mod)), "..", "shared", "peers", "accession.py")
	return nil
}
