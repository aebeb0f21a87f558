package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/layout"
)

// cleanup has the item's own copy of the bag removed, once it has seen that the
// deposited one is the same, but for the labels of its making, and complete. The removal itself is the engine's.
func cleanup(ctx context.Context, c *Call) (Result, error) {
	to, err := c.depositDir()
	if err != nil {
		return Result{}, err
	}
	from := c.bagDir()
	_, gone := os.Lstat(from)
	at, how := newestRevision(to), sameBagging
	if gone == nil {
		if at, how, err = findRevision(from, to); err != nil {
			return Result{}, failure(err)
		}
	}
	if how < redatedBag && at != to {
		at = newestRevision(to) // which is there
	}
	if err := checkDeposit(ctx, at); err != nil {
		return Result{}, err
	}
	if how < redatedBag {
		return Result{}, SystemFailure("the deposited bag at %s is not the one in derived/bag; nothing was removed", layout.EncodePath(at))
	}
	if err := removeLeftovers(to); err != nil {
		return Result{}, failure(err)
	}
	if errors.Is(gone, fs.ErrNotExist) {
		return Result{Message: "nothing to remove: derived/bag is gone already"}, nil
	}
	tree, err := files.Scan(ctx, filepath.Dir(from))
	if err != nil {
		return Result{}, failure(err)
	}
	freed, err := freedBytes(tree)
	if err != nil {
		return Result{}, failure(err)
	}
	return Result{
		Message: fmt.Sprintf("removed derived/bag: %s, %s freed (%d more are shared with the content)",
			plural(int64(len(tree.Files)), "file"), plural(freed, "byte"), tree.Bytes()-freed),
		Remove: []layout.RelPath{layout.DerivedDir + "/bag"},
	}, nil
}

func checkDeposit(ctx context.Context, to string) error {
	if _, err := os.Lstat(to); err != nil {
		return SystemFailure("the deposited bag is not at %s; nothing was removed", layout.EncodePath(to))
	}
	r, err := bags.Validate(ctx, to, bags.ValidateOptions{Level: bags.Complete})
	if err != nil {
		return failure(err)
	}
	if first, bad := r.FirstError(); bad {
		return SystemFailure("the deposited bag is not complete; nothing was removed: %s", findingText(first))
	}
	return nil
}

// freedBytes counts files whose only name is going.
func freedBytes(t *files.Tree) (n int64, err error) {
	for i := range t.Files {
		info, err := os.Lstat(filepath.Join(t.Dir, filepath.FromSlash(t.Files[i].Path)))
		if err != nil {
			return 0, err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			continue
		}
		n += info.Size()
	}
	return n, nil
}
