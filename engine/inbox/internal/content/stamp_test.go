package content

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A stamp is another after any change, a change of time set back included, and proves
// nothing while a change could hide in the same tick.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, path := range []string{a, b} {
		if err := os.WriteFile(path, []byte("one"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	stamp := func() Stamp {
		s, _, err := StampOf(t.Context(), dir, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	was := stamp()
	if stamp() != was {
		t.Error("the stamp of an untouched folder is another")
	}
	later := info.ModTime().Add(time.Hour)
	if _, proves, err := StampOf(t.Context(), dir, later); err != nil || proves == IsNetwork(dir) {
		t.Errorf("an hour after the last change: %v, %v", proves, err)
	}
	if _, proves, err := StampOf(t.Context(), dir, info.ModTime()); err != nil || proves {
		t.Errorf("at the time of the last change: %v, %v", proves, err)
	}
	for name, change := range map[string]func() error{
		"the same bytes and times in another file": func() error { return os.Rename(b, filepath.Join(dir, "c")) },
		"other bytes, times set back": func() error {
			if err := os.WriteFile(a+".new", []byte("two"), 0o666); err != nil {
				return err
			}
			if err := os.Chtimes(a+".new", info.ModTime(), info.ModTime()); err != nil {
				return err
			}
			return os.Rename(a+".new", a)
		},
	} {
		was = stamp()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if stamp() == was {
			t.Errorf("%s: the same stamp", name)
		}
	}
}

// A further name of every file is told from a write, a further name of one file is not.
func TestStampOfLinkedFiles(t *testing.T) {
	dir, beside := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("one"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().Add(time.Hour)
	stamp := func() Stamp {
		s, _, err := StampOf(t.Context(), dir, at)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	link := func(name, as string) {
		if err := os.Link(filepath.Join(dir, name), filepath.Join(beside, as)); err != nil {
			t.Fatal(err)
		}
	}
	at = time.Now()
	young := stamp()
	at = at.Add(time.Hour)
	was := stamp()
	if young.ProvesLinked() || !was.ProvesLinked() {
		t.Errorf("files that were just written prove %v, and %v an hour later", young.ProvesLinked(), was.ProvesLinked())
	}
	if was.Linked(stamp()) {
		t.Error("nothing was done, and the files are said to be linked")
	}
	link("a", "a")
	if was.Linked(stamp()) {
		t.Error("one file of two has a further name, and both are said to")
	}
	link("b", "b")
	if !was.Linked(stamp()) {
		t.Error("both files have a further name, and are not said to")
	}
	if young.Linked(stamp()) {
		t.Error("a write that bears the time before it is said to be a further name")
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	was = stamp()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("two"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "a"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if was.Linked(stamp()) {
		t.Error("a file was written to, and is said to be linked")
	}
	link("a", "c")
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("longer"), 0o666); err != nil {
		t.Fatal(err)
	}
	link("b", "d")
	if was.Linked(stamp()) {
		t.Error("a file has another size, and is said to be linked")
	}
}
