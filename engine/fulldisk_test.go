package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
	"bagpipe/steps"

	"golang.org/x/sys/unix"
)

// mountRoom is a small file system; room gives it more space.
func mountRoom(t *testing.T, dir, size string) (room func(size string)) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return func(size string) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
}

const fullDiskSettings = `schema: 1
defaults: {workflow: plain}
inbox: {quiet: 1ms, rescan: 30ms}
limits: {free: 64KiB, room: %g}
collections: {far: {}}
`

const plainWorkflow = "schema: 1\nname: plain\nsteps:\n  - name: register\n  - name: done\n    robot: noop\n"

// A disk that is full in the middle of taking drops in: nothing is lost, it is said
// why, and it goes on by itself once there is room.
func TestFullDiskWhileTakingIn(t *testing.T) {
	for name, c := range map[string]struct {
		room       float64
		note, wait string
	}{
		"as the headers have it": {2, "waits for free space: it needs ", "waits for free space: it needs "},
		"found out by writing":   {0.0001, "no space left on device", ""},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			root := filepath.Join(base, "w")
			room := mountRoom(t, root, "16m")
			o := engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(),
				Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(engine.Init(ctx, root, o))
			must(os.WriteFile(filepath.Join(root, "bagpipe.yaml"), fmt.Appendf(nil, fullDiskSettings, c.room), 0o644))
			must(os.WriteFile(filepath.Join(root, "workflows/plain.yaml"), []byte(plainWorkflow), 0o644))
			far := filepath.Join(root, "inbox/far")
			mountRoom(t, far, "64m")
			const drops = 5
			for i := range drops {
				must(os.WriteFile(filepath.Join(far, fmt.Sprintf("film-%d", i)), bytes.Repeat([]byte{byte(i)}, 5<<20), 0o644))
			}
			e, err := engine.Open(ctx, root, o)
			must(err)
			defer e.Close()

			var mu sync.Mutex
			var notes []string
			admitted := map[string]layout.ItemID{}
			said := make(chan struct{}, 1)
			drain, done := make(chan struct{}), make(chan error, 1)
			go func() {
				_, err := e.Run(ctx, engine.RunOptions{Parallel: 2, Watch: true, Drain: drain, Report: func(r engine.Report) {
					mu.Lock()
					defer mu.Unlock()
					if r.Admitted != nil {
						admitted[r.Admitted.Label] = r.Admitted.Item
					}
					if notes = append(notes, r.Note); strings.Contains(r.Note, c.note) {
						select {
						case said <- struct{}{}:
						default:
						}
					}
				}})
				done <- err
			}()
			select {
			case <-said:
			case err := <-done:
				t.Fatalf("the run ended: %v; %q", err, notes)
			case <-ctx.Done():
				t.Fatalf("it was not said that %q, but %q", c.note, notes)
			}
			if c.wait != "" {
				look, err := engine.Open(ctx, root, engine.Options{ReadOnly: true, Now: time.Now, Random: rand.New(rand.NewSource(2)), Robots: steps.Builtins(), Host: o.Host})
				must(err)
				must(look.Index.Load(ctx))
				s, err := look.Ask.Status(ctx, ask.Filter{})
				must(err)
				must(look.Close())
				if !strings.Contains(fmt.Sprint(s.Inbox), c.wait) {
					t.Errorf("status says %v", s.Inbox)
				}
			}
			room("128m")
			for ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				n := len(admitted)
				mu.Unlock()
				if n == drops {
					break
				}
			}
			close(drain)
			must(<-done)
			for i := range drops {
				label := fmt.Sprintf("film-%d", i)
				data, err := os.ReadFile(filepath.Join(root, layout.ItemDir(admitted[label]), "source", label))
				if err != nil || !bytes.Equal(data, bytes.Repeat([]byte{byte(i)}, 5<<20)) {
					t.Errorf("%s: %d bytes, %v", label, len(data), err)
				}
			}
			left, err := os.ReadDir(filepath.Join(root, "intake"))
			if err != nil || len(left) > 0 {
				t.Errorf("left in intake/: %v, %v", left, err)
			}
			if left, err := os.ReadDir(far); err != nil || len(left) > 0 {
				t.Errorf("left in the inbox: %v, %v", left, err)
			}
		})
	}
}

// Small drops that expand to much are measured before they are taken in, whatever their
// headers leave out.
func TestHighlyCompressedDropsWaitForRoom(t *testing.T) {
	root := filepath.Join(t.TempDir(), "w")
	mountRoom(t, root, "48m")
	ctx := context.Background()
	o := engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
	if err := engine.Init(ctx, root, o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bagpipe.yaml"), []byte("schema: 1\ndefaults: {workflow: accession}\ninbox: {quiet: 1ms}\nlimits: {free: 1MiB}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const zeros = "head -c 30000000 /dev/zero >zeros && tar -c zeros | zstd -q >inbox/default/a.tar.zst && cp inbox/default/a.tar.zst inbox/default/b.tar.zst && tar -cJf inbox/default/c.tar.xz zeros && rm zeros && echo note >inbox/default/note.txt"
	cmd := exec.Command("sh", "-c", zeros)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	e, err := engine.Open(ctx, root, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Run(ctx, engine.RunOptions{Parallel: 2})
	if err != nil || s.Admitted != 1 || len(s.Growing) != 3 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, left := range s.Growing {
		if !strings.Contains(left.Text, "waits for free space: it needs ") {
			t.Error(left.Text)
		}
	}
}
