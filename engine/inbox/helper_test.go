package inbox

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/layout"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv("BAGPIPE_INBOX_CHILD"); mode != "" {
		child(mode)
		return
	}
	// notify keeps one set of goroutines for the life of the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/rjeczalik/notify.(*nonrecursiveTree).dispatch"),
		goleak.IgnoreAnyFunction("github.com/rjeczalik/notify.(*nonrecursiveTree).internal"),
		goleak.IgnoreAnyFunction("github.com/rjeczalik/notify.(*inotify).loop"),
		goleak.IgnoreAnyFunction("github.com/rjeczalik/notify.(*inotify).send"))
}

// bench is a workspace with one Box, whose clock runs ahead of the real one by
// what the test says.
type bench struct {
	*Box
	t     testing.TB
	ahead atomic.Int64
	stood atomic.Pointer[time.Time] // the clock stands still at this time; nil: it goes
}

// pollOnly set in the environment lets every test run without the system's events.
const pollOnly = "BAGPIPE_INBOX_POLL"

// Everything works the same with watch: false.
func TestAllWithoutEvents(t *testing.T) {
	if os.Getenv(pollOnly) != "" {
		t.Skip("this is it")
	}
	if testing.Short() {
		t.Skip("runs all tests again")
	}
	args := []string{"-test.skip=^(TestAllWithoutEvents|TestAsOrdinaryUser|TestHundredThousandEntries)$", "-test.v"}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), pollOnly+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n--- PASS: ") < 30 {
		t.Errorf("without events: %v\n%s", err, out)
	}
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchAt(t, t.TempDir())
}

