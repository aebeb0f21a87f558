package disk

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWritersOf(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "film.mov"), filepath.Join(dir, "linked")
	if err := os.WriteFile(name, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := WritersOf(name); got != NoWriters {
		t.Skipf("no leases here: %d", got)
	}
	if err := os.Link(name, other); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if got := WritersOf(name); got != NoWriters {
		t.Errorf("open for reading, with two names: %d", got)
	}
	writer, err := os.OpenFile(other, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := WritersOf(name); got != HasWriters {
		t.Errorf("open for writing under its other name: %d", got)
	}
	mapped, err := unix.Mmap(int(writer.Fd()), 0, 4, unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if got := WritersOf(name); got != HasWriters {
		t.Errorf("closed, but mapped for writing: %d", got)
	}
	if err := unix.Munmap(mapped); err != nil {
		t.Fatal(err)
	}
	if got := WritersOf(name); got != NoWriters {
		t.Errorf("no longer open: %d", got)
	}
	again, err := os.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("the lease is still held: %v", err)
	}
	again.Close()
	if got := WritersOf(filepath.Join(dir, "gone")); got != UnseenWriters {
		t.Errorf("not there: %d", got)
	}
}

func BenchmarkWritersOf(b *testing.B) {
	name := filepath.Join(b.TempDir(), "file")
	if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		WritersOf(name)
	}
}
