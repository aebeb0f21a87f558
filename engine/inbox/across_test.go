package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// newBenchAcross has a collection, far, on another file system.
func newBenchAcross(t *testing.T) *bench {
	t.Helper()
	w := newBench(t)
	far := w.mkdir("inbox/far")
	if err := unix.Mount("tmpfs", far, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("cannot mount a second file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(far, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *bench) dropFar(name string) Drop {
	w.t.Helper()
	w.write("inbox/far/"+name+"/a.txt", "a of "+name)
	w.write("inbox/far/"+name+"/sub/b.txt", "b of "+name)
	w.later(3 * time.Second)
	return w.settled(name)
}

func TestTakeAcrossFileSystems(t *testing.T) {
	w := newBenchAcross(t)
	d := w.dropFar("letters")
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	file := d.Path + "/a.txt"
	if err := errors.Join(os.Chtimes(file, old, old), os.Chmod(file, 0o640)); err != nil {
		t.Fatal(err)
	}
	d = w.settled("letters")
	got, err := w.Take(context.Background(), d, Ticket{Label: "x"})
	if err != nil {
		t.Fatal(err)
	}
	w.wantScan(nil, nil, nil) // the original is hidden, and is not taken twice
	aside := asidePrefix + string(got.ID)
	if f := w.files("inbox/far"); len(f) != 2 || f[aside+"/a.txt"] == "" {
		t.Fatalf("the original must stay until Done: %q", f)
	}
	w.wantFiles("intake/"+string(got.ID)+"/source", dropFiles("letters"))
	info, err := os.Stat(got.Path + "/a.txt")
	if err != nil || !info.ModTime().Equal(old) || info.Mode().Perm() != 0o640 {
		t.Errorf("the copy has %v, %v", info.ModTime(), info.Mode())
	}
	home := w.promoted(got)
	if len(w.files("inbox/far")) != 2 {
		t.Error("the original went before the item was committed")
	}
	for range 2 {
		if err := w.Done(home); err != nil {
			t.Fatal(err)
		}
	}
	w.wantEmpty("inbox/far")
	w.wantEmpty("intake")
	if f := filesBelow(t, filepath.Dir(home.Path)); !maps.Equal(f, dropFiles("letters")) {
		t.Errorf("%q", f)
	}
}

func TestTakeAcrossFileSystemsOnce(t *testing.T) {
	w := newBenchAcross(t)
	d := w.dropFar("letters")
	others := []*bench{w, w.next(), w.next()}
	results := make(chan error)
	for _, o := range others {
		go func() {
			_, err := o.Take(context.Background(), d, Ticket{})
			results <- err
		}()
	}
	wins := 0
	for range others {
		if err := <-results; err == nil {
			wins++
		} else if !errors.Is(err, ErrGone) {
			t.Error(err)
		}
	}
	if wins != 1 {
		t.Errorf("%d winners", wins)
	}
}

// Whatever a dead engine left of a copy, the original is there again and whole,
// or the copy is complete and the original goes after the commit.
func TestCopyCutShort(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		leave func(w *bench, d Drop) // what the dead engine did
		found bool
	}{
		"before the rename": {func(w *bench, d Drop) {
			w.openAcross(d)
		}, false},
		"before the copy": {func(w *bench, d Drop) {
			x := w.openAcross(d)
			w.mustMove(d.Path, x.aside)
		}, false},
		"half a copy": {func(w *bench, d Drop) {
			x := w.openAcross(d)
			w.mustMove(d.Path, x.aside)
			w.write("intake/"+string(x.ID)+"/copying/letters/a.txt", "a o")
		}, false},
		"a whole copy": {func(w *bench, d Drop) {
			if _, err := w.Take(ctx, d, Ticket{}); err != nil {
				w.t.Fatal(err)
			}
		}, true},
		"promoted": {func(w *bench, d Drop) {
			got, err := w.Take(ctx, d, Ticket{})
			if err != nil {
				w.t.Fatal(err)
			}
			w.promoted(got)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBenchAcross(t)
			c.leave(w, w.dropFar("letters"))
			next := w.next()
			found := next.pending()
			if c.found {
				if len(found) != 1 || found[0].Name != "letters" {
					t.Fatalf("recovered %+v", found)
				}
				if err := next.Done(next.promoted(found[0])); err != nil {
					t.Fatal(err)
				}
				w.wantEmpty("inbox/far")
			} else {
				if len(found) != 0 {
					t.Fatalf("recovered %+v", found)
				}
				w.wantFiles("inbox/far", dropFiles("letters"))
			}
			w.wantEmpty("intake")
		})
	}
}

// openAcross makes the journal of a take across file systems.
func (w *bench) openAcross(d Drop) Taken {
	w.t.Helper()
	got := w.opened(Request{Drop: d})
	if got.Err != nil {
		w.t.Fatal(got.Err)
	}
	x := got.Taken
	x.aside = filepath.Join(filepath.Dir(d.Path), asidePrefix+string(x.ID))
	if err := rewriteJournal(w.intakeOf(x.ID), map[string]any{"mode": modeCopy, "aside": w.shorten(x.aside)}); err != nil {
		w.t.Fatal(err)
	}
	return x
}

// opened makes an intake folder into which nothing has been moved yet.
func (w *bench) opened(r Request) Result {
	ids, err := w.drawIDs(1)
	got, j := w.draft(r, ids[0], err)
	return w.prepare(got, j, true)
}

func (w *bench) mustMove(from, to string) {
	w.t.Helper()
	if err := os.Rename(from, to); err != nil {
		w.t.Fatal(err)
	}
}

// With the intake gone, an original set aside is not forgotten.
func TestAsideWithoutIntakeIsShown(t *testing.T) {
	w := newBench(t)
	w.write("inbox/default/.bagpipe-3fa9c0d2e1b7a45/x", "x")
	w.write("inbox/default/.bagpipe-.", "x")
	w.later(time.Hour)
	w.wantScan(nil, []string{".bagpipe-3fa9c0d2e1b7a45", ".bagpipe-."}, nil)
}

func TestRejectAcrossFileSystems(t *testing.T) {
	w := newBenchAcross(t)
	d := w.dropFar("letters")
	where, err := w.Reject(context.Background(), d, "trial", "for the test")
	if err != nil {
		t.Fatal(err)
	}
	if where != w.path("inbox/far/.rejected/letters") {
		t.Errorf("rejected to %s", where)
	}
	w.wantScan(nil, nil, nil)
	r := w.files("rejected/far")["letters.reason.json"]
	if !strings.Contains(r, `"where": "inbox/far/.rejected/letters"`) {
		t.Errorf("%s", r)
	}
	if found, err := w.Rejections(); err != nil || len(found) != 1 || found[0].Drop != "far/letters" || found[0].Where != "inbox/far/.rejected/letters" || found[0].Reason != "for the test" {
		t.Errorf("listed: %+v, %v", found, err)
	}
	got, err := w.Take(context.Background(), w.dropFar("other"), Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.RejectTaken(context.Background(), got, "trial", "for the test"); err != nil {
		t.Fatal(err)
	}
	w.wantEmpty("intake")
	if f := w.files("inbox/far"); len(f) != 2 { // the first one only
		t.Errorf("%q", f)
	}
	if f := w.files("rejected/far"); f["other/a.txt"] != "a of other" {
		t.Errorf("%q", f)
	}
}

// A kill at any instant of taking across file systems loses and doubles nothing.
func TestKillInTheMiddleOfTakingAcross(t *testing.T) {
	rounds := 8
	if os.Getenv("BAGPIPE_SOAK") != "" {
		rounds = 300
	}
	w := newBenchAcross(t)
	drops := 0
	for round := range rounds {
		for range 4 {
			name := fmt.Sprintf("drop-%04d", drops)
			w.write("inbox/far/"+name+"/a.txt", "a of "+name)
			w.write("inbox/far/"+name+"/sub/b.txt", "b of "+name)
			drops++
		}
		p := start(t, w, "slow")
		p.begin()
		for range 1 + round%2 {
			if !p.out.Scan() {
				t.Fatal("the child ended")
			}
		}
		spin(time.Duration(round*53%300) * 10 * time.Microsecond)
		p.kill()
		next := w.next()
		for _, got := range next.pending() {
			if err := next.Done(next.promoted(got)); err != nil {
				t.Fatal(err)
			}
		}
		w.wantEmpty("intake")
	}
	p := start(t, w, "race")
	p.begin()
	if _, done := p.read(); !done {
		t.Fatal("the last child did not finish")
	}
	w.wantEmpty("inbox/far")
	w.wantEmpty("intake")
	w.wantOnceInItems(drops)
}

func TestCopyOntoFullDisk(t *testing.T) {
	w := newBench(t)
	small := w.mkdir("intake")
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a second file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(small, unix.MNT_DETACH) })
	w.write("inbox/default/big/file", strings.Repeat("x", 4<<20))
	w.later(3 * time.Second)
	before := w.files("inbox/default")
	if _, err := w.Take(context.Background(), w.settled("big"), Ticket{}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("Take = %v, want ENOSPC", err)
	}
	w.wantFiles("inbox/default", before)
	w.wantEmpty("intake")
}

