package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNamesIn lists a folder whose names take several calls of the system, with their kinds.
func TestNamesIn(t *testing.T) {
	dir := t.TempDir()
	if names, err := Names(dir); err != nil || len(names) > 0 {
		t.Errorf("a new folder holds %v, %v", names, err)
	}
	var want []string
	for i := range 2000 {
		name := fmt.Sprintf("%05d-%s", i, "a name of some length, so that one buffer does not hold all")
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := open(dir, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	names, err := NamesIn(fd)
	var got []string
	for _, n := range names {
		if n.Name != "x" {
			got = append(got, n.Name)
		}
		if folder := n.Name == "x"; n.Type != unix.DT_UNKNOWN && folder != (n.Type == unix.DT_DIR) {
			t.Errorf("%s is said to be of kind %d", n.Name, n.Type)
		}
	}
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d names, %v", len(got), err)
	}
	if _, err := Names(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

// TestOverwrite: what was longer is gone, and a file moved over another replaces it.
func TestOverwrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first", "a second, which is longer", "third", ""} {
		if err := Overwrite(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	if err := Overwrite(name+"-2", []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Move(name+"-2", name); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "other" {
		t.Errorf("%q, %v after the move", got, err)
	}
	if err := Move(name+"-2", name); !os.IsNotExist(err) {
		t.Errorf("what is not there was moved: %v", err)
	}
}

// TestOpenRaw: only regular files are opened, and none is waited for.
func TestOpenRaw(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(name, []byte("text"), 0o644), os.Symlink("file", name+"-link"), unix.Mkfifo(name+"-fifo", 0o644)); err != nil {
		t.Fatal(err)
	}
	f, size, err := OpenRaw(name)
	if err != nil || size != 4 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	if got, err := io.ReadAll(f); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{name + "-link", name + "-fifo", dir, name + "-missing"} {
		if _, _, err := OpenRaw(bad); err == nil {
			t.Errorf("%s was opened", bad)
		}
	}
}

// TestHolds: the bytes are compared to their end.
func TestHolds(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	room, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer room.Close()
	for text, want := range map[string]bool{"abc": true, "abcd": false, "ab": false, "abx": false, "": false} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := room.Holds("file", []byte("abc")); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := room.Holds("missing", nil); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestALockThatIsKept: two who have a lock open are in it one after the other, and again and again.
func TestALockThatIsKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	var wg sync.WaitGroup
	var inside atomic.Int32
	for range 2 {
		l, err := OpenLock(name, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range 200 {
				err := l.Held(func() error {
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d are in it", n)
					}
					runtime.Gosched()
					inside.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
