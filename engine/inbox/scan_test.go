package inbox

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox/internal/content"

	"golang.org/x/sys/unix"
)

func TestSettling(t *testing.T) {
	w := newBench(t)
	w.atOnce()
	w.drop("letters")
	w.write("inbox/default/loose.pdf", "%PDF")
	w.wantScan(nil, []string{"letters", "loose.pdf"}, nil)
	_, waiting, _ := w.scan()
	for _, x := range waiting {
		if x.Reason != growing || !x.Until.After(w.opt.Now()) || x.Until.After(w.opt.Now().Add(2*time.Second)) {
			t.Errorf("%s: %q until %v", x.Name, x.Reason, x.Until)
		}
	}
	w.later(2 * time.Second)
	w.wantScan([]string{"letters", "loose.pdf"}, nil, nil)
	d := w.settled("letters")
	if d.Collection != "default" || d.Kind != Folder || d.Files != 2 || d.Bytes != int64(len("a of lettersb of letters")) {
		t.Errorf("drop = %+v", d)
	}
	if d := w.settled("loose.pdf"); d.Kind != File || d.Files != 1 || d.Bytes != 4 {
		t.Errorf("drop = %+v", d)
	}
}

// A folder settles as a whole: the newest change deep inside counts, also one
// that keeps size and modification time.
func TestChangeDeepInsideUnsettles(t *testing.T) {
	for name, change := range map[string]func(w *bench, file string) error{
		"written":    func(_ *bench, file string) error { return os.WriteFile(file, []byte("more"), 0o644) },
		"new file":   func(_ *bench, file string) error { return os.WriteFile(file+"2", nil, 0o644) },
		"removed":    func(_ *bench, file string) error { return os.Remove(file) },
		"only ctime": func(_ *bench, file string) error { return os.Chmod(file, 0o600) },
		"old mtime": func(_ *bench, file string) error {
			old := time.Now().Add(-time.Hour)
			return os.Chtimes(file, old, old)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const margin = 300 * time.Millisecond // more than file systems round times by
			w := newBench(t)
			w.drop("letters")
			aged := time.After(margin + 50*time.Millisecond)
			// The clock stands so that the drop is settled by a hair.
			w.later(2*time.Second + time.Millisecond)
			w.wantScan([]string{"letters"}, nil, nil)
			// From here on it is settled but for the change.
			<-aged
			w.ahead.Store(int64(2*time.Second - margin))
			w.atOnce()
			if err := change(w, w.path("inbox/default/letters/sub/b.txt")); err != nil {
				t.Fatal(err)
			}
			w.wantScan(nil, []string{"letters"}, nil)
		})
	}
}

