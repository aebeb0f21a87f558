package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	smallDrops  = 1000
	manyDrops   = 10_000
	floorsHands = 16
	sharedFS    = "/dev/shm" // a tmpfs where there is one
)

// load is what is dropped: drops folders of files files of size bytes.
type load struct{ drops, files, size int }

func (l load) String() string {
	return fmt.Sprintf("%d drops of %d files of %d bytes", l.drops, l.files, l.size)
}

func (l load) bytes() int { return l.drops * l.files * l.size }

// passage is one run of the whole workflow over a load, or of a peer.
type passage struct {
	sample
	read, written int64                    // bytes asked of the system
	steps         map[string]time.Duration // what the robots took, by step
}

// accessions prints the fifth table: the shipped workflow from inbox/ to a validated deposit.
func (b *bench) accessions() error {
	dirs := []string{b.work}
	var fsys unix.Statfs_t
	if unix.Statfs(sharedFS, &fsys) == nil && fsys.Type == unix.TMPFS_MAGIC {
		dir, err := os.MkdirTemp(sharedFS, "bagpipe-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		each, err := b.accessionTable(dir, load{smallDrops, 2, 500}, []string{"1", "2", "8", "16"}, 0)
		if err != nil {
			return err
		}
		if _, err = b.accessionTable(dir, load{manyDrops, 2, 500}, []string{"2"}, each); err != nil {
			return err
		}
		for _, l := range []load{{1, 50_000, 2 << 10}, {1, 4, 512 << 20}} {
			if _, err = b.accessionTable(dir, l, []string{"2"}, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// accessionTable measures one load in one folder. to is the time an item to compare with;
// 0 for none. It gives the time an item with two robots at work.
func (b *bench) accessionTable(dir string, l load, workers []string, to time.Duration) (time.Duration, error) {
	got := map[string][]passage{}
	for range b.rounds {
		for _, j := range workers {
			p, err := b.accession(dir, l, j)
			if err != nil {
				return 0, err
			}
			got[j] = append(got[j], p)
		}
		for name, peer := range map[string]func(string, load) (passage, error){"peer": b.peerPassage, "floor": b.floorPassage} {
			p, err := peer(dir, l)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
				continue
			}
			if err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			got[name] = append(got[name], p)
		}
	}
	fmt.Printf("\naccession: %s, %s, medians of %d (targets beside the peer: 0.5, on tmpfs 0.6; 6 ms of processor an item of two files)\n", l, fileSystem(dir), b.rounds)
	fmt.Printf("%-10s %9s %9s %11s %9s %11s %11s %10s %10s\n", "", "items/s", "MB/s", "CPU an item", "MB memory", "KB read", "KB written", "of peer", "of floor")
	pace := func(name string) time.Duration {
		if got[name] == nil {
			return 0
		}
		return middlePassage(got[name]).wall
	}
	for _, name := range append(slices.Clone(workers), "peer", "floor") {
		if got[name] == nil {
			fmt.Printf("%-10s not there%s\n", name, map[bool]string{true: ": " + b.peer}[name == "peer"])
			continue
		}
		p, n := middlePassage(got[name]), float64(l.drops)
		fmt.Printf("%-10s %9.1f %9.1f %8.2f ms %9d %11.1f %11.1f %10.2f %10.2f\n", label(name), n/p.wall.Seconds(), float64(l.bytes())/1e6/p.wall.Seconds(),
			1000*p.cpu.Seconds()/n, p.memory>>20, float64(p.read)/1000/n, float64(p.written)/1000/n, over(pace("peer"), p.wall), over(pace("floor"), p.wall))
	}
	at := "2"
	printSteps(middlePassage(got[at]).steps, l.drops)
	each := middlePassage(got[at]).wall / time.Duration(l.drops)
	if to > 0 {
		fmt.Printf("time an item: %.2f times that of %d drops (target: 1.1)\n", over(each, to), smallDrops)
	}
	return each, b.countCalls(dir, l)
}

func label(name string) string {
	if _, err := strconv.Atoi(name); err == nil {
		return "-j " + name
	}
	return name
}

func over(a, b time.Duration) float64 { return float64(a) / float64(b) }

func middlePassage(all []passage) passage {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b passage) int { return int(a.wall - b.wall) })
	return all[len(all)/2]
}

func fileSystem(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) == nil && s.Type == unix.TMPFS_MAGIC {
		return memory
	}
	return "the disk"
}

const memory = "tmpfs"

// accession runs the shipped workflow over what is dropped, and checks that all of it was
// deposited.
func (b *bench) accession(dir string, l load, workers string) (p passage, err error) {
	w, err := b.filled(dir, l)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, l.clear(w.root)) }()
	if p, err = measurePassage(w.command("run", "-q", "-j", workers)); err != nil {
		return p, err
	}
	p.steps, err = w.stepTimes(l.drops)
	return p, err
}

