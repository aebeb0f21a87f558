package folder

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is mounted on a folder in an object is not read as a part of it.
func TestNoStampOverAMount(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := StampPlace(t.Context(), dir, nil, true); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(t.TempDir(), in, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(in, unix.MNT_DETACH) })
	if _, err := StampPlace(t.Context(), dir, nil, true); !errors.Is(err, errMounted) {
		t.Errorf("StampPlace = %v, want %v", err, errMounted)
	}
}

// What a catalog knows of a file that it listed is enough to tell its stamp, and whether the file is
// another one since.
func TestStampOfAListedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "scan.dat")
	if err := os.WriteFile(name, []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, trusting := range []bool{false, true} {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		listed := StampFile(info.Size(), info.Sys().(*syscall.Stat_t).Ino, info.ModTime().UnixNano(), trusting)
		is := func() string {
			stamp, err := StampPlace(t.Context(), name, nil, trusting)
			if err != nil {
				t.Fatal(err)
			}
			return stamp
		}
		if is() != listed {
			t.Errorf("trusting %v: the stamp of a file as it was listed is another", trusting)
		}
		if err := os.Chtimes(name, time.Time{}, info.ModTime().Add(time.Nanosecond)); err != nil {
			t.Fatal(err)
		}
		if is() == listed {
			t.Errorf("trusting %v: a file written since has the stamp that it had", trusting)
		}
	}
}
