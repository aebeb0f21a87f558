package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// Place puts a tree's files and folders into dest, which must exist and be
// empty: as copies, which share their bytes with the tree's files where the file system can;
// where it cannot and link is set, as hard links, which nobody may write to any more: a
// program that writes to one in place would change the other. Times are kept; nothing is
// synced.
func Place(ctx context.Context, t *Tree, dest string, link bool) error {
	return placeAt(ctx, t, dest, copier{perm: FilePerm, link: link, protect: true})
}

// PlaceReadOnly is Place of copies that nobody may write to, in folders to which nobody may add.
func PlaceReadOnly(ctx context.Context, t *Tree, dest string) error {
	return placeAt(ctx, t, dest, copier{perm: FilePerm &^ writable, frozen: true})
}

const writable = 0o222

// FreezeFolders takes away the permission to write in a folder and those below it.
func FreezeFolders(dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil || info.Mode()&writable == 0 {
			return err
		}
		return root.Chmod(name, info.Mode()&^writable)
	})
}

func placeAt(ctx context.Context, t *Tree, dest string, how copier) error {
	if err := t.CheckRegular(); err != nil {
		return err
	}
	into, err := os.OpenRoot(dest)
	if err != nil {
		return err
	}
	defer into.Close()
	return placeTree(ctx, t, into, 0, how)
}

// PlaceTree is Place into an open root: a folder of into that becomes a link meanwhile
// leads nowhere outside. The permissions of links stay.
func PlaceTree(ctx context.Context, t *Tree, into *os.Root, link bool, workers int) error {
	return placeTree(ctx, t, into, workers, copier{perm: FilePerm, link: link})
}

