package disk_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/layout/disk"
)

// What is begun behind the writer is what was written, whatever the pieces and the offset.
func TestBehind(t *testing.T) {
	data := make([]byte, 21<<20)
	rand.NewChaCha8([32]byte{7}).Read(data)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, data[:5], 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := disk.Behind(f, 5, bytes.NewReader(data[5:])); err != nil || n != int64(len(data)-5) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, other than were written; %v", len(got), err)
	}
	if n, err := disk.Behind(f, 0, bytes.NewReader(data)); err == nil || n != 0 {
		t.Errorf("a closed file took %d bytes", n)
	}
}