// clear removes what a passage made in dir. Small drops on a disk stay until the program ends: for some minutes ext4
// without a journal passes over each inode that was freed, so that each passage would pay for those before it.
func (l load) clear(dir string) error {
	const small = 64 << 20
	if l.bytes() < small && fileSystem(dir) != memory {
		return nil
	}
	return os.RemoveAll(dir)
}

// filled is a workspace in dir with the load in its inbox, settled.
func (b *bench) filled(dir string, l load) (*workspace, error) {
	dir, err := os.MkdirTemp(dir, "accession-")
	if err != nil {
		return nil, err
	}
	w := &workspace{b: b, root: dir}
	if _, err := measure(b.command(b.program, "init", w.root)); err != nil {
		return nil, err
	}
	settings := filepath.Join(w.root, "bagpipe.yaml")
	data, err := os.ReadFile(settings)
	if err != nil {
		return nil, err
	}
	quick := strings.Replace(string(data), "quiet: 30s", "quiet: 100ms", 1)
	if err := os.WriteFile(settings, []byte(quick), 0o666); err != nil {
		return nil, err
	}
	if err := l.write(filepath.Join(w.root, "inbox/default")); err != nil {
		return nil, err
	}
	time.Sleep(200 * time.Millisecond) // until it has settled
	return w, nil
}

// write makes the load below dir; no two files are the same.
func (l load) write(dir string) error {
	block := make([]byte, min(l.size, 1<<20))
	for d := range l.drops {
		drop := filepath.Join(dir, fmt.Sprintf("drop-%06d", d))
		if err := os.MkdirAll(drop, 0o777); err != nil {
			return err
		}
		for f := range l.files {
			out, err := os.Create(filepath.Join(drop, fmt.Sprintf("%06d.dat", f)))
			if err != nil {
				return err
			}
			for left := l.size; left > 0; left -= len(block) {
				copy(block, fmt.Sprintf("%d %d %d\n", d, f, left))
				if _, err := out.Write(block[:min(left, len(block))]); err != nil {
					return errors.Join(err, out.Close())
				}
			}
			if err := out.Close(); err != nil {
				return err
			}
		}
	}
	unix.Sync() // what was written here is not the measured program's to write out
	return nil
}

// measurePassage is measure, with what the program read and wrote.
func measurePassage(c *exec.Cmd) (p passage, err error) {
	counted := make(chan struct{})
	c.Stdout, c.Stderr = io.Discard, nil
	begin := time.Now()
	if err := c.Start(); err != nil {
		return p, err
	}
	go func() {
		defer close(counted)
		var info unix.Siginfo
		for errors.Is(unix.Waitid(unix.P_PID, c.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
		p.wall = time.Since(begin)
		io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", c.Process.Pid)) // not told to everybody: the columns stay 0
		if err == nil {
			fmt.Sscanf(string(io), "rchar: %d\nwchar: %d", &p.read, &p.written)
		}
	}()
	<-counted
	if err := c.Wait(); err != nil {
		return p, fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	p.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.memory = u.Maxrss << 10
	}
	return p, nil
}

// stepTimes adds what the attempts took, by step, and checks that n items were deposited.
func (w *workspace) stepTimes(n int) (map[string]time.Duration, error) {
	deposited, took := 0, map[string]time.Duration{}
	err := filepath.WalkDir(filepath.Join(w.root, "items"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "execution.json" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var x struct {
			Workflows map[string]struct {
				Steps map[string]struct {
					Status   string
					Attempts map[string]struct{ Elapsed float64 }
				}
			}
		}
		if err := json.Unmarshal(data, &x); err != nil {
			return err
		}
		for _, run := range x.Workflows {
			for step, s := range run.Steps {
				for _, a := range s.Attempts {
					took[step] += time.Duration(a.Elapsed * float64(time.Second))
				}
			}
			if run.Steps["deposit"].Status == "completed" {
				deposited++
			}
		}
		return nil
	})
	if err == nil && deposited != n {
		err = fmt.Errorf("%d items of %d were deposited", deposited, n)
	}
	return took, err
}

// printSteps tells which step takes what.
func printSteps(took map[string]time.Duration, items int) {
	var names []string
	for name, d := range took {
		if d > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return int(took[b] - took[a]) })
	fmt.Print("robots, ms an item:")
	for _, name := range names {
		fmt.Printf("  %s %.2f", name, 1000*took[name].Seconds()/float64(items))
	}
	fmt.Println()
}

// peerPassage is the peer's script over the same load.
func (b *bench) peerPassage(dir string, l load) (p passage, err error) {
	if _, err := os.Stat(b.peer); err != nil {
		return p, err
	}
	work, err := os.MkdirTemp(dir, "peer-")
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, l.clear(work)) }()
	if err := l.write(filepath.Join(work, "in")); err != nil {
		return p, err
	}
	return measurePassage(b.command("python3", b.peer, filepath.Join(work, "in"), filepath.Join(work, "work"), filepath.Join(work, "to")))
}

