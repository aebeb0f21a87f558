package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bagpipe/engine/gitstore"
)

// result is one measurement.
type result struct {
	n    int
	wall time.Duration
	cpu  time.Duration
}

func (r result) rate() float64 { return float64(r.n) / r.wall.Seconds() }
func (r result) cpuEach() float64 {
	return float64(r.cpu.Microseconds()) / float64(max(1, r.n))
}

// row is one line of the table. run makes transitions in the workspace root for
// about the time given; runs differ in their number.
type row struct {
	name string
	most int // items in the tree it is run with at most; 0: any number
	run  func(ctx context.Context, root string, items, run int, seconds float64) (result, error)
}

func rows() []row {
	list := []row{
		// Beyond, its checkout alone would be two million files, and a commit ten seconds.
		{name: "git add + commit", most: 100_000, run: addCommit},
		{name: "git fast-import", run: fastImport},
	}
	for _, size := range []int{1, 10, 100, 1000} {
		list = append(list, row{name: fmt.Sprintf("groups of %d", size), run: groups(size)})
	}
	for _, n := range []int{1, 8, 64} {
		list = append(list, row{name: fmt.Sprintf("%d callers", n), run: callers(n, nil)})
	}
	return append(list, row{name: "64 callers, caught up", run: callers(64, func(string) bool { return true })})
}

func options() gitstore.Options {
	return gitstore.Options{Now: time.Now, Committer: gitstore.Signature{Name: "Bagpipe", Email: "bagpipe@localhost"}}
}

func usage(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timed measures f, which tells how many transitions it made.
func timed(who int, f func() (int, error)) (result, error) {
	cpu, begin := usage(who), time.Now()
	n, err := f()
	return result{n, time.Since(begin), usage(who) - cpu}, err
}

func commit(ctx context.Context, s *gitstore.Store, tr transition) error {
	_, err := s.CommitTo(ctx, item(tr.item), func(gitstore.Reader) (*gitstore.Change, error) {
		return &gitstore.Change{Files: tr.files, Message: tr.message}, nil
	})
	return err
}

// prepared are transitions made before the clock starts.
func prepared(run, n, items int) []transition {
	list := make([]transition, n)
	for k := range list {
		list[k] = newTransition(run, k, items)
	}
	return list
}

// groups hands in size edits at once, and the next when all are answered.
func groups(size int) func(context.Context, string, int, int, float64) (result, error) {
	return func(ctx context.Context, root string, items, run int, seconds float64) (result, error) {
		s, err := gitstore.Open(root, options())
		if err != nil {
			return result{}, err
		}
		list := prepared(run, min(20_000, max(300, size*40)), items)
		begin := time.Now()
		r, err := timed(syscall.RUSAGE_SELF, func() (int, error) {
			done := 0
			for done+size <= len(list) && time.Since(begin).Seconds() < seconds {
				if err := together(ctx, s, list[done:done+size]); err != nil {
					return done, err
				}
				done += size
			}
			return done, nil
		})
		if err != nil {
			return r, err
		}
		return r, s.Close()
	}
}

func together(ctx context.Context, s *gitstore.Store, list []transition) error {
	if len(list) == 1 {
		return commit(ctx, s, list[0])
	}
	var wg sync.WaitGroup
	errs := make([]error, len(list))
	for i := range list {
		wg.Go(func() { errs[i] = commit(ctx, s, list[i]) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// callers lets n goroutines commit, each waiting for its own commit; with follow
// until the followed files have caught up.
func callers(n int, follow func(string) bool) func(context.Context, string, int, int, float64) (result, error) {
	return func(ctx context.Context, root string, items, run int, seconds float64) (result, error) {
		o := options()
		o.Follow = follow
		s, err := gitstore.Open(root, o)
		if err != nil {
			return result{}, err
		}
		list := prepared(run, 20_000, items)
		if follow != nil {
			if err := makeFolders(root, list); err != nil {
				return result{}, err
			}
		}
		begin := time.Now()
		r, err := timed(syscall.RUSAGE_SELF, func() (int, error) {
			var next, done atomic.Int64
			var wg sync.WaitGroup
			errs := make([]error, n)
			for i := range n {
				wg.Go(func() {
					for errs[i] == nil && time.Since(begin).Seconds() < seconds {
						k := int(next.Add(1)) - 1
						if k >= len(list) {
							return
						}
						errs[i] = commit(ctx, s, list[k])
						done.Add(1)
					}
				})
			}
			wg.Wait()
			for _, err := range errs {
				if err != nil {
					return int(done.Load()), err
				}
			}
			return int(done.Load()), s.CaughtUp(ctx)
		})
		if err != nil {
			return r, err
		}
		return r, s.Close()
	}
}

// makeFolders puts the items' files where they stand in a workspace at work,
// where admission made them.
func makeFolders(root string, list []transition) error {
	for _, tr := range list {
		for name := range tr.files {
			name = filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			size := executionSize
			if filepath.Base(name) == "manifest.json" {
				size = manifestSize
			}
			if err := os.WriteFile(name, document(tr.item, 0, size), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func git(ctx context.Context, dir string, in io.Reader, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Stdin = in
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git %v: %w\n%s", args, err, out.Bytes())
	}
	return nil
}

// addCommit works in a clone with a checkout, which the first round makes.
func addCommit(ctx context.Context, root string, items, run int, seconds float64) (result, error) {
	clone := root + ".checkout"
	if _, err := os.Stat(clone); err != nil {
		if err := git(ctx, root, nil, "clone", "-q", root, clone); err != nil {
			return result{}, err
		}
	}
	list := prepared(run, 500, items)
	begin := time.Now()
	return timed(syscall.RUSAGE_CHILDREN, func() (int, error) {
		for k, tr := range list {
			if time.Since(begin).Seconds() > seconds {
				return k, nil
			}
			for _, p := range slices.Sorted(maps.Keys(tr.files)) {
				if err := os.WriteFile(filepath.Join(clone, p), tr.files[p], 0o644); err != nil {
					return k, err
				}
			}
			args := append([]string{"add", "--"}, slices.Sorted(maps.Keys(tr.files))...)
			if err := git(ctx, clone, nil, args...); err != nil {
				return k, err
			}
			if err := git(ctx, clone, nil, "commit", "-qm", tr.message); err != nil {
				return k, err
			}
		}
		return len(list), nil
	})
}

// fastImport feeds the same transitions to git fast-import.
func fastImport(ctx context.Context, root string, items, run int, seconds float64) (result, error) {
	list := prepared(run, max(500, int(1200*seconds)), items)
	var in bytes.Buffer
	w := bufio.NewWriter(&in)
	for k, tr := range list {
		fmt.Fprintf(w, "commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata %d\n%s\n", 1_800_000_000+k, len(tr.message), tr.message)
		if k == 0 {
			fmt.Fprintf(w, "from refs/heads/main^0\n")
		}
		for _, p := range slices.Sorted(maps.Keys(tr.files)) {
			fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", p, len(tr.files[p]), tr.files[p])
		}
	}
	if err := w.Flush(); err != nil {
		return result{}, err
	}
	return timed(syscall.RUSAGE_CHILDREN, func() (int, error) {
		return len(list), git(ctx, root, &in, "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet")
	})
}
