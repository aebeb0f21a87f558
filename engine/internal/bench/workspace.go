package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// bench is one call of the program.
type bench struct {
	work    string
	program string
	rounds  int
	peer    string
	posts   int
	synced  int
	aged    int
	files   int
	command func(name string, args ...string) *exec.Cmd // ends when the call is interrupted
}

// sample is what one call of a program took.
type sample struct {
	wall   time.Duration
	cpu    time.Duration // of the program and its children
	memory int64         // the most, bytes; of the program or its largest child
}

// measure runs a program to its end; what it prints is shown when it fails.
func measure(c *exec.Cmd) (sample, error) {
	var out bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &out
	}
	begin := time.Now()
	err := c.Run()
	s := sample{wall: time.Since(begin)}
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, out.Bytes())
	}
	s.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.memory = u.Maxrss << 10
	}
	return s, nil
}

// workspace is a new workspace with one workflow.
type workspace struct {
	b    *bench
	root string
	made int // items
}

func (b *bench) newWorkspace(name, workflow string) (*workspace, error) {
	w := &workspace{b: b, root: filepath.Join(b.work, name)}
	if err := os.RemoveAll(w.root); err != nil {
		return nil, err
	}
	if _, err := measure(b.command(b.program, "init", w.root)); err != nil {
		return nil, err
	}
	settings := filepath.Join(w.root, "workflows", "bench.yaml")
	return w, os.WriteFile(settings, []byte(workflow), 0o666)
}

// remove takes the workspace away: the next one must not find a disk cache full of it.
func (w *workspace) remove() error { return os.RemoveAll(w.root) }

func (w *workspace) command(args ...string) *exec.Cmd {
	return w.b.command(w.b.program, append([]string{"-C", w.root}, args...)...)
}

const addedAtOnce = 1000

// register makes n items of small files; more are options of add.
func (w *workspace) register(n int, more ...string) error {
	dir := filepath.Join(w.b.work, "drops")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	begin, end := w.made, w.made+n
	for w.made = end; begin < end; begin += addedAtOnce {
		args := append([]string{"add", "--workflow", "bench"}, more...)
		for i := begin; i < min(begin+addedAtOnce, end); i++ {
			name := filepath.Join(dir, strconv.Itoa(i)+".txt")
			if err := os.WriteFile(name, []byte(strconv.Itoa(i)), 0o666); err != nil {
				return err
			}
			args = append(args, name)
		}
		if _, err := measure(w.command(args...)); err != nil {
			return err
		}
	}
	// add leaves a pack for each item, which are not the measured run's to join.
	_, err := measure(w.command("maintain"))
	return err
}

// git asks the workspace's repository.
func (w *workspace) git(args ...string) (string, error) {
	out, err := w.b.command("git", append([]string{"-C", w.root}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}