func newBenchAt(t testing.TB, root string) *bench {
	t.Helper()
	w := &bench{t: t}
	engine, err := layout.NewEngineID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w.Box, err = New(Options{Settling: Settling{Quiet: 2 * time.Second}, Root: root, Engine: engine, Watch: os.Getenv(pollOnly) == "", Now: func() time.Time {
		now := time.Now()
		if at := w.stood.Load(); at != nil {
			now = *at
		}
		return now.Add(time.Duration(w.ahead.Load()))
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.mkdir("inbox/default")
	return w
}

// later moves the clock, and lets it go on if it stood still.
func (w *bench) later(d time.Duration) {
	w.stood.Store(nil)
	w.ahead.Add(int64(d))
}

// atOnce stops the clock until later: whatever the machine is busy with, what is
// written now has not been quiet for long when it is looked at.
func (w *bench) atOnce() {
	now := time.Now()
	w.stood.Store(&now)
}

func (w *bench) mkdir(rel string) string {
	w.t.Helper()
	path := w.path(rel)
	if err := os.MkdirAll(path, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *bench) write(rel, content string) string {
	w.t.Helper()
	w.mkdir(filepath.Dir(rel))
	path := w.path(rel)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// drop puts a folder of two files into the default collection.
func (w *bench) drop(name string) {
	w.t.Helper()
	w.write("inbox/default/"+name+"/a.txt", "a of "+name)
	w.write("inbox/default/"+name+"/sub/b.txt", "b of "+name)
}

func (w *bench) scan() (settled []Drop, waiting []Waiting, bad []Rejected) {
	w.t.Helper()
	f, err := w.Scan(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return f.Settled, f.Waiting, f.Bad
}

// settled gives the settled drop of this name.
func (w *bench) settled(name string) Drop {
	w.t.Helper()
	drops, waiting, bad := w.scan()
	for _, d := range drops {
		if d.Name == name {
			return d
		}
	}
	w.t.Fatalf("%q has not settled: waiting %v, bad %v", name, waiting, bad)
	return Drop{}
}

// take drops and takes a folder of this name.
func (w *bench) take(name string) Taken {
	w.t.Helper()
	w.drop(name)
	w.later(3 * time.Second)
	t, err := w.Take(context.Background(), w.settled(name), Ticket{Label: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *bench) promoted(t Taken) Taken {
	w.t.Helper()
	t, err := w.Promote(context.Background(), t)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// pending recovers as if every engine but this one were dead.
func (w *bench) pending() []Taken {
	w.t.Helper()
	found, err := w.Pending(context.Background(), w.onlyMe)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *bench) onlyMe(id layout.EngineID) bool { return id == w.opt.Engine }

// next is the workspace's next engine; this one counts as dead.
func (w *bench) next() *bench {
	w.t.Helper()
	return newBenchAt(w.t, w.opt.Root)
}

// files lists the regular files below a folder of the workspace with their
// contents.
func (w *bench) files(rel string) map[string]string {
	w.t.Helper()
	return filesBelow(w.t, w.path(rel))
}

func filesBelow(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		found[strings.TrimPrefix(p, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (w *bench) wantFiles(rel string, want map[string]string) {
	w.t.Helper()
	if got := w.files(rel); !maps.Equal(got, want) {
		w.t.Fatalf("files in %s:\n got %q\nwant %q", rel, got, want)
	}
}

func dropFiles(name string) map[string]string {
	return map[string]string{name + "/a.txt": "a of " + name, name + "/sub/b.txt": "b of " + name}
}

// wantEmpty checks that a folder is empty or not there.
func (w *bench) wantEmpty(rel string) {
	w.t.Helper()
	entries, err := os.ReadDir(w.path(rel))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		w.t.Errorf("left behind in %s: %q", rel, e.Name())
	}
}

func (w *bench) wantScan(settled, waiting, bad []string) {
	w.t.Helper()
	ds, ws, bs := w.scan()
	var gs, gw, gb []string
	for _, d := range ds {
		gs = append(gs, d.Name)
	}
	for _, d := range ws {
		gw = append(gw, d.Name)
	}
	for _, d := range bs {
		gb = append(gb, d.Name)
	}
	for _, c := range []struct {
		list      string
		got, want []string
	}{{"settled", gs, settled}, {"waiting", gw, waiting}, {"bad", gb, bad}} {
		slices.Sort(c.got)
		slices.Sort(c.want)
		if !slices.Equal(c.got, c.want) {
			w.t.Fatalf("%s: got %q, want %q", c.list, c.got, c.want)
		}
	}
}

func mustMknod(t testing.TB, path string, mode uint32) {
	t.Helper()
	if err := unix.Mknod(path, mode|0o644, int(unix.Mkdev(1, 3))); err != nil {
		t.Skipf("cannot make a device: %v", err)
	}
}

// otherFS is a folder on another file system.
func otherFS(t testing.TB, than string) string {
	t.Helper()
	for _, other := range []string{"/dev/shm", "/var/tmp"} {
		var a, b unix.Stat_t
		if unix.Stat(other, &a) != nil || unix.Stat(than, &b) != nil || a.Dev == b.Dev {
			continue
		}
		dir, err := os.MkdirTemp(other, "bagpipe-inbox-test-")
		if err != nil {
			t.Skipf("second file system: %v", err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	t.Skip("no second file system at hand")
	return ""
}

// runner is a Box that runs.
type runner struct {
	w     *bench
	woken chan struct{}
	end   context.CancelFunc
	done  chan error
}

// running starts the Box; stop must be called.
func (w *bench) running() *runner {
	ctx, end := context.WithCancel(context.Background())
	r := &runner{w: w, woken: make(chan struct{}, 1), end: end, done: make(chan error, 1)}
	go func() {
		r.done <- w.Run(ctx, func() {
			select {
			case r.woken <- struct{}{}:
			default:
			}
		})
	}()
	w.t.Cleanup(end)
	return r
}

// wait waits until a scan is worthwhile.
func (r *runner) wait(what string) {
	r.w.t.Helper()
	select {
	case <-r.woken:
	case <-time.After(20 * time.Second):
		r.w.t.Fatalf("not woken: %s", what)
	}
}

func (r *runner) stop() {
	r.w.t.Helper()
	r.end()
	if err := <-r.done; err != nil {
		r.w.t.Error(err)
	}
}

// eventuallySettled scans until these have settled, and nothing else.
func (w *bench) eventuallySettled(want ...string) {
	w.t.Helper()
	var names []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		ds, _, _ := w.scan()
		names = nil
		for _, d := range ds {
			names = append(names, d.Name)
		}
		slices.Sort(names)
		if slices.Equal(names, want) {
			return
		}
	}
	w.t.Fatalf("settled %q, want %q", names, want)
}