// floorPassage writes each drop's files twice, as the object and as its deposit, and syncs once.
func (b *bench) floorPassage(dir string, l load) (p passage, err error) {
	work, err := os.MkdirTemp(dir, "floor-")
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, l.clear(work)) }()
	if err := l.write(filepath.Join(work, "in")); err != nil {
		return p, err
	}
	begin := time.Now()
	var g errgroup.Group
	g.SetLimit(floorsHands)
	for d := range l.drops {
		g.Go(func() error {
			drop := fmt.Sprintf("drop-%06d", d)
			return os.CopyFS(filepath.Join(work, "to", drop, "data"), os.DirFS(filepath.Join(work, "in", drop)))
		})
	}
	if err := g.Wait(); err != nil {
		return p, err
	}
	fd, err := unix.Open(work, unix.O_RDONLY, 0)
	if err != nil {
		return p, err
	}
	err = errors.Join(unix.Syncfs(fd), unix.Close(fd))
	p.wall = time.Since(begin)
	return p, err
}

// countCalls prints the calls of the system an item takes, where strace is. The syncs are counted in a run of their own, in
// which no other call is looked at: where each is, the robots become so slow that hardly two ask for the disk together.
func (b *bench) countCalls(dir string, l load) error {
	if _, err := exec.LookPath("strace"); err != nil {
		fmt.Println("calls of the system: not counted:", err)
		return nil
	}
	syncs, err := traced(b, dir, l, "--seccomp-bpf", "-e", "trace=fsync,fdatasync,syncfs")
	if err != nil {
		return err
	}
	fmt.Printf("syncs an item (%d drops): %.1f, of these syncfs %.2f\n", l.drops, syncs["all"], syncs["syncfs"])
	l.drops = min(l.drops, 200)
	calls, err := traced(b, dir, l)
	if err != nil {
		return err
	}
	fmt.Printf("calls an item (%d drops):", l.drops)
	for _, name := range []string{"all", "openat", "newfstatat", "fcntl", "epoll_ctl", "getdents64", "unlinkat", "mkdirat"} {
		fmt.Printf("  %s %.1f", name, calls[name])
	}
	fmt.Println()
	return nil
}

// traced counts the calls of one passage, by name, for each drop.
func traced(b *bench, dir string, l load, options ...string) (calls map[string]float64, err error) {
	w, err := b.filled(dir, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.clear(w.root)) }()
	counts := w.root + ".calls"
	args := append([]string{"-f", "-c", "-U", "name,calls", "-o", counts}, options...)
	if _, err := measure(b.command("strace", append(args, b.program, "-C", w.root, "run", "-q")...)); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(counts)
	if err != nil {
		return nil, err
	}
	calls = map[string]float64{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 2 || f[0] == "total" {
			continue
		}
		n, _ := strconv.ParseFloat(f[1], 64) // headings count nothing
		calls[f[0]] = n / float64(l.drops)
		calls["all"] += calls[f[0]]
	}
	return calls, os.Remove(counts)
}
