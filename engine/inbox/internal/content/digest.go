package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Sum is the digest of a drop's content, as the package comment defines it.
type Sum struct {
	Digest string // sha256:HEX
	Files  int
	Bytes  int64
}

// line is one file of a folder.
type line struct {
	rel  string
	size int64
	hex  string
}

// lines gathers files in any order, from any goroutine.
type lines struct {
	mu    sync.Mutex // guards what follows
	all   []string
	bytes int64
}

func (l *lines) add(f line) {
	s := layout.EncodePath(f.rel) + "\t" + strconv.FormatInt(f.size, 10) + "\t" + f.hex + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
	l.bytes += f.size
}

func (l *lines) sum() Sum {
	slices.Sort(l.all)
	h := sha256.New()
	for _, s := range l.all {
		io.WriteString(h, s)
	}
	return Sum{Digest: "sha256:" + hex.EncodeToString(h.Sum(nil)), Files: len(l.all), Bytes: l.bytes}
}

// Digest reads the file or folder at path, several files at once. What is
// neither a file nor a folder in it is a *BadError and is not opened.
func Digest(ctx context.Context, path string) (Sum, error) {
	s, err := digest(ctx, path)
	if err != nil {
		return Sum{}, fmt.Errorf("digest %s: %w", layout.EncodePath(path), err)
	}
	return s, nil
}

// SumOf is what Digest gives of a folder with the files of an inventory.
func SumOf(v *layout.Inventory) (Sum, error) {
	all := &lines{}
	for name, f := range v.Files {
		rel, err := layout.DecodePath(name)
		if err != nil {
			return Sum{}, err
		}
		all.add(line{rel, f.Size, f.SHA256})
	}
	return all.sum(), nil
}

func digest(ctx context.Context, path string) (Sum, error) {
	f, size, errOpen := disk.OpenRaw(path)
	if errOpen == nil {
		buf := lents.Get().(*lent)
		defer buf.giveBack()
		l, err := hashOpen(ctx, f, size, ".", buf)
		return Sum{Digest: "sha256:" + l.hex, Files: 1, Bytes: l.size}, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Sum{}, ErrGone
	case err != nil:
		return Sum{}, err
	case !info.IsDir():
		return Sum{}, whyNot(path, ".", errOpen)
	}
	path = filepath.Clean(path)
	in, err := disk.OpenFolderBeneath(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return Sum{}, err
	}
	defer in.Close() // read only: nothing can be lost
	return digestFolder(ctx, path, in, listFiles)
}

// DigestFiles is Digest of a folder that would hold some of the files of dir alone.
func DigestFiles(ctx context.Context, dir string, names []string) (Sum, error) {
	in, err := disk.OpenFolder(dir)
	if err != nil {
		return Sum{}, err
	}
	defer in.Close() // read only: nothing can be lost
	s, err := digestFolder(ctx, dir, in, func(ctx context.Context, _ string, do func(context.Context, string) error) error {
		for _, name := range names {
			if err := errors.Join(do(ctx, name), ctx.Err()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Sum{}, fmt.Errorf("digest files in %s: %w", layout.EncodePath(dir), err)
	}
	return s, nil
}

const BufferSize = 128 << 10

// Buffers are lent to readers: many drops are a small file each.
var Buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

// lent is the buffer of one reader. A whole one is lent when there is a file that fills it:
// for drops of small files, to clear them took longer than to read.
type lent struct {
	small [4 << 10]byte
	whole *[BufferSize]byte
}

func (l *lent) forFile(size int64) []byte {
	if size < int64(len(l.small)) {
		return l.small[:]
	}
	if l.whole == nil {
		l.whole = Buffers.Get().(*[BufferSize]byte)
	}
	return l.whole[:]
}

var lents = sync.Pool{New: func() any { return new(lent) }}

func (l *lent) giveBack() {
	if l.whole != nil {
		Buffers.Put(l.whole)
		l.whole = nil
	}
	lents.Put(l)
}

// folderDigest hashes the files of a folder as they are found: the first few small ones at once,
// as most drops hold no others, and all behind these side by side.
type folderDigest struct {
	dir    string
	in     disk.Folder // dir: no link in it is followed, also where a folder is swapped for one meanwhile
	all    lines
	buf    *lent
	alone  int         // files that were hashed at once
	work   chan string // nil until others help
	helped sync.WaitGroup
	cancel context.CancelCauseFunc
}

// To start helpers takes longer than to read as much.
const (
	hashedAlone = 16
	smallAlone  = 64 << 10
)

func digestFolder(ctx context.Context, dir string, in disk.Folder, list func(ctx context.Context, dir string, do func(context.Context, string) error) error) (Sum, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := &folderDigest{dir: dir, in: in, buf: lents.Get().(*lent), cancel: cancel}
	defer d.buf.giveBack()
	err := list(ctx, dir, d.file)
	if d.work != nil {
		close(d.work)
		d.helped.Wait()
	}
	if cause := context.Cause(ctx); cause != nil {
		return Sum{}, cause
	}
	return d.all.sum(), err
}

// file hashes a file, or hands it over.
func (d *folderDigest) file(ctx context.Context, rel string) error {
	if d.work == nil && d.alone < hashedAlone {
		f, size, err := d.in.OpenRawBeneath(rel)
		if err != nil {
			return whyNot(filepath.Join(d.dir, rel), rel, err)
		}
		if size <= smallAlone {
			d.alone++
			l, err := hashOpen(ctx, f, size, rel, d.buf)
			if err == nil {
				d.all.add(l)
			}
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if d.work == nil {
		d.help(ctx)
	}
	select {
	case d.work <- rel:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// help starts those who hash side by side.
func (d *folderDigest) help(ctx context.Context) {
	d.work = make(chan string, 64)
	for range runtime.GOMAXPROCS(0) {
		d.helped.Go(func() {
			buf := lents.Get().(*lent)
			defer buf.giveBack()
			for rel := range d.work {
				l, err := d.hashFile(ctx, rel, buf)
				if err != nil {
					d.cancel(err) // the first one counts
					continue
				}
				d.all.add(l)
			}
		})
	}
}

// listFiles calls do with the relative path of every file below dir.
func listFiles(ctx context.Context, dir string, do func(ctx context.Context, rel string) error) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if bad := refuse(rel, d.Type()); bad != nil {
			return bad
		}
		if d.IsDir() {
			return ctx.Err()
		}
		return do(ctx, rel)
	})
}

// whyNot names the rule that a file breaks which could not be opened.
func whyNot(path, rel string, err error) error {
	f, _, why := OpenRegular(path, rel)
	if why != nil {
		return why
	}
	return errors.Join(ErrChanged, err, f.Close()) // it can be opened now
}

func (d *folderDigest) hashFile(ctx context.Context, rel string, buf *lent) (l line, err error) {
	f, size, err := d.in.OpenRawBeneath(rel)
	if err != nil {
		return line{}, whyNot(filepath.Join(d.dir, rel), rel, err)
	}
	return hashOpen(ctx, f, size, rel, buf)
}

// hashOpen reads an open file, and closes it.
func hashOpen(ctx context.Context, f disk.Raw, size int64, rel string, buf *lent) (l line, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	n, err := io.CopyBuffer(h, ReaderOf(ctx, f), buf.forFile(size))
	if err != nil {
		return line{}, err
	}
	if n != size {
		return line{}, fmt.Errorf("%s: %w", layout.EncodePath(rel), ErrChanged)
	}
	return line{rel: rel, size: n, hex: hex.EncodeToString(h.Sum(nil))}, nil
}
