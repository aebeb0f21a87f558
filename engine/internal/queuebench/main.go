package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

func main() {
	sizes := flag.String("items", "10000,100000", "items, one size after the other")
	retired := flag.Int("retired", 0, "as many more items are made, and retired")
	dir := flag.String("dir", "", "where to work; workspaces made there stay, and are used again (default: a temporary folder)")
	only := flag.String("only", "", "what to measure: a part of its name (git, cold, start, changed, commands, sqlite)")
	profile := flag.String("cpuprofile", "", "write a profile of the cold scan to this file, and of the start with a checkpoint to this file with .start")
	flag.Parse()
	if err := all(*sizes, *retired, *dir, *only, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func all(sizes string, retired int, dir, only, profile string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bagpipe-bench"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	for field := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil {
			return err
		}
		b := &bench{root: filepath.Join(dir, fmt.Sprintf("items-%s-%d", field, retired)), n: n, retired: retired, only: only, profile: profile}
		if err := b.run(); err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
	}
	return nil
}

// What the design asks for, of a machine with two cores that does nothing else, at
// a million items.
const (
	mostScan     = 20 * time.Microsecond // an item
	mostStart    = 500 * time.Millisecond
	mostChanged  = 100 * time.Millisecond // more than without changes
	mostQuestion = 5 * time.Millisecond
	mostCommand  = time.Second
	mostBytes    = 150

	identifierBytes = 8
)

// bench measures one size.
type bench struct {
	root    string
	n       int
	retired int
	only    string
	profile string
	git     time.Duration
	start   time.Duration // with a checkpoint
	gitCPU  time.Duration // of all processes: the judge where others are at work, too
}

func (b *bench) run() error {
	if _, err := os.Stat(b.root); err != nil {
		if err := makeWorkspace(context.Background(), b.root, b.n, b.retired); err != nil {
			return err
		}
	}
	fmt.Printf("%d items, %d retired, %d cores\n", b.n, b.retired, runtime.GOMAXPROCS(0))
	for _, part := range []struct {
		name    string
		measure func() error
	}{{"git", b.gitPipeline}, {"cold", b.cold}, {"start", b.warm}, {"changed", b.changed}, {"commands", b.commands}, {"sqlite", b.sqlite}} {
		if !strings.Contains(part.name, b.only) {
			continue
		}
		if err := part.measure(); err != nil {
			return err
		}
	}
	return nil
}

// row prints a figure; most is what it must not be above, or 0.
func (b *bench) row(name string, took, most time.Duration, note string) {
	if most > 0 {
		verdict := "held"
		if took > most {
			verdict = "MISSED"
		}
		note = strings.TrimPrefix(note+fmt.Sprintf("; at most %s: %s", most, verdict), "; ")
	}
	fmt.Printf("  %-48s %10s  %7.2f µs an item  %s\n", name, took.Round(10*time.Microsecond), float64(took.Nanoseconds())/1000/float64(b.n), note)
}

// gitPipeline reads the same records through the git program.
func (b *bench) gitPipeline() error {
	if _, err := exec.LookPath("git"); err != nil {
		fmt.Println("  git is not installed; its pipeline is left out")
		return nil
	}
	script := `git -C "$0" ls-tree -r HEAD items | awk '{print $3}' | git -C "$0" cat-file --batch | wc -c`
	start := time.Now()
	cmd := exec.Command("sh", "-c", script, b.root)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git pipeline: %w: %s", err, out)
	}
	b.git = time.Since(start)
	b.gitCPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	b.row("git ls-tree -r | git cat-file --batch", b.git, 0, "processor "+b.gitCPU.Round(time.Millisecond).String())
	return nil
}

// open opens an engine and loads its index.
func (b *bench) open() (e *engine.Engine, opened, loaded time.Duration, err error) {
	start := time.Now()
	if e, err = engine.Open(context.Background(), b.root, options()); err != nil {
		return nil, 0, 0, err
	}
	opened = time.Since(start)
	start = time.Now()
	if err = e.Index.Load(context.Background()); err != nil {
		return nil, 0, 0, errors.Join(err, e.Close())
	}
	return e, opened, time.Since(start), nil
}

// processor is the time this process has spent on all cores.
func processor() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// profiled writes a profile until stop is called, if one is wanted.
func (b *bench) profiled(suffix string) (stop func(), err error) {
	if b.profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(b.profile + suffix)
	if err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, pprof.StartCPUProfile(f)
}

// cold scans everything.
func (b *bench) cold() error {
	if err := os.RemoveAll(filepath.Join(b.root, layout.IndexDir)); err != nil {
		return err
	}
	stop, err := b.profiled("")
	if err != nil {
		return err
	}
	defer stop()
	used := processor()
	e, _, loaded, err := b.open()
	if err != nil {
		return err
	}
	used = processor() - used
	note := "processor " + used.Round(time.Millisecond).String()
	if b.git > 0 {
		note += fmt.Sprintf("; %.1f × as fast as the git pipeline (at least 1.5, aim 3), with %.1f × its processor time", b.git.Seconds()/loaded.Seconds(), used.Seconds()/b.gitCPU.Seconds())
	}
	b.row("cold scan, no checkpoint", loaded, time.Duration(b.n)*mostScan, note)
	start := time.Now()
	if err := e.Index.SaveIndex(); err != nil {
		return err
	}
	b.row("checkpoint written", time.Since(start), 0, "")
	return e.Close()
}

// warm starts from a checkpoint, and asks.
func (b *bench) warm() error {
	before := heap()
	stop, err := b.profiled(".start")
	if err != nil {
		return err
	}
	e, opened, loaded, err := b.open()
	stop()
	if err != nil {
		return err
	}
	defer e.Close()
	b.start = opened + loaded
	b.row("start with a checkpoint", b.start, mostStart, fmt.Sprintf("of it the index %s", loaded.Round(time.Millisecond)))
	after := heap()
	each := float64(after-before)/float64(b.n) - identifierBytes
	verdict := "held"
	if each > mostBytes {
		verdict = "MISSED"
	}
	fmt.Printf("  %-48s %10.0f bytes an item; at most %d: %s\n", "memory over the identifiers, labels and all", each, mostBytes, verdict)
	return b.ask(e)
}

func (b *bench) changed() error {
	if b.n < 2000 {
		return nil
	}
	if err := change(context.Background(), b.root, 1, 100); err != nil {
		return err
	}
	e, opened, loaded, err := b.open()
	if err != nil {
		return err
	}
	b.row("start, 100 items changed since the checkpoint", opened+loaded, b.start+mostChanged, fmt.Sprintf("of it the index %s", loaded.Round(time.Millisecond)))
	return e.Close()
}
