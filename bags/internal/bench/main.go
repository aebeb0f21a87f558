package main

import (
	"bytes"
	"context"
	"crypto/sha512"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 3, "interleaved rounds; the median counts")
	dir := flag.String("dir", "", "where to work (default: a temporary folder)")
	only := flag.String("only", "", "shapes to measure: a part of their names (small, large, many)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *dir, *only, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// shape is one set of files.
type shape struct {
	name        string
	files, size int
	each        []int // names a call of the peers
}

var shapes = []shape{
	{"small: 20,000 files of 4 KiB", 20_000, 4 << 10, []int{64, 5000}},
	{"large: 20 files of 100 MiB", 20, 100 << 20, []int{1}},
	{"many: 100,000 files of 100 bytes", 100_000, 100, []int{5000}},
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
	for _, s := range shapes {
		if !strings.Contains(s.name, only) {
			continue
		}
		if err := s.measure(ctx, work, program, rounds); err != nil {
			return err
		}
	}
	return nil
}

// row is one way of doing the work.
type row struct {
	name  string
	ours  bool
	run   func(ctx context.Context) (sample, error)
	after func() error // puts back what run changed
	got   []sample
}

// sample is one run.
type sample struct {
	wall, cpu time.Duration
	rss       int64 // KiB, of the process itself; 0 unknown
}

func (s shape) measure(ctx context.Context, work, program string, rounds int) (err error) {
	top := filepath.Join(work, strings.Fields(s.name)[0][:4])
	payload := filepath.Join(top, "payload")
	if err := s.write(payload); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(top)) }()
	rows, err := s.rows(ctx, top, payload, program)
	if err != nil {
		return err
	}
	for range rounds {
		for _, r := range rows {
			one, err := r.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			r.got = append(r.got, one)
			if r.after != nil {
				if err := r.after(); err != nil {
					return err
				}
			}
		}
	}
	s.print(rows)
	return nil
}

func (s shape) rows(ctx context.Context, top, payload, program string) ([]*row, error) {
	rows := []*row{{name: "floor: Go's sha512", run: func(context.Context) (sample, error) { return floor(payload) }}}
	for _, n := range s.each {
		rows = append(rows, command(fmt.Sprintf("xargs -P2 -n%d sha512sum", n), payload, xargs(n, "sha512sum")...))
		if _, err := exec.LookPath("openssl"); err == nil {
			rows = append(rows, command(fmt.Sprintf("xargs -P2 -n%d openssl", n), payload, xargs(n, "openssl dgst -sha512")...))
		}
	}
	for _, as := range [][]string{{"sha512"}, {"sha256", "sha512"}} {
		bag := filepath.Join(top, strings.Join(as, "-"))
		var flags []string
		for _, a := range as {
			flags = append(flags, "--algorithm", a)
		}
		create := append([]string{program, "bag", "create", payload, bag, "--link", "--quiet"}, flags...)
		if _, err := measured(ctx, top, create); err != nil {
			return nil, err
		}
		name := strings.Join(as, "+")
		rows = append(rows, command("bagpipe bag validate, "+name, top, program, "bag", "validate", bag, "--quiet"))
		rows[len(rows)-1].ours = true
		made := bag + "-made"
		create[4] = made
		rows = append(rows, command("bagpipe bag create --link, "+name, top, append(create, "--no-sync")...))
		rows[len(rows)-1].ours, rows[len(rows)-1].after = true, func() error { return os.RemoveAll(made) }
		if py := os.Getenv("BAGIT_PY"); py != "" {
			rows = append(rows, command("bagit.py --validate --processes 2, "+name, top, "python3", py, "--validate", "--processes", "2", bag))
		}
	}
	return rows, nil
}

func xargs(n int, program string) []string {
	return []string{"sh", "-c", fmt.Sprintf("find . -type f -print0 | xargs -0 -P2 -n%d %s >/dev/null", n, program)}
}

func command(name, dir string, args ...string) *row {
	return &row{name: name, run: func(ctx context.Context) (sample, error) { return measured(ctx, dir, args) }}
}

