package bags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Place puts a tree's files and folders into dest, which must exist and be
// empty: as hard links where link is set and the file system can, as copies
// otherwise. Times are kept; nothing is synced.
func Place(ctx context.Context, t *Tree, dest string, link bool) error {
	if err := t.CheckRegular(); err != nil {
		return err
	}
	return placeTree(ctx, t, dest, link, 0)
}

func placeTree(ctx context.Context, t *Tree, dest string, link bool, workers int) error {
	for i := range t.Folders {
		if err := os.Mkdir(filepath.Join(dest, filepath.FromSlash(t.Folders[i].Path)), folderPerm); err != nil {
			return err
		}
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(workers, len(t.Files)) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(t.Files) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := placeFile(t.Dir, dest, &t.Files[i], link); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i := len(t.Folders) - 1; i >= 0; i-- { // the deepest first: a write below changes a folder's time
		f := &t.Folders[i]
		if err := os.Chtimes(filepath.Join(dest, filepath.FromSlash(f.Path)), f.Time, f.Time); err != nil {
			return err
		}
	}
	return nil
}

func placeFile(from, to string, e *Entry, link bool) error {
	src := filepath.Join(from, filepath.FromSlash(e.Path))
	dst := filepath.Join(to, filepath.FromSlash(e.Path))
	if link {
		err := os.Link(src, dst)
		if !cannotLink(err) {
			return err
		}
	}
	return copyFile(src, dst)
}

// cannotLink tells a file system or file that takes no (further) link from a
// real error.
func cannotLink(err error) bool {
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EMLINK) ||
		errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS)
}

// copyFile copies one regular file with its time and execute bits.
func copyFile(src, dst string) (err error) {
	in, err := os.OpenFile(src, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("copy %s: %w", src, errChanged)
	}
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePerm|info.Mode()&0o111)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(dst, info.ModTime(), info.ModTime())
}

// scanTags lists a bag without its payload.
func scanTags(ctx context.Context, dir string) (*Tree, error) {
	return scan(ctx, dir, payloadDir)
}
