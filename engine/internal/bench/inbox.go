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

	"golang.org/x/sys/unix"
)

const (
	inboxFiles  = 10 // of 4 KiB, in each drop
	inboxTarget = 1000.0
	idleFiles   = 100_000
	idleTarget  = 2.0 // per cent of a core
	idleSettle  = 15 * time.Second
	idleFor     = 40 * time.Second
)

// waitsAtOnce is a workflow that registers, and then waits for a person.
const waitsAtOnce = "schema: 1\nname: bench\nsteps:\n  - name: register\n  - name: look\n    manual: true\n"

// inbox prints the fourth table.
func (b *bench) inbox(drops int) error {
	fmt.Printf("inbox: %d folders of %d files of 4 KiB\n", drops, inboxFiles)
	var took, floors []time.Duration
	for range b.rounds {
		floor, err := b.renames(drops)
		if err != nil {
			return err
		}
		d, err := b.register(drops)
		if err != nil {
			return err
		}
		took, floors = append(took, d), append(floors, floor)
	}
	rate := float64(drops) / median(took).Seconds()
	floor := float64(drops) / median(floors).Seconds()
	fmt.Printf("  registered    %8.0f items/s  (target %.0f: %.2f times that)\n", rate, inboxTarget, rate/inboxTarget)
	fmt.Printf("  two renames   %8.0f drops/s  (the floor; %.1f times as fast)\n", floor, floor/rate)
	share, err := b.idle()
	if err != nil {
		return err
	}
	fmt.Printf("  idle          %8.2f %% of a core, run --watch with %d files waiting (target %g: %.2f times that)\n", share, idleFiles, idleTarget, share/idleTarget)
	return nil
}

// fillInbox drops n folders.
func fillInbox(dir string, n int) error {
	data := make([]byte, 4096)
	for i := range n {
		drop := filepath.Join(dir, fmt.Sprintf("drop-%06d", i))
		if err := os.Mkdir(drop, 0o777); err != nil {
			return err
		}
		for f := range inboxFiles {
			copy(data, fmt.Sprintf("drop %d file %d", i, f))
			if err := os.WriteFile(filepath.Join(drop, strconv.Itoa(f)), data, 0o666); err != nil {
				return err
			}
		}
	}
	unix.Sync() // what the copying program left to be written is not the measured one's
	return nil
}

// register takes drops in, durably.
func (b *bench) register(drops int) (took time.Duration, err error) {
	w, err := b.newWorkspace("inbox", strings.Replace(waitsAtOnce, "name: bench", "name: accession", 1))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	if err := w.asAccession(); err != nil {
		return 0, err
	}
	if err := fillInbox(filepath.Join(w.root, "inbox/default"), drops); err != nil {
		return 0, err
	}
	time.Sleep(2100 * time.Millisecond) // until all has settled
	s, err := measure(w.command("run", "-q"))
	return s.wall, err
}

// asAccession makes the workspace's workflow the one that drops go to.
func (w *workspace) asAccession() error {
	dir := filepath.Join(w.root, "workflows")
	return os.Rename(filepath.Join(dir, "bench.yaml"), filepath.Join(dir, "accession.yaml"))
}

// renames moves as many folders twice, and syncs once.
func (b *bench) renames(drops int) (took time.Duration, err error) {
	dir := filepath.Join(b.work, "renames")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, d := range []string{"inbox", "intake", "items"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			return 0, err
		}
	}
	if err := fillInbox(filepath.Join(dir, "inbox"), drops); err != nil {
		return 0, err
	}
	begin := time.Now()
	for i := range drops {
		name := fmt.Sprintf("drop-%06d", i)
		for _, step := range [][2]string{{"inbox", "intake"}, {"intake", "items"}} {
			if err := os.Rename(filepath.Join(dir, step[0], name), filepath.Join(dir, step[1], name)); err != nil {
				return 0, err
			}
		}
	}
	fd, err := unix.Open(dir, unix.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	err = errors.Join(unix.Syncfs(fd), unix.Close(fd))
	return time.Since(begin), err
}

// idle is the share of a core, in per cent, that run --watch takes while files wait.
func (b *bench) idle() (share float64, err error) {
	w, err := b.newWorkspace("idle", waitsAtOnce)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	for i := range idleFiles {
		dir := filepath.Join(w.root, "inbox/default", fmt.Sprintf("waiting-%d", i/1000))
		if i%1000 == 0 {
			if err := os.Mkdir(dir, 0o777); err != nil {
				return 0, err
			}
			if err := os.WriteFile(filepath.Join(dir, "more.part"), []byte("x"), 0o666); err != nil {
				return 0, err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte("x"), 0o666); err != nil {
			return 0, err
		}
	}
	c := w.command("run", "--watch", "-q")
	if err := c.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Process.Signal(syscall.SIGTERM), c.Wait()) }()
	time.Sleep(idleSettle)
	before, err := cpuOf(c.Process.Pid)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	time.Sleep(idleFor)
	after, err := cpuOf(c.Process.Pid)
	if err != nil {
		return 0, err
	}
	return 100 * (after - before).Seconds() / time.Since(begin).Seconds(), nil
}

// cpuOf is the processor's time that a process has taken: fields 14 and 15 of
// /proc/PID/stat, in hundredths of a second.
func cpuOf(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the processor's time of %d: %q", pid, data)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