func TestAccept(t *testing.T) {
	ctx := context.Background()
	for _, across := range []bool{false, true} {
		for _, move := range []bool{false, true} {
			t.Run(fmt.Sprintf("across=%v,move=%v", across, move), func(t *testing.T) {
				w := newBench(t)
				dir := t.TempDir()
				if across {
					dir = otherFS(t, w.opt.Root)
				}
				path := filepath.Join(dir, "letters")
				writeAt(t, path+"/a.txt", "a of letters")
				writeAt(t, path+"/sub/b.txt", "b of letters")
				got, err := w.Accept(ctx, path, Ticket{Collection: "reading-room", Label: "x", Move: move})
				if err != nil {
					t.Fatal(err)
				}
				if got.Collection != "reading-room" || got.Ticket.Label != "x" || got.Files != 2 || got.Origin != path {
					t.Errorf("%+v", got)
				}
				w.wantFiles("intake/"+string(got.ID)+"/source", dropFiles("letters"))
				if _, err := os.Stat(path); (err == nil) != !move {
					t.Errorf("original: %v", err)
				}
				if err := w.Done(w.promoted(got)); err != nil {
					t.Fatal(err)
				}
				left := filesBelow(t, dir)
				if move && len(left) != 0 || !move && !maps.Equal(left, dropFiles("letters")) {
					t.Errorf("left at the origin: %q", left)
				}
				w.wantEmpty("intake")
			})
		}
	}
}

