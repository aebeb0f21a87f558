package steps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// cleanup has the item's own copy of the bag removed, once it has seen that the
// deposited one is the same, but for the labels of its making, and complete; and what else
// the parameter drop names, source and content, once every byte of the deposited one was read
// and is right. The removal itself is the engine's.
func cleanup(ctx context.Context, c *Call) (Result, error) {
	drop, err := dropParam(c.With)
	if err != nil {
		return Result{}, err
	}
	if c.Goals != nil {
		return c.cleanupOnTargets(ctx, drop)
	}
	to, err := c.depositDir()
	if err != nil {
		return Result{}, err
	}
	from := c.bagDir()
	_, gone := os.Lstat(from)
	at, how := newestRevision(to), target.SameBagging
	if gone == nil {
		if at, how, err = findRevision(from, to); err != nil {
			return Result{}, failure(err)
		}
	}
	if how < target.RedatedBag && at != to {
		at = newestRevision(to) // which is there
	}
	level := bags.Complete
	if len(drop) > 0 {
		level = bags.Full
	}
	if err := checkDeposit(ctx, at, level); err != nil {
		return Result{}, err
	}
	if how < target.RedatedBag {
		return Result{}, SystemFailure("the deposited bag at %s is not the one in derived/bag; nothing was removed", layout.EncodePath(at))
	}
	if err := removeLeftovers(to); err != nil {
		return Result{}, failure(err)
	}
	remove := present(c.Dir, drop)
	switch {
	case gone == nil:
		remove = append(remove, layout.DerivedDir+"/bag")
	case len(remove) > 0: // nothing proves that the deposited bag is of this object
		return Result{}, SystemFailure("derived/bag is gone, and with it what the deposit was compared with; %s stays: reset the step that makes the bag", joined(remove))
	default:
		return Result{Message: "nothing to remove: derived/bag is gone already"}, nil
	}
	return removed(ctx, c, remove)
}

// dropParam reads what is removed beside the bag.
func dropParam(with map[string]any) (drop []layout.RelPath, err error) {
	all, err := stringsParam(with, "drop")
	for _, name := range all {
		if name != layout.SourceDir && name != layout.ContentDir {
			return nil, wrongParam("drop", "want a list of source and content, got %s", name)
		}
		drop = append(drop, layout.RelPath(name))
	}
	return drop, err
}

func present(dir string, which []layout.RelPath) (there []layout.RelPath) {
	for _, p := range which {
		if entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(string(p)))); err == nil && len(entries) > 0 {
			there = append(there, p)
		}
	}
	return there
}

func joined(paths []layout.RelPath) string {
	var all []string
	for _, p := range paths {
		all = append(all, string(p))
	}
	return strings.Join(all, ", ")
}

// removed has trees of the item's folder removed, and says what that frees.
func removed(ctx context.Context, c *Call, remove []layout.RelPath) (Result, error) {
	var count, bytes, freed int64
	going := map[inode]uint64{}
	for _, p := range remove {
		tree, err := files.Scan(ctx, filepath.Join(c.Dir, filepath.FromSlash(string(p))))
		if err != nil {
			return Result{}, failure(err)
		}
		count, bytes = count+int64(len(tree.Files)), bytes+tree.Bytes()
		n, err := freedBytes(tree, going)
		if err != nil {
			return Result{}, failure(err)
		}
		freed += n
	}
	text := fmt.Sprintf("removed %s: %s, %s freed", joined(remove), layout.Count(count, "file"), layout.Count(freed, "byte"))
	if len(remove) == 1 {
		text += fmt.Sprintf(" (%d more are shared with the content)", bytes-freed)
	}
	return Result{Message: text, Remove: remove}, nil
}

func checkDeposit(ctx context.Context, to string, level bags.Level) error {
	if _, err := os.Lstat(to); err != nil {
		return SystemFailure("the deposited bag is not at %s; nothing was removed", layout.EncodePath(to))
	}
	r, err := bags.Validate(ctx, to, bags.ValidateOptions{Level: level})
	if err != nil {
		return failure(err)
	}
	if first, bad := r.FirstError(); bad {
		return SystemFailure("the deposited bag is not sound; nothing was removed: %s", findingText(first))
	}
	return nil
}

// inode is a file under any of its names.
type inode struct{ dev, ino uint64 }

// freedBytes counts files whose last name is going; going counts the names of each file that
// go, over several trees.
func freedBytes(t *files.Tree, going map[inode]uint64) (n int64, err error) {
	for i := range t.Files {
		if t.Files[i].Links == 1 {
			n += t.Files[i].Size
			continue
		}
		info, err := os.Lstat(filepath.Join(t.Dir, filepath.FromSlash(t.Files[i].Path)))
		if err != nil {
			return 0, err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			at := inode{uint64(s.Dev), s.Ino}
			if going[at]++; going[at] < uint64(s.Nlink) {
				continue
			}
		}
		n += info.Size()
	}
	return n, nil
}