// Ages prove nothing when times lie in the future; watching does.
func TestFutureTimesSettleByWatching(t *testing.T) {
	w := newBench(t)
	path := w.write("inbox/default/skewed.bin", "x")
	future := time.Now().Add(24 * time.Hour)
	chtimes := func(at time.Time) {
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	chtimes(future)
	w.later(time.Hour)
	w.wantScan(nil, []string{"skewed.bin"}, nil)
	w.later(time.Second)
	w.wantScan(nil, []string{"skewed.bin"}, nil)
	chtimes(future.Add(time.Second))
	w.later(time.Second)
	w.wantScan(nil, []string{"skewed.bin"}, nil)
	w.later(2 * time.Second)
	w.wantScan([]string{"skewed.bin"}, nil, nil)
}

func TestUnfinishedNames(t *testing.T) {
	w := newBench(t)
	for _, n := range []string{".hidden", "a.part", "b.tmp", "c.crdownload", "d.filepart", "e~"} {
		w.write("inbox/default/"+n, "x")
	}
	w.write("inbox/default/.folder/x", "x")
	w.write("inbox/default/upload.part/x", "x")
	w.write("inbox/default/copying/deep/film.mp4.part", "x")
	w.write("inbox/default/fine/.DS_Store", "x") // dotfiles inside are content
	w.write("inbox/default/part", "x")
	w.later(time.Hour)
	w.wantScan([]string{"fine", "part"},
		[]string{".folder", ".hidden", "a.part", "b.tmp", "c.crdownload", "copying", "d.filepart", "e~", "upload.part"}, nil)
	_, waiting, _ := w.scan()
	for _, x := range waiting {
		if x.Name == "copying" && !strings.Contains(x.Reason, "deep/film.mp4.part") {
			t.Errorf("copying: %q does not name the file", x.Reason)
		}
		if !x.Until.IsZero() {
			t.Errorf("%s: does not settle by waiting, yet has %v", x.Name, x.Until)
		}
	}
	if err := os.Rename(w.path("inbox/default/a.part"), w.path("inbox/default/a")); err != nil {
		t.Fatal(err)
	}
	w.settled("a")
}

func TestWhatIsNoCollection(t *testing.T) {
	w := newBench(t)
	w.write("inbox/loose.txt", "x")
	w.write("inbox/bad name!/x/y", "x")
	w.write("inbox/.Trash-1000/x/y", "x")
	if err := os.Symlink(t.TempDir(), w.path("inbox/elsewhere")); err != nil {
		t.Fatal(err)
	}
	w.later(time.Hour)
	w.wantScan(nil, []string{".Trash-1000", "bad name!", "elsewhere", "loose.txt"}, nil)
	_, waiting, _ := w.scan()
	for _, x := range waiting {
		if x.Reason == "" || x.Collection != "" {
			t.Errorf("%+v", x)
		}
		if x.Name == "loose.txt" && !strings.Contains(x.Reason, "collection") {
			t.Errorf("loose.txt: %q", x.Reason)
		}
	}
}

func TestNoInboxAtAll(t *testing.T) {
	b, err := New(Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := b.Scan(context.Background()); err != nil || len(f.Settled)+len(f.Waiting)+len(f.Bad) != 0 {
		t.Errorf("Scan = %+v, %v", f, err)
	}
}

func TestEmptyDropsWaitLonger(t *testing.T) {
	w := newBench(t)
	w.mkdir("inbox/default/soon/inner")
	w.write("inbox/default/nothing.txt", "")
	w.later(19 * time.Second)
	w.wantScan(nil, []string{"nothing.txt", "soon"}, nil)
	w.later(2 * time.Second)
	w.wantScan(nil, nil, []string{"nothing.txt", "soon"})
	_, _, bad := w.scan()
	for _, x := range bad {
		if x.Rule != content.RuleEmpty {
			t.Errorf("%+v", x)
		}
	}
	w.write("inbox/default/soon/inner/first.txt", "x")
	w.settled("soon") // the clock is far ahead of the write
}

// Specials make a drop bad and are never opened: opening the FIFO would hang.
func TestSpecialsAreBad(t *testing.T) {
	link := func(t *testing.T, p string) error { return os.Symlink("/etc/passwd", p) }
	loop := func(t *testing.T, p string) error { return os.Symlink(filepath.Base(p), p) }
	fifo := func(t *testing.T, p string) error { return unix.Mkfifo(p, 0o644) }
	device := func(t *testing.T, p string) error { mustMknod(t, p, unix.S_IFCHR); return nil }
	socket := func(t *testing.T, p string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p, Net: "unix"})
		if err == nil {
			l.SetUnlinkOnClose(false)
			err = l.Close()
		}
		return err
	}
	up := func(t *testing.T, p string) error { return os.Symlink("..", p) }
	for name, c := range map[string]struct {
		make func(*testing.T, string) error
		rule string
	}{"link": {link, content.RuleLink}, "loop": {loop, content.RuleLink}, "up": {up, content.RuleLink}, "fifo": {fifo, content.RuleSpecial},
		"device": {device, content.RuleSpecial}, "socket": {socket, content.RuleSpecial}} {
		t.Run(name, func(t *testing.T) {
			w := newBenchAt(t, shortDir(t))
			w.atOnce()
			w.drop("inside")
			if err := c.make(t, w.path("inbox/default/inside/sub/z")); err != nil {
				t.Fatal(err)
			}
			if err := c.make(t, w.path("inbox/default/top")); err != nil {
				t.Fatal(err)
			}
			w.wantScan(nil, []string{"inside", "top"}, nil)
			w.later(time.Hour)
			w.wantScan(nil, nil, []string{"inside", "top"})
			_, _, bad := w.scan()
			for _, x := range bad {
				if x.Rule != c.rule {
					t.Errorf("%s: rule %q, want %q", x.Name, x.Rule, c.rule)
				}
				if x.Name == "inside" && !strings.HasPrefix(x.Reason, "sub/z: ") {
					t.Errorf("%q does not name the file", x.Reason)
				}
				if _, err := w.Reject(context.Background(), x.Drop, x.Rule, x.Reason); err != nil {
					t.Error(err)
				}
			}
			w.wantScan(nil, nil, nil)
		})
	}
}

