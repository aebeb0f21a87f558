package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	b := &bench{}
	flag.IntVar(&b.items, "items", 100_000, "how many items")
	flag.IntVar(&b.rate, "rate", 1000, "transitions a second that are committed meanwhile")
	flag.IntVar(&b.files, "files", 10_000, "files of the large item; 0: there is none")
	flag.IntVar(&b.viewers, "viewers", 500, "browsers that look at the overview")
	flag.IntVar(&b.tries, "tries", 40, "requests of which the 95th of a hundred counts")
	flag.IntVar(&b.megabytes, "megabytes", 256, "the file that is sent")
	flag.DurationVar(&b.lasts, "soak", 0, "for how long the viewers look at the end; 0: they do not")
	dir := flag.String("dir", "", "where to work; a workspace made there stays (default: a temporary folder)")
	only := flag.String("only", "", "what to measure: pages, facets, item, screen, viewers, completions, bytes, memory, soak (default: all)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := b.run(ctx, *dir, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// sizes are how much of each there is.
type sizes struct {
	items, rate, files, viewers, tries, megabytes int

	lasts time.Duration // of the soak
}

// bench is one call of the program.
type bench struct {
	sizes

	dir     string
	root    string
	program string
	at      string // http://127.0.0.1:PORT
	pid     int
	token   string
	client  *http.Client

	start   func(name string, args ...string) *exec.Cmd // ends when the call is interrupted
	request func(method, url string, body io.Reader) (*http.Request, error)
}

func (b *bench) run(ctx context.Context, dir, only string) (err error) {
	b.start = func(name string, args ...string) *exec.Cmd { return exec.CommandContext(ctx, name, args...) }
	b.request = func(method, url string, body io.Reader) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, method, url, body)
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bagpipe-web-bench"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	b.dir, b.program = dir, filepath.Join(dir, "bagpipe")
	b.root = filepath.Join(dir, fmt.Sprintf("items-%d-0", b.items)) // as queuebench names a workspace without retired items
	if err := b.prepare(); err != nil {
		return err
	}
	stop, err := b.serve()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	fmt.Printf("%d items, %d transitions a second meanwhile; load of the machine %s\n", b.items, b.rate, machine())
	if _, _, err := b.ask("GET", "/healthz", ""); err != nil {
		return err
	}
	loaded := b.memory(b.pid) // the index, as run --watch has it when it begins
	for _, part := range []struct {
		name    string
		measure func() error
	}{{"pages", b.pages}, {"facets", b.facets}, {"item", b.item}, {"screen", b.screen}, {"viewers", b.look}, {"completions", b.completions}, {"bytes", b.bytes}, {"memory", b.beyond}, {"soak", b.soak}} {
		if only != "" && !slices.Contains(strings.Split(only, ","), part.name) {
			continue
		}
		if err := part.measure(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	row("memory of the server", fmt.Sprintf("%d MiB", b.memory(b.pid)>>20), fmt.Sprintf("%d MiB with the index alone, before any transition", loaded>>20))
	return nil
}

func row(name, figure, note string) { fmt.Printf("  %-58s %14s  %s\n", name, figure, note) }

// judged is a note on a figure that is to be at most another.
func judged(took, most time.Duration) string {
	if took > most {
		return fmt.Sprintf("at most %v: MISSED", most)
	}
	return fmt.Sprintf("at most %v: held", most)
}

func (b *bench) command(name string, args ...string) *exec.Cmd {
	cmd := b.start(name, args...)
	cmd.Stderr = os.Stderr
	return cmd
}

// prepare builds the program and the workspace: letters on their way, and, in a workflow of its
// own, what people do.
func (b *bench) prepare() error {
	if err := b.command("go", "build", "-o", b.program, "bagpipe/cmd/bagpipe").Run(); err != nil {
		return err
	}
	if _, err := os.Stat(b.root); err == nil {
		return nil
	}
	if err := b.command("go", "run", "bagpipe/engine/internal/queuebench", "-items", strconv.Itoa(b.items), "-dir", b.dir, "-only", "nothing").Run(); err != nil {
		return err
	}
	people := "schema: 1\nname: people\nsteps:\n  - name: register\n  - name: look\n    manual: true\n"
	if err := os.WriteFile(filepath.Join(b.root, "workflows/people.yaml"), []byte(people), 0o666); err != nil {
		return err
	}
	if b.files == 0 {
		return nil
	}
	large := filepath.Join(b.dir, "large")
	for i := range b.files {
		at := filepath.Join(large, strconv.Itoa(i/1000), fmt.Sprintf("page-%06d.txt", i))
		if i%1000 == 0 {
			if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
				return err
			}
		}
		if err := os.WriteFile(at, []byte(strconv.Itoa(i)), 0o666); err != nil {
			return err
		}
	}
	inventory := "schema: 1\nname: counted\nsteps:\n  - name: register\n  - name: inventory\n    robot: inventory\n  - name: look\n    manual: true\n"
	if err := os.WriteFile(filepath.Join(b.root, "workflows/counted.yaml"), []byte(inventory), 0o666); err != nil {
		return err
	}
	big := filepath.Join(b.dir, "big.bin")
	if err := os.WriteFile(big, make([]byte, b.megabytes<<20), 0o666); err != nil {
		return err
	}
	for label, from := range map[string]string{"large": large, "big": big} {
		if err := b.command(b.program, "-C", b.root, "add", "--workflow", "counted", "--label", label, from).Run(); err != nil {
			return err
		}
	}
	if err := b.command(b.program, "-C", b.root, "run", "-q", "--item", "large").Run(); err != nil {
		return err
	}
	return b.command(b.program, "-C", b.root, "run", "-q", "--item", "big").Run()
}

// serve starts the program. It does no steps: what moves is what the load moves.
func (b *bench) serve() (stop func() error, err error) {
	token, err := b.command(b.program, "-C", b.root, "token", "add", "bench", "--role", "admin").Output()
	if err != nil {
		return nil, err
	}
	b.token = strings.TrimSpace(string(token))
	cmd := b.command(b.program, "-C", b.root, "serve", "--no-run", "--listen", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said := make([]byte, 4096)
	n, err := out.Read(said)
	link, err2 := url.Parse(strings.TrimSpace(strings.TrimPrefix(string(said[:n]), "Open once:")))
	if err = errors.Join(err, err2); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill())
	}
	b.at, b.pid = "http://"+link.Host, cmd.Process.Pid
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}, Timeout: 2 * time.Minute}
	if _, _, err := b.ask("GET", "/items", ""); err != nil { // which waits for what is made once
		return nil, errors.Join(err, cmd.Process.Kill())
	}
	return func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		return cmd.Wait()
	}, nil
}

