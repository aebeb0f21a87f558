package inbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox/internal/content"

	"golang.org/x/sys/unix"
)

// A path of 4,000 characters can stand in the inbox and not in an item: it is said so,
// and the drop is set aside whole.
func TestPathOf4000Characters(t *testing.T) {
	w := newBench(t)
	deep := w.mkdir("inbox/default/deep")
	// Only relative to an opened folder can it be made.
	fd, err := unix.Open(deep, unix.O_DIRECTORY|unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 199)
	for range 19 {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_RDONLY, 0)
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	file, err := unix.Openat(fd, strings.Repeat("f", 200), unix.O_CREAT|unix.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Close(file), unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	w.later(time.Hour)
	w.wantScan(nil, nil, []string{"deep"})
	_, _, bad := w.scan()
	if bad[0].Rule != content.RulePath || !strings.Contains(bad[0].Reason, "holds a path of ") || !strings.Contains(bad[0].Reason, "the limit here is ") {
		t.Errorf("%s: %s", bad[0].Rule, bad[0].Reason)
	}
	if _, err := w.Reject(context.Background(), bad[0].Drop, bad[0].Rule, bad[0].Reason); err != nil {
		t.Fatal(err)
	}
	w.wantEmpty("inbox/default")
	w.wantEmpty("intake")
}

// A file that became a folder between the scan and the take, and the other way round,
// goes back, whole.
func TestFileReplacedByFolder(t *testing.T) {
	w := newBench(t)
	w.write("inbox/default/letters", "a file")
	w.later(time.Hour)
	d := w.settled("letters")
	if err := os.Remove(d.Path); err != nil {
		t.Fatal(err)
	}
	w.drop("letters")
	for _, r := range w.TakeAll(context.Background(), []Request{{Drop: d}}) {
		if !errors.Is(r.Err, ErrChanged) || !strings.Contains(r.Err.Error(), "changed while being taken") {
			t.Errorf("Take = %v", r.Err)
		}
	}
	w.wantFiles("inbox/default", dropFiles("letters"))
	w.wantEmpty("intake")
}

// A folder of 100,000 files is one drop like any other.
func TestHundredThousandEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 files")
	}
	w := newBench(t)
	dir := w.mkdir("inbox/default/many")
	const n = 100_000
	for i := range n {
		fd, err := unix.Open(filepath.Join(dir, fmt.Sprintf("%06d", i)), unix.O_CREAT|unix.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
	}
	w.later(time.Hour)
	d := w.settled("many")
	if d.Files != n {
		t.Errorf("%d files", d.Files)
	}
	taken, err := w.Take(context.Background(), d, Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := Digest(context.Background(), taken.Path); err != nil || sum.Files != n {
		t.Errorf("Digest = %+v, %v", sum, err)
	}
	if err := w.Done(w.promoted(taken)); err != nil {
		t.Fatal(err)
	}
	w.wantEmpty("intake")
}

// A drop that its owner removes while it is being taken is gone, or changed, or taken
// in some state; nothing is left half way, and nothing else is touched.
func TestDropRemovedWhileBeingTaken(t *testing.T) {
	for collection, bench := range map[string]func(*testing.T) *bench{
		"default": func(t *testing.T) *bench { return newBench(t) }, "far": newBenchAcross,
	} {
		t.Run(collection, func(t *testing.T) {
			w := bench(t)
			for i := range 40 {
				rel := fmt.Sprintf("inbox/%s/drop-%d", collection, i)
				for n := range 20 {
					w.write(fmt.Sprintf("%s/%d/file", rel, n), "x")
				}
				w.later(time.Hour)
				d := w.settled(filepath.Base(rel))
				removed := make(chan error, 1)
				go func() { removed <- os.RemoveAll(d.Path) }()
				spin(time.Duration(i) * 5 * time.Microsecond)
				taken, err := w.Take(context.Background(), d, Ticket{})
				<-removed // it may have found the drop gone itself
				switch {
				case err == nil:
					if err := w.Done(w.promoted(taken)); err != nil {
						t.Fatal(err)
					}
				case !errors.Is(err, ErrGone) && !errors.Is(err, ErrChanged) && !errors.Is(err, os.ErrNotExist):
					t.Fatalf("Take = %v", err)
				}
				w.wantEmpty("intake")
				if err := os.RemoveAll(d.Path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Names and reasons are shown on one line, whatever the names are.
func TestMessagesOfOddNames(t *testing.T) {
	w := newBench(t)
	w.mkdir("inbox/default/new\nline")
	if err := unix.Mkfifo(w.path("inbox/default/new\nline/p\xffpe\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.later(time.Hour)
	_, _, bad := w.scan()
	if len(bad) != 1 || bad[0].Reason != "p%FFpe%0A: is a named pipe (FIFO)" {
		t.Fatalf("%+v", bad)
	}
	if err := os.RemoveAll(bad[0].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Take(context.Background(), bad[0].Drop, Ticket{}); err == nil || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "default/new%0Aline: the drop is gone") {
		t.Errorf("Take = %v", err)
	}
}
