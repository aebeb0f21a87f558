package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"bagpipe/layout"
)

const (
	pushers    = 50
	pushesEach = 20
	// pauseBetween is how long a person takes on the average from an answer to the next push.
	pauseBetween = 10 * time.Second
	pushedItems  = 2_000
)

// pushes prints what a run does that syncs every second, against one that does not, and how
// people are answered who push beside it.
func pushes(b *bench) error {
	var apart, synced []float64
	for range b.rounds {
		for _, every := range []string{"", "1s"} {
			rate, err := syncingRun(b, every, nil)
			if err != nil {
				return err
			}
			if every == "" {
				apart = append(apart, rate)
			} else {
				synced = append(synced, rate)
			}
		}
	}
	var p crowd
	rate, err := syncingRun(b, "1s", &p)
	if err != nil {
		return err
	}
	fmt.Printf("\nsyncing: %d items, %d steps each, run --watch -j 2, medians of %d\n"+
		"  no sync              %7.0f steps/s\n  a sync every second  %7.0f steps/s: %.2f of it (target: 0.9)\n  with people, too     %7.0f steps/s\n"+
		"people: %d push %d times each to for/, %s apart: %d of %d are answered with joined (target: all), median %d ms (target: 1000), most %d ms\n",
		pushedItems, stepsEach, b.rounds, middleOf(apart), middleOf(synced), middleOf(synced)/middleOf(apart), rate,
		pushers, pushesEach, pauseBetween, p.joined, pushers*pushesEach, median(p.took).Milliseconds(), longest(p.took).Milliseconds())
	return errors.Join(p.wrong...)
}

// syncingRun gives the steps a second of a run --watch over new items; beside it people push, if there
// are any.
func syncingRun(b *bench, every string, p *crowd) (rate float64, err error) {
	w, err := b.newWorkspace("pushed", noopWorkflow())
	if err != nil {
		return 0, err
	}
	hub := filepath.Join(b.work, "hub.git")
	defer func() { err = errors.Join(err, w.remove(), os.RemoveAll(hub)) }()
	if err := w.register(pushedItems); err != nil { // with their bytes, as their steps are done
		return 0, err
	}
	for _, c := range [][]string{{"site", "lab"}, {"remote", "add", "origin", hub}} {
		if _, err := measure(w.command(c...)); err != nil {
			return 0, err
		}
	}
	if _, err := measure(b.command("git", "init", "-q", "--bare", "-b", "main", hub)); err != nil {
		return 0, err
	}
	if every != "" {
		if err := w.setting("sync: {every: " + every + "}\n"); err != nil {
			return 0, err
		}
	}
	if p != nil {
		if err := p.prepare(w); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, p.remove()) }()
	}
	if _, err := measure(w.command("sync")); err != nil {
		return 0, err
	}
	c := w.command("run", "--watch", "-j", "2", "-q")
	begin := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	var people sync.WaitGroup
	if p != nil {
		people.Go(func() { p.push(w.root) })
	}
	took, err := w.whenDone(begin)
	people.Wait()
	return float64(pushedItems*stepsEach) / took.Seconds(), errors.Join(err, c.Process.Signal(syscall.SIGTERM), c.Wait())
}

// setting adds to the workspace's settings.
func (w *workspace) setting(text string) error {
	name := filepath.Join(w.root, "bagpipe.yaml")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(old, text...), 0o666)
}

// whenDone waits until the last step of every item is completed, and says how long after begin that was.
func (w *workspace) whenDone(begin time.Time) (time.Duration, error) {
	const limit = 10 * time.Minute
	last, done := "", 0
	for time.Since(begin) < limit {
		time.Sleep(300 * time.Millisecond)
		tip, err := w.git("rev-parse", "main")
		if err != nil {
			return 0, err
		}
		if tip == last {
			continue
		}
		args := []string{"rev-list", "--count", "--fixed-strings", "--grep", fmt.Sprintf("step%d: completed", stepsEach), tip}
		if last != "" {
			args = append(args, "^"+last)
		}
		out, err := w.git(args...)
		if err != nil {
			return 0, err
		}
		more, err := strconv.Atoi(out)
		if done, last = done+more, tip; err != nil || done >= pushedItems {
			return time.Since(begin), err
		}
	}
	return 0, fmt.Errorf("the run has not ended after %s", limit)
}