// ask sends a request and reads the answer.
func (b *bench) ask(method, path, body string) (data []byte, took time.Duration, err error) {
	r, err := b.request(method, b.at+path, strings.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	began := time.Now()
	resp, err := b.client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	took = time.Since(began)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, data)
	}
	return data, took, err
}

// slowest is the 95th of a hundred times that a request takes, and the middle one, and what it answered last.
func (b *bench) slowest(path string) (took, middle time.Duration, data []byte, err error) {
	if data, _, err = b.ask("GET", path, ""); err != nil { // what is made once is made by now
		return 0, 0, nil, err
	}
	var all []time.Duration
	for range b.tries {
		var one time.Duration
		if data, one, err = b.ask("GET", path, ""); err != nil {
			return 0, 0, nil, err
		}
		all = append(all, one)
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*95/100)], all[len(all)/2], data, nil
}

// worked is the processor time that a process has taken: of a busy machine it tells more than a rate does.
func worked(pid int) time.Duration {
	const tick = 10 * time.Millisecond // proc(5): USER_HZ is 100 on every platform of ours
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	const user, system = 11, 12 // behind the name
	n := 0
	for _, f := range []string{fields[user], fields[system]} {
		one, _ := strconv.Atoi(f) // the kernel wrote it
		n += one
	}
	return time.Duration(n) * tick
}

// spent is the processor time of a while.
type spent struct {
	b            *bench
	began        time.Time
	server, ours time.Duration
}

func (b *bench) spend() spent { return spent{b, time.Now(), worked(b.pid), worked(os.Getpid())} }

// each is what the server took for one of n, and what the server and this program, which asks, took of a core.
func (s spent) each(n float64) (server time.Duration, note string) {
	took, all, ours := time.Since(s.began), worked(s.b.pid)-s.server, worked(os.Getpid())-s.ours
	server = time.Duration(float64(all) / max(n, 1))
	return server, fmt.Sprintf("%v of processor time each; the server took %.2f cores, the callers %.2f, load %s", server.Round(10*time.Microsecond), all.Seconds()/took.Seconds(), ours.Seconds()/took.Seconds(), machine())
}

// machine is how busy the machine is: the processes at work in the last minute, of all programs.
func machine() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(data), " ")
	return load
}

// memory is what a process holds.
func (b *bench) memory(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64) // the kernel wrote it
			return n << 10
		}
	}
	return 0
}