// shortDir is a folder whose path is short enough for a socket's.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "bp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// oddNames are names that file systems allow.
var oddNames = []string{strings.Repeat("n", 255), strings.Repeat("ü", 127), "new\nline", "not-utf8-\xff\xfe", " ", "-rf", "a%b", "tab\there", "..."}

func TestOddNames(t *testing.T) {
	w := newBench(t)
	for _, n := range oddNames {
		w.write("inbox/default/"+n, "content of "+n)
	}
	w.later(time.Hour)
	dotted := []string{"..."} // a dotfile
	w.wantScan(oddNames[:len(oddNames)-1], dotted, nil)
	drops, _, _ := w.scan()
	for _, d := range drops {
		got, err := w.Take(context.Background(), d, Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		got = w.promoted(got)
		if data, err := os.ReadFile(got.Path); err != nil || string(data) != "content of "+d.Name || filepath.Base(got.Path) != d.Name {
			t.Errorf("%q: %q, %v", d.Name, data, err)
		}
		if err := w.Done(got); err != nil {
			t.Error(err)
		}
	}
	w.wantEmpty("intake")
}

func TestPathsTooLongAreBad(t *testing.T) {
	w := newBench(t)
	deep := w.mkdir("inbox/default/deep")
	fd, err := unix.Open(deep, unix.O_DIRECTORY|unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 200)
	for range 25 { // 5,000 bytes: more than one path may have
		if err := unix.Mkdirat(fd, name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	w.later(time.Hour)
	w.wantScan(nil, nil, []string{"deep"})
	_, _, bad := w.scan()
	if bad[0].Rule != content.RulePath {
		t.Errorf("%+v", bad[0])
	}
	if _, err := w.Reject(context.Background(), bad[0].Drop, bad[0].Rule, bad[0].Reason); err != nil {
		t.Fatal(err)
	}
}

func TestManyEntries(t *testing.T) {
	w := newBench(t)
	dir := w.mkdir("inbox/default/many")
	for i := range 5_000 {
		if err := os.WriteFile(filepath.Join(dir, time.Duration(i).String()), []byte{1}, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.later(time.Hour)
	if d := w.settled("many"); d.Files != 5_000 || d.Bytes != 5_000 {
		t.Errorf("%d files, %d bytes", d.Files, d.Bytes)
	}
}

func TestScanEndsWithItsContext(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Scan(ctx); err != context.Canceled {
		t.Errorf("Scan = %v", err)
	}
}

func TestObservationsAreForgotten(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.scan()
	if len(w.seen) != 1 {
		t.Fatalf("%d observations", len(w.seen))
	}
	if err := os.RemoveAll(w.path("inbox/default/letters")); err != nil {
		t.Fatal(err)
	}
	w.scan()
	if len(w.seen) != 0 {
		t.Errorf("%d observations of nothing", len(w.seen))
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no workspace was accepted")
	}
	if _, err := New(Options{Root: t.TempDir(), Settling: Settling{Quiet: 2 * time.Second, Ignore: []string{"[a"}}}); err == nil {
		t.Error("a broken pattern was accepted")
	}
}

// On a network file system the server's clock may be hours behind: an old time
// settles nothing there, only watching does.
func TestNetworkFileSystemsSettleByWatching(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.later(time.Hour)
	d := w.settled("letters")
	clear(w.seen)
	if still := w.stillThere(d); still != 0 {
		t.Errorf("still for %v at first sight", still)
	}
	w.later(3 * time.Second)
	if still := w.stillThere(d); still < 3*time.Second || still > time.Minute {
		t.Errorf("still for %v", still)
	}
	d.sig.Hash++
	if still := w.stillThere(d); still != 0 {
		t.Errorf("still for %v after a change", still)
	}
}

// stillThere is how long a drop on a network file system has been still.
func (w *bench) stillThere(d Drop) time.Duration {
	still, _ := w.stillFor(d, true)
	return still
}