// crowd is people who each have a repository, and push what they committed there.
type crowd struct {
	dir     string
	command func(name string, args ...string) *exec.Cmd

	mu     sync.Mutex // guards the rest
	took   []time.Duration
	joined int
	wrong  []error
}

// prepare makes each person's repository, in which an item of that person's has twenty labels, one
// after the other, each a branch.
func (p *crowd) prepare(w *workspace) error {
	p.dir, p.command = filepath.Join(w.b.work, "people"), w.b.command
	out, err := w.git("ls-tree", "-r", "--name-only", "main", "items/")
	if err != nil {
		return err
	}
	n := 0
	for path := range strings.Lines(out) {
		path = strings.TrimSpace(path)
		if _, rest, ok := layout.ItemOfPath(path); !ok || rest != layout.ManifestJSON || n == pushers {
			continue
		}
		manifest, err := w.git("show", "main:"+path)
		if err != nil {
			return err
		}
		own := p.own(n)
		if _, err := measure(w.b.command("git", "clone", "-q", "--bare", "--shared", w.root, own)); err != nil {
			return err
		}
		m, err := layout.DecodeManifest([]byte(manifest))
		if err != nil {
			return err
		}
		var in bytes.Buffer
		for i := range pushesEach {
			label := strings.Replace(manifest, fmt.Sprintf("\"label\": %q", m.Label), fmt.Sprintf("\"label\": \"%d of %d\"", i, n), 1) + "\n"
			from := "refs/heads/main"
			if i > 0 {
				from = fmt.Sprintf("refs/heads/p%d", i-1)
			}
			fmt.Fprintf(&in, "commit refs/heads/p%d\ncommitter P%d <p%d@example.org> %d +0000\ndata 8\na label\n\nfrom %s\nM 100644 inline %s\ndata %d\n%s\n", i, n, n, time.Now().Unix(), from, path, len(label), label)
		}
		c := w.b.command("git", "-C", own, "fast-import", "--quiet")
		c.Stdin = &in
		if _, err := measure(c); err != nil {
			return err
		}
		n++
	}
	return nil
}

func (p *crowd) own(n int) string { return filepath.Join(p.dir, fmt.Sprint(n)) }

func (p *crowd) remove() error { return os.RemoveAll(p.dir) }

// push has all of them push, each when the last was answered and some time is over. What git refused is
// told with the figures, not in their place.
func (p *crowd) push(root string) {
	var all sync.WaitGroup
	for n := range pushers {
		all.Go(func() {
			for i := range pushesEach {
				time.Sleep(time.Duration(rand.Int64N(2 * int64(pauseBetween))))
				p.pushOne(root, n, i)
			}
		})
	}
	all.Wait()
}

func (p *crowd) pushOne(root string, n, i int) {
	branch := fmt.Sprintf("for/p%d-%d", n, i)
	begin := time.Now()
	said, err := p.command("git", "-C", p.own(n), "push", "-q", root, fmt.Sprintf("refs/heads/p%d:refs/heads/%s", i, branch)).CombinedOutput()
	took, out := time.Since(begin), string(said)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = append(p.took, took)
	if strings.Contains(out, branch+": joined") {
		p.joined++
	} else if err != nil {
		p.wrong = append(p.wrong, fmt.Errorf("push %s: %w\n%s", branch, err, out))
	}
}

func middleOf(f []float64) float64 {
	f = slices.Clone(f)
	slices.Sort(f)
	return f[len(f)/2]
}
