package gitstore

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bagpipe/layout/disk"
)

// noRoom is a file system on which the shown files find no room.
type noRoom struct {
	disk.FS
	items string
	full  atomic.Bool
}

func (n *noRoom) WriteNew(name string, data []byte, perm fs.FileMode) error {
	if n.full.Load() && strings.HasPrefix(name, n.items) {
		return syscall.ENOSPC
	}
	return n.FS.WriteNew(name, data, perm)
}

// A run that ends on a full disk must end, and say so: it cannot be stopped while
// it waits for room.
func TestCaughtUpDoesNotWaitForRoom(t *testing.T) {
	o := followItems(testOptions())
	root := initRoot(t, o, nil)
	machine := &noRoom{FS: disk.OS{}, items: filepath.Join(root, "items")}
	o.FS = machine
	s := openRoot(t, root, o)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Repair(ctx); err != nil {
		t.Fatal(err)
	}
	machine.full.Store(true)
	put(t, s, "items/a/e.json", "1")
	if err := s.CaughtUp(ctx); !errors.Is(err, syscall.ENOSPC) || ctx.Err() != nil {
		t.Errorf("on a full disk: %v", err)
	}
	machine.full.Store(false)
	if err := s.CaughtUp(ctx); err != nil {
		t.Errorf("with room: %v", err)
	}
	if got, err := machine.ReadFile(filepath.Join(root, "items/a/e.json")); err != nil || string(got) != "1" {
		t.Errorf("shown: %q, %v", got, err)
	}
}

// What ends on a full disk says so once, not once for each file that it could not show.
func TestAFullDiskAtTheEndIsToldOnce(t *testing.T) {
	var told strings.Builder
	o := followItems(testOptions())
	root := initRoot(t, o, nil)
	machine := &noRoom{FS: disk.OS{}, items: filepath.Join(root, "items")}
	o.FS, o.Log = machine, slog.New(slog.NewTextHandler(&told, nil))
	s, err := Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	machine.full.Store(true)
	for _, item := range []string{"a", "b", "c", "d"} {
		put(t, s, "items/"+item+"/e.json", "1")
	}
	if err := s.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if n := strings.Count(told.String(), "write followed file"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &told)
	}
}
