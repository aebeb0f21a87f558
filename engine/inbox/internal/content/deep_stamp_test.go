package content

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStampOfDeepFolders holds fewer files open than there are folders one in the other.
func TestStampOfDeepFolders(t *testing.T) {
	dir := t.TempDir()
	leaf := filepath.Join(dir, strings.Repeat("a/", 600)+"leaf")
	if err := os.MkdirAll(filepath.Dir(leaf), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(leaf, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	before, _, err := StampOf(t.Context(), dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(leaf, 0); err != nil {
		t.Fatal(err)
	}
	after, _, err := StampOf(t.Context(), dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if before == after {
		t.Error("a change 600 folders deep left the stamp as it was")
	}
}