func writeAt(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestAcceptUndone(t *testing.T) {
	w := newBench(t)
	for _, dir := range []string{t.TempDir(), otherFS(t, w.opt.Root)} {
		for _, move := range []bool{false, true} {
			path := filepath.Join(dir, "one.txt")
			writeAt(t, path, "one")
			got, err := w.Accept(context.Background(), path, Ticket{Collection: "default", Move: move})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Undo(got); err != nil {
				t.Fatal(err)
			}
			if f := filesBelow(t, dir); !maps.Equal(f, map[string]string{"one.txt": "one"}) {
				t.Errorf("%q", f)
			}
			w.wantEmpty("intake")
		}
	}
}

func TestAcceptRefuses(t *testing.T) {
	w := newBench(t)
	dir := t.TempDir()
	writeAt(t, dir+"/fifo/ok", "x")
	writeAt(t, dir+"/link/ok", "x")
	writeAt(t, dir+"/zero", "")
	writeAt(t, dir+"/good", "x")
	w.write("items/x", "x")
	w.drop("waiting")
	if err := errors.Join(unix.Mkfifo(dir+"/fifo/pipe", 0o644), os.Symlink("ok", dir+"/link/l"),
		os.Symlink("good", dir+"/toplink"), os.Mkdir(dir+"/hollow", 0o755)); err != nil {
		t.Fatal(err)
	}
	for path, rule := range map[string]string{
		dir + "/fifo": content.RuleSpecial, dir + "/link": content.RuleLink, dir + "/toplink": content.RuleLink, dir + "/zero": content.RuleEmpty,
		dir + "/hollow": content.RuleEmpty, dir + "/missing": "", w.path("items/x"): "", w.path("items"): "", w.opt.Root: "",
		w.path("inbox"): "", w.path("inbox/default"): "", "/": "",
	} {
		for _, move := range []bool{false, true} {
			_, err := w.Accept(context.Background(), path, Ticket{Collection: "default", Move: move})
			var bad *BadError
			if err == nil || rule != "" && (!errors.As(err, &bad) || bad.Rule != rule) {
				t.Errorf("Accept(%s, move=%v) = %v, want rule %q", path, move, err, rule)
			}
		}
	}
	if _, err := w.Accept(context.Background(), dir+"/good", Ticket{Collection: "../x"}); err == nil {
		t.Error("a collection outside was accepted")
	}
	w.wantEmpty("intake")
	got, err := w.Accept(context.Background(), w.path("inbox/default/waiting"), Ticket{Collection: "default", Move: true})
	if err != nil {
		t.Errorf("a drop may be added by hand: %v", err)
	}
	w.wantFiles("intake/"+string(got.ID)+"/source", dropFiles("waiting"))
}

func TestAcceptEndsWithItsContext(t *testing.T) {
	w := newBench(t)
	dir := t.TempDir()
	writeAt(t, dir+"/one/file", "x")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Accept(ctx, dir+"/one", Ticket{Collection: "default"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Accept = %v", err)
	}
	w.wantEmpty("intake")
}

// A copy that a kill cut short is cleared away; the original was never touched.
func TestAcceptCutShort(t *testing.T) {
	w := newBench(t)
	path := filepath.Join(t.TempDir(), "letters")
	writeAt(t, path, "x")
	id, err := layout.NewItemID(w.opt.Random)
	if err != nil {
		t.Fatal(err)
	}
	j := w.journalOf(Drop{Collection: "default", Name: "letters", Path: path, Kind: File}, Ticket{})
	j.Mode = modeCopy
	if err := w.open(id, j, true); err != nil {
		t.Fatal(err)
	}
	w.write("intake/"+string(id)+"/copying/letters", "")
	if found := w.next().pending(); len(found) != 0 {
		t.Errorf("recovered %+v", found)
	}
	w.wantEmpty("intake")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// A copy whose original its owner has deleted is the only one, and stays.
func TestUndoKeepsTheOnlyCopy(t *testing.T) {
	w := newBench(t)
	path := filepath.Join(t.TempDir(), "one.txt")
	writeAt(t, path, "one")
	got, err := w.Accept(context.Background(), path, Ticket{Collection: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := w.Undo(got); err == nil {
		t.Error("was undone")
	}
	w.wantFiles("intake/"+string(got.ID)+"/source", map[string]string{"one.txt": "one"})
}