// placeTree has workers that place as how does.
func placeTree(ctx context.Context, t *Tree, into *os.Root, workers int, how copier) error {
	var at entered
	defer at.leave()
	for i := range t.Folders {
		if err := at.mkdir(into, t.Folders[i].Path); err != nil {
			return err
		}
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	how.stands = t.stands
	if how.link = how.link && t.Stands == ""; how.link && len(t.Files) > 0 {
		how.link = !clones(root, into, t.Files[0].Path)
	}
	if err := placeFiles(ctx, t, root, into, workers, how); err != nil {
		return err
	}
	for i := len(t.Folders) - 1; i >= 0; i-- { // the deepest first: a write below changes a folder's time
		if err := at.finish(into, &t.Folders[i], how.frozen); err != nil {
			return err
		}
	}
	if !how.frozen {
		return nil
	}
	top, err := at.enter(into, "")
	if err != nil {
		return err
	}
	return freeze(top, into.Name())
}

// placeFiles places the files of t, which root holds.
func placeFiles(ctx context.Context, t *Tree, root, into *os.Root, workers int, how copier) error {
	shares := byFolder(t.Files)
	var next atomic.Int64
	work := func(ctx context.Context) error {
		p := how
		p.from, p.to, p.put = &Opener{Root: root}, &Opener{Root: into}, &Creator{Root: into}
		defer p.close()
		for {
			i := int(next.Add(1)) - 1
			if i >= len(shares) {
				return nil
			}
			for k := range shares[i] {
				if err := cmp.Or(ctx.Err(), p.place(&shares[i][k])); err != nil {
					return err
				}
			}
		}
	}
	if len(shares) == 1 || few(len(t.Files), t.Bytes()) {
		return work(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	for range min(workers, len(shares)) {
		g.Go(func() error { return work(ctx) })
	}
	return g.Wait()
}

// shareMost bounds the files of one folder that one worker takes at once.
const shareMost = 256

// byFolder cuts the files into shares of one folder each: two that make names in one
// folder wait for each other (20,000 links: 0.19 s for 0.27 s).
func byFolder(files []Entry) (shares [][]Entry) {
	begin := 0
	for i := range files {
		if i > begin && (i-begin == shareMost || parent(files[i].Path) != parent(files[begin].Path)) {
			shares = append(shares, files[begin:i])
			begin = i
		}
	}
	if begin < len(files) {
		shares = append(shares, files[begin:])
	}
	return shares
}

// copier places files, those of one folder after each other. Files are looked up
// through os.Root: a folder that became a link since it was listed leads nowhere
// outside. Used by one goroutine.
type copier struct {
	from, to *Opener
	put      *Creator
	stands   func(path string) string // the name of a file below from
	perm     fs.FileMode              // of copies
	link     bool
	protect  bool // links from whoever may write to them
	frozen   bool // nobody may add to the folders
}

func (c *copier) place(e *Entry) error {
	p := e.Path
	if c.link {
		err := c.from.link(p, c.to)
		if err == nil && c.protect && e.Mode&0o222 != 0 {
			err = c.to.protect(p, e.Mode&^0o222)
		}
		if !CannotLink(err) {
			return namedError(p, err)
		}
	}
	if e.Size <= copiedByHand && !e.Time.IsZero() {
		if done, err := c.small(e); done || err != nil {
			return namedError(p, err)
		}
	}
	in, err := c.from.File(c.stands(p))
	if err != nil {
		return namedError(p, err)
	}
	defer in.Close()
	return namedError(p, copyOpened(in, c.put, p, c.perm))
}

// small copies a file that is as it was listed by one read and one write; done is false, and
// nothing is written, where it is not.
func (c *copier) small(e *Entry) (done bool, err error) {
	in, err := c.from.Open(c.stands(e.Path))
	if err != nil {
		return false, err
	}
	defer in.Close() // read only: nothing can be lost
	b := smallBuffers.Get().(*[]byte)
	defer smallBuffers.Put(b)
	n, err := in.Read(*b)
	if err != nil && !errors.Is(err, io.EOF) || int64(n) != e.Size {
		return false, nil // the other way says what it is
	}
	out, err := c.put.Create(e.Path, c.perm|e.Mode&0o111)
	if err != nil {
		return false, err
	}
	_, err = out.Write((*b)[:n])
	if err := errors.Join(err, out.Close()); err != nil {
		return false, err
	}
	return true, c.put.SetTime(e.Path, e.Time)
}

func (c *copier) close() {
	c.from.Close()
	c.to.Close()
	c.put.Close()
}

func namedError(p string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", layout.EncodePath(p), err)
}

// CannotLink reports whether the file or its file system takes no (further) link.
func CannotLink(err error) bool {
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EMLINK) ||
		errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS)
}

// CopyFile copies one regular file with its time and execute bits.
func CopyFile(src string, to *Creator, p string) error {
	in, err := os.OpenFile(src, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	return copyOpened(in, to, p, FilePerm)
}

func copyOpened(in *os.File, to *Creator, p string, perm fs.FileMode) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return namedError(in.Name(), ErrChanged)
	}
	made, err := to.Create(p, perm|info.Mode()&0o111)
	if err != nil {
		return err
	}
	if info.Size() <= copiedByHand {
		if err := errors.Join(copySmall(in, made), made.Close()); err != nil {
			return err
		}
		return to.SetTime(p, info.ModTime())
	}
	out := os.NewFile(uintptr(made.fd), p) // so that the system can copy by itself
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return to.SetTime(p, info.ModTime())
}

// copiedByHand is the size up to which a file is read and written: for the system to copy it
// by itself takes more calls, and shares no more than a few blocks.
const copiedByHand = 16 << 10

var smallBuffers = sync.Pool{New: func() any { b := make([]byte, copiedByHand+1); return &b }}

// copySmall copies a file that was small, all of it if it has grown.
func copySmall(in *os.File, out NewFile) error {
	b := smallBuffers.Get().(*[]byte)
	defer smallBuffers.Put(b)
	for {
		n, err := in.Read(*b)
		if n > 0 {
			if _, err := out.Write((*b)[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
