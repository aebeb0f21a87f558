package archive

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What an archive will take is known without unpacking it.
func TestExpanded(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.MkdirAll(in, 0o755); err != nil {
		t.Fatal(err)
	}
	const size = 3 << 20
	if err := os.WriteFile(filepath.Join(in, "zeros"), make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{
		"a.zip": {"zip", "-qr", "../a.zip", "."}, "a.tar": {"tar", "-cf", "../a.tar", "."}, "a.tar.gz": {"tar", "-czf", "../a.tar.gz", "."},
		"a.tar.xz": {"tar", "-cJf", "../a.tar.xz", "."}, "a.tar.bz2": {"tar", "-cjf", "../a.tar.bz2", "."},
		"a.tar.zst": {"sh", "-c", "tar -c . | zstd -q >../a.tar.zst"}, // without its length
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip(err)
			}
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Dir = in
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
			path := filepath.Join(dir, name)
			got, err := Expanded(context.Background(), path, Limits{})
			info, _ := os.Stat(path)
			low, high := int64(size), int64(size+1<<16)
			if err != nil || got < low || got > high {
				t.Errorf("Expanded = %d, %v; want %d to %d", got, err, low, high)
			}
			// Cut short, or its trailer gone: still a size, and no error.
			if err := os.Truncate(path, info.Size()-3); err != nil {
				t.Fatal(err)
			}
			if got, err := Expanded(context.Background(), path, Limits{}); err != nil || got < info.Size()-3 {
				t.Errorf("of a damaged one: %d, %v", got, err)
			}
		})
	}
	if got, err := Expanded(context.Background(), filepath.Join(in, "zeros"), Limits{}); err != nil || got != size {
		t.Errorf("of a file: %d, %v", got, err)
	}
	if _, err := Expanded(context.Background(), filepath.Join(dir, "gone"), Limits{}); err == nil {
		t.Error("of nothing: no error")
	}
}
