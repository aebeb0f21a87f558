package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	latencyDrops = 40
	latencyLimit = 20 * time.Second
	lookEvery    = time.Millisecond
)

// latency prints the third table.
func (b *bench) latency() (err error) {
	w, err := b.newWorkspace("latency", strings.Replace(noopWorkflow(), "name: bench", "name: accession", 1))
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(w.root, "workflows", "bench.yaml"), filepath.Join(w.root, "workflows", "accession.yaml")); err != nil {
		return err
	}
	c := w.command("run", "--watch", "-j", "2")
	if err := c.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.Process.Signal(syscall.SIGTERM), c.Wait(), w.remove())
	}()
	var took []time.Duration
	for i := range latencyDrops {
		d, err := w.drop(i)
		if err != nil {
			return err
		}
		if i > 0 { // the first waits for the program's start
			took = append(took, d)
		}
		time.Sleep(300 * time.Millisecond) // until it is idle again
	}
	fmt.Printf("\nlatency: from a drop's rename to its first step's commit, run --watch, %d drops: median %d ms, most %d ms (target: 150 ms)\n",
		len(took), median(took).Milliseconds(), longest(took).Milliseconds())
	return nil
}

// drop renames a file into the inbox and waits for the commit that begins its
// first step.
func (w *workspace) drop(i int) (time.Duration, error) {
	name := "drop" + strconv.Itoa(i) + ".txt"
	made := filepath.Join(w.root, "..", name)
	if err := os.WriteFile(made, []byte(name), 0o666); err != nil {
		return 0, err
	}
	branch := filepath.Join(w.root, ".git", "refs", "heads", "main")
	before, err := os.ReadFile(branch)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := os.Rename(made, filepath.Join(w.root, "inbox", "default", name)); err != nil {
		return 0, err
	}
	for last := string(before); time.Since(begin) < latencyLimit; time.Sleep(lookEvery) {
		now, err := os.ReadFile(branch)
		if err != nil {
			return 0, err
		}
		if string(now) == last {
			continue
		}
		at := time.Since(begin)
		log, err := w.git("log", "--format=%s", strings.TrimSpace(last)+".."+strings.TrimSpace(string(now)))
		if err != nil {
			return 0, err
		}
		if strings.Contains(log, "step1: in-progress") && strings.Contains(log, name) {
			return at, nil
		}
		last = string(now)
	}
	return 0, fmt.Errorf("%s: its first step has not begun after %s", name, latencyLimit)
}

func longest(d []time.Duration) (most time.Duration) {
	for _, d := range d {
		most = max(most, d)
	}
	return most
}