func measured(ctx context.Context, dir string, args []string) (sample, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &before); err != nil {
		return sample{}, err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	peak := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	wall := time.Since(start)
	rss := peak()
	if err != nil {
		return sample{}, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &after); err != nil {
		return sample{}, err
	}
	return sample{wall: wall, cpu: cpu(after) - cpu(before), rss: rss}, nil
}

// watchMemory reads a process's own peak until it has ended. What wait4 gives
// begins with the peak of the process that started it.
func watchMemory(pid int) (peak func() int64) {
	stop, done := make(chan struct{}), make(chan struct{})
	var most int64
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if _, after, ok := strings.Cut(string(data), "VmHWM:"); err == nil && ok {
				var kb int64
				if _, err := fmt.Sscan(after, &kb); err == nil {
					most = max(most, kb)
				}
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-done
		return most
	}
}

func cpu(r syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }

// floor hashes every file with nothing around it.
func floor(dir string) (sample, error) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		return sample{}, err
	}
	start := time.Now()
	var files []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		return sample{}, err
	}
	errs := make([]error, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var g sync.WaitGroup
	for w := range errs {
		g.Go(func() {
			buf, h := make([]byte, 256<<10), sha512.New()
			for i := next.Add(1) - 1; i < int64(len(files)) && errs[w] == nil; i = next.Add(1) - 1 {
				f, err := os.Open(files[i])
				if err == nil {
					h.Reset()
					_, err = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf)
					err = errors.Join(err, f.Close())
				}
				errs[w] = err
			}
		})
	}
	g.Wait()
	wall := time.Since(start)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		return sample{}, err
	}
	return sample{wall: wall, cpu: cpu(after) - cpu(before)}, errors.Join(errs...)
}

// print shows medians, and for ours the ratio to each peer.
func (s shape) print(rows []*row) {
	fmt.Printf("\n%s\n%-48s %9s %9s %9s\n", s.name, "", "wall s", "CPU s", "peak MB")
	for _, r := range rows {
		m := r.median()
		rss := ""
		if m.rss > 0 {
			rss = fmt.Sprintf("%9.0f", float64(m.rss)/1024)
		}
		fmt.Printf("%-48s %9.3f %9.3f %s\n", r.name, m.wall.Seconds(), m.cpu.Seconds(), rss)
		for _, peer := range rows {
			if r.ours && !peer.ours {
				p := peer.median()
				fmt.Printf("    %-44s %8.2fx %8.2fx\n", "beside "+peer.name, p.wall.Seconds()/m.wall.Seconds(), p.cpu.Seconds()/m.cpu.Seconds())
			}
		}
	}
}

func (r *row) median() sample {
	pick := func(of func(sample) int64) int64 {
		all := make([]int64, len(r.got))
		for i, s := range r.got {
			all[i] = of(s)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return sample{
		wall: time.Duration(pick(func(s sample) int64 { return int64(s.wall) })),
		cpu:  time.Duration(pick(func(s sample) int64 { return int64(s.cpu) })),
		rss:  pick(func(s sample) int64 { return s.rss }),
	}
}

// block is how much is written at once: a process begins with the peak memory of
// the one that starts it.
const block = 64 << 10

// write makes the files, of bytes that do not compress and differ.
func (s shape) write(dir string) error {
	x := uint64(88172645463325252)
	buf := make([]byte, block)
	for i := range s.files {
		sub := filepath.Join(dir, fmt.Sprintf("%03d", i/200))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
		if err := s.writeOne(filepath.Join(sub, fmt.Sprintf("%06d.bin", i)), buf, &x); err != nil {
			return err
		}
	}
	return nil
}

func (s shape) writeOne(path string, buf []byte, x *uint64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for left := s.size; left > 0; left -= len(buf) {
		buf = buf[:min(left, len(buf))]
		for k := 0; k < len(buf); k += 8 {
			*x ^= *x << 13
			*x ^= *x >> 7
			*x ^= *x << 17
			for b := range min(8, len(buf)-k) {
				buf[k+b] = byte(*x >> (8 * b))
			}
		}
		if _, err := f.Write(buf); err != nil {
			return err
		}
	}
	return nil
}
