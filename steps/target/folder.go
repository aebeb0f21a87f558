package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"syscall"

	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// folder is a backend in a folder of this machine. Names are looked up through os.Root: a
// link in the way leads nowhere outside.
type folder struct {
	dir     string
	streams int
}

// openFolder opens a folder. One that is not there is made, and marked; one without the mark
// is not used, as it may be where something else should be mounted.
func openFolder(dir string, streams int, used func() (bool, error)) (*folder, error) {
	_, there := os.Lstat(dir) // first: it may be made meanwhile
	if marked(dir) {
		return &folder{dir, streams}, nil
	}
	if !errors.Is(there, fs.ErrNotExist) {
		return nil, &Down{fmt.Errorf("the folder %s has no %s: is it mounted? If it is a new target, make that file in it, empty", layout.EncodePath(dir), layout.StoreFile)}
	}
	if err := mayMake(dir, used); err != nil {
		return nil, err
	}
	if err := makeMarked(dir); err != nil {
		return nil, &Down{err}
	}
	return &folder{dir, streams}, nil
}

func (f *folder) traits() traits {
	return traits{renames: true, streams: cmp.Or(f.streams, runtime.GOMAXPROCS(0))}
}
func (f *folder) close() error { return nil }

func (f *folder) digests(context.Context, string, []string, files.Algorithm, func(int, []byte) error) (bool, error) {
	return false, nil
}

func (f *folder) version(context.Context, string) (string, error) { return "", nil }
func (f *folder) poor() []string                                  { return nil }

// in works in the folder; an error says that the target is down where it is the target's.
func (f *folder) in(do func(*os.Root) error) (err error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return &Down{err}
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return f.down(do(root))
}

func (f *folder) down(err error) error {
	for _, whole := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.ESTALE, syscall.ENODEV, syscall.EHOSTDOWN} {
		if errors.Is(err, whole) { // it is so of all items, and has one reason: no item's path is in it
			return &Down{fmt.Errorf("%s: %w", layout.EncodePath(f.dir), whole)}
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return &Down{err}
	}
	var at *fs.PathError
	out := errors.As(err, &at) && at.Err.Error() == "path escapes from parent" // a link; the error has no name
	if unread := errors.Is(err, syscall.EIO); out || unread || errors.Is(err, syscall.ENOTDIR) {
		return &Damage{err.Error(), unread}
	}
	return err
}

func (f *folder) open(_ context.Context, name string, offset int64) (r reader, err error) {
	err = f.in(func(root *os.Root) error {
		info, err := root.Lstat(name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return damage("%s is no regular file", layout.EncodePath(name))
		}
		in, err := root.Open(name)
		if err != nil {
			return err
		}
		if _, err := in.Seek(offset, io.SeekStart); err != nil {
			return errors.Join(err, in.Close())
		}
		r = in
		return nil
	})
	return r, err
}

func (f *folder) list(ctx context.Context, dir string, deep bool, each func(string, int64) error) error {
	if !deep {
		entries, err := os.ReadDir(filepath.Join(f.dir, filepath.FromSlash(dir)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return f.down(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) { // it went meanwhile, as what others stage does
				continue
			}
			if err != nil {
				return err
			}
			if info.Mode().IsRegular() {
				if err := each(e.Name(), info.Size()); err != nil {
					return err
				}
			}
		}
		return nil
	}
	tree, err := f.scan(ctx, dir)
	if err != nil || tree == nil {
		return err
	}
	if err := tree.CheckRegular(); err != nil {
		return &Damage{Text: err.Error()}
	}
	for i := range tree.Files {
		if err := each(tree.Files[i].Path, tree.Files[i].Size); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) survey(ctx context.Context, dir string) (survey, error) {
	tree, err := f.scan(ctx, dir)
	if err != nil || tree == nil {
		return survey{}, err
	}
	s := survey{files: map[string]int64{}, empty: tree.EmptyFolders()}
	for i := range tree.Files {
		s.files[tree.Files[i].Path] = tree.Files[i].Size
	}
	for i := range tree.Others {
		s.odd = append(s.odd, tree.Others[i].Path)
	}
	return s, nil
}

// scan lists all below a folder; nil where there is none.
func (f *folder) scan(ctx context.Context, dir string) (*files.Tree, error) {
	at := filepath.Join(f.dir, filepath.FromSlash(dir))
	switch info, err := os.Lstat(at); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && !info.IsDir() && dir != "":
		return nil, damage("%s is no folder", layout.EncodePath(dir))
	}
	tree, err := files.Scan(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return tree, f.down(err)
}

func (f *folder) folders(_ context.Context, dir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, f.down(err)
}

// make makes a folder, with those above it. Of a bag, to whose folders nobody may add, the folder lets
// this account add again: it is mended, or was left by a put that died.
func (f *folder) make(root *os.Root, dir string) error {
	at := dir
	info, err := root.Stat(at)
	for ; errors.Is(err, fs.ErrNotExist) && at != "."; info, err = root.Stat(at) {
		at = path.Dir(at)
	}
	if err == nil && info.IsDir() && info.Mode()&0o200 == 0 {
		err = root.Chmod(at, info.Mode()|0o200)
	}
	if err != nil || at == dir {
		return err
	}
	return root.MkdirAll(dir, 0o755)
}

// freeze lets nobody write in the folders of a bag.
func (f *folder) freeze(name string) error {
	return f.down(files.FreezeFolders(filepath.Join(f.dir, filepath.FromSlash(name))))
}

func (f *folder) write(ctx context.Context, name string, what file) error {
	return f.in(func(root *os.Root) (err error) {
		if err := f.make(root, path.Dir(name)); err != nil {
			return err
		}
		in, err := what.open(0)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		return copyTold(ctx, out, in, what.tell)
	})
}

func (f *folder) settle(_ context.Context, name string) error {
	return f.down(disk.SyncFS(filepath.Join(f.dir, filepath.FromSlash(name)))) // for many files far cheaper than a sync each
}

func (f *folder) rename(_ context.Context, from, to string) error {
	return f.in(func(root *os.Root) error {
		if _, err := root.Lstat(to); err == nil {
			return fs.ErrExist
		}
		if err := errors.Join(f.make(root, path.Dir(from)), f.make(root, path.Dir(to))); err != nil {
			return err
		}
		if err := root.Rename(from, to); err != nil {
			return err
		}
		for _, dir := range disk.FoldersTo(f.dir, filepath.Dir(filepath.Join(f.dir, filepath.FromSlash(to)))) {
			if err := disk.SyncDir(dir); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *folder) remove(_ context.Context, name string) error {
	return f.down(disk.RemoveTree(filepath.Join(f.dir, filepath.FromSlash(name))))
}

// replace makes the file under the name of a part, always the same, so that a kill leaves nothing beside
// it that the next call does not take.
func (f *folder) replace(_ context.Context, name string, data []byte) error {
	return f.in(func(root *os.Root) error {
		part := staged(name)
		if err := f.make(root, path.Dir(name)); err != nil {
			return err
		}
		if err := root.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		out, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		if err == nil {
			err = out.Sync()
		}
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
		if err := root.Rename(part, name); err != nil {
			return err
		}
		return disk.SyncDir(filepath.Join(f.dir, filepath.FromSlash(path.Dir(name))))
	})
}
