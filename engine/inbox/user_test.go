package inbox

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout/disk"
	"bagpipe/testdata/sample"
)

// Permissions bind everybody but root, so as root this test runs itself again as
// nobody.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() == 0 {
		sample.AsNobody(t)
		return
	}
	t.Run("unreadable is bad", testUnreadable)
	t.Run("read-only folder", testReadOnlyFolder)
	t.Run("read-only folder across", testReadOnlyAcross)
	t.Run("collection not writable", testCollectionNotWritable)
}

func testUnreadable(t *testing.T) {
	w := newBench(t)
	t.Cleanup(func() { disk.RemoveTree(w.opt.Root) })
	for _, n := range []string{"file", "folder", "blind", "top"} {
		w.drop(n)
	}
	secret := w.write("inbox/default/secret.txt", "x")
	if err := errors.Join(os.Chmod(w.path("inbox/default/file/sub/b.txt"), 0), os.Chmod(w.path("inbox/default/folder/sub"), 0),
		os.Chmod(w.path("inbox/default/blind/sub"), 0o444), os.Chmod(w.path("inbox/default/top"), 0), os.Chmod(secret, 0o200)); err != nil {
		t.Fatal(err)
	}
	w.later(time.Hour)
	w.wantScan(nil, []string{"blind", "file", "folder", "secret.txt", "top"}, nil)
	_, waiting, _ := w.scan()
	for _, x := range waiting {
		if !x.Barred || !slices.Equal(x.Remedies, []fault.Remedy{{Verb: fault.PermitOwner, Name: x.Path, Access: "rX"}}) {
			t.Errorf("%s: barred %t, reason %q, remedies %v", x.Name, x.Barred, x.Reason, x.Remedies)
		}
		if (x.Name == "file" || x.Name == "folder") && !strings.Contains(x.Reason, "; sub") {
			t.Errorf("%s: %q does not name the place", x.Name, x.Reason)
		}
	}
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	w.later(2 * time.Hour)
	w.settled("secret.txt")
}

func testReadOnlyFolder(t *testing.T) {
	w := newBench(t)
	w.drop("cd")
	w.readOnly("inbox/default/cd")
	w.later(time.Hour)
	got, err := w.Take(context.Background(), w.settled("cd"), Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.RemoveTree(w.opt.Root) })
	home := w.promoted(got)
	if err := w.Done(home); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(home.Path); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// readOnly takes the write permission from a folder and what it holds.
func (w *bench) readOnly(rel string) {
	w.t.Helper()
	for _, p := range []string{rel + "/sub", rel} {
		if err := os.Chmod(w.path(p), 0o555); err != nil {
			w.t.Fatal(err)
		}
	}
}

func testReadOnlyAcross(t *testing.T) {
	w := newBench(t)
	dir := otherFS(t, w.opt.Root)
	writeAt(t, dir+"/cd/a.txt", "x")
	writeAt(t, dir+"/cd/sub/b.txt", "x")
	if err := errors.Join(os.Chmod(dir+"/cd/sub", 0o555), os.Chmod(dir+"/cd", 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.RemoveTree(dir) })
	got, err := w.Accept(context.Background(), dir+"/cd", Ticket{Collection: "default", Move: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Done(w.promoted(got)); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func testCollectionNotWritable(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.later(time.Hour)
	d := w.settled("letters")
	if err := os.Chmod(w.path("inbox/default"), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(w.path("inbox/default"), 0o755) })
	if _, err := w.Take(context.Background(), d, Ticket{}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Take = %v, want a permission error", err)
	}
	if _, err := w.Reject(context.Background(), d, "trial", "for the test"); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Reject = %v, want a permission error", err)
	}
	w.wantFiles("inbox/default", dropFiles("letters"))
	w.wantEmpty("intake")
	w.wantEmpty("rejected/default")
}
