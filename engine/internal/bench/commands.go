package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const commandItems = 2000

const commandWorkflow = `schema: 1
name: bench
steps:
  - name: register
  - name: call
    command: ["true"]
`

// way is one way of starting the program once for each item.
type way struct {
	name   string
	target float64 // ours must be at least so many times as fast; 0: none
	run    func() (sample, error)
	got    []sample
}

// commands prints the second table.
func (b *bench) commands() error {
	ways := []*way{
		{name: "bagpipe run -j 2", run: b.commandRound},
		{name: "a bare runner in Go", target: 0.8, run: b.bareRunner},
		{name: "xargs -P2", run: b.xargs},
		{name: "GNU parallel -j2", target: 2, run: b.parallel},
		{name: "snakemake -j2", target: 10, run: b.snakemake},
	}
	missing := map[string]error{}
	for range b.rounds {
		for _, w := range ways {
			if missing[w.name] != nil {
				continue
			}
			s, err := w.run()
			if err != nil {
				if w.name == ways[0].name || w.name == ways[1].name {
					return err
				}
				missing[w.name] = err
				continue
			}
			w.got = append(w.got, s)
		}
	}
	fmt.Printf("\ncommands: [\"true\"] once for each of %d items, two at a time, medians of %d\n", commandItems, b.rounds)
	fmt.Printf("%-22s %12s %16s %12s\n", "", "a second", "bagpipe is", "target")
	rate := func(w *way) float64 { return commandItems / middle(w.got).wall.Seconds() }
	for i, w := range ways {
		switch {
		case missing[w.name] != nil:
			fmt.Printf("%-22s %v\n", w.name, missing[w.name])
		case i == 0:
			fmt.Printf("%-22s %12.0f\n", w.name, rate(w))
		case w.target > 0:
			fmt.Printf("%-22s %12.0f %14.2f x %10.1f x\n", w.name, rate(w), rate(ways[0])/rate(w), w.target)
		default:
			fmt.Printf("%-22s %12.0f %14.2f x\n", w.name, rate(w), rate(ways[0])/rate(w))
		}
	}
	return nil
}

func (b *bench) commandRound() (s sample, err error) {
	w, err := b.newWorkspace("commands", commandWorkflow)
	if err != nil {
		return s, err
	}
	if err := w.register(commandItems); err != nil {
		return s, err
	}
	if s, err = measure(w.command("run", "-j", "2")); err != nil {
		return s, err
	}
	return s, w.remove()
}

// bareRunner does what a step of a command needs without any commit.
func (b *bench) bareRunner() (s sample, err error) {
	dir := filepath.Join(b.work, "bare")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return s, err
	}
	input := bytes.Repeat([]byte("0123456789abcde\n"), 200) // about what a call is
	begin := time.Now()
	var next atomic.Int64
	var errs [2]error
	var wg sync.WaitGroup
	for worker := range errs {
		wg.Go(func() {
			for errs[worker] == nil {
				i := int(next.Add(1))
				if i > commandItems {
					return
				}
				errs[worker] = b.bareStep(dir, strconv.Itoa(i), input)
			}
		})
	}
	wg.Wait()
	s.wall = time.Since(begin)
	for _, e := range errs {
		if e != nil {
			return s, e
		}
	}
	return s, os.RemoveAll(dir)
}

func (b *bench) bareStep(dir, name string, input []byte) error {
	scratch := filepath.Join(dir, name)
	if err := os.Mkdir(scratch, 0o777); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c := b.command("true")
	c.Dir, c.Stdin, c.Stdout, c.Stderr = scratch, bytes.NewReader(input), log, log
	if err := c.Run(); err != nil {
		return err
	}
	return os.RemoveAll(scratch)
}

func numbers() string {
	var b strings.Builder
	for i := range commandItems {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func (b *bench) xargs() (sample, error) {
	c := b.command("xargs", "-P2", "-n1", "true")
	c.Stdin = strings.NewReader(numbers())
	return measure(c)
}

func (b *bench) parallel() (sample, error) {
	if _, err := exec.LookPath("parallel"); err != nil {
		return sample{}, fmt.Errorf("not measured: %w", err)
	}
	c := b.command("parallel", "-j2", "true")
	c.Stdin = strings.NewReader(numbers())
	return measure(c)
}

// snakemake touches a file for each: it knows no other way to tell what is done.
func (b *bench) snakemake() (s sample, err error) {
	if _, err := exec.LookPath("snakemake"); err != nil {
		return s, fmt.Errorf("not measured: %w", err)
	}
	dir := filepath.Join(b.work, "snakemake")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return s, err
	}
	rules := fmt.Sprintf("rule all:\n    input: [f\"done/{i}\" for i in range(%d)]\nrule one:\n    output: touch(\"done/{i}\")\n    shell: \"true\"\n", commandItems)
	if err := os.WriteFile(filepath.Join(dir, "Snakefile"), []byte(rules), 0o666); err != nil {
		return s, err
	}
	c := b.command("snakemake", "-q", "-j2")
	c.Dir = dir
	if s, err = measure(c); err != nil {
		return s, err
	}
	return s, os.RemoveAll(dir)
}
