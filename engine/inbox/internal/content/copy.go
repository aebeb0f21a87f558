package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// OpenRegular opens a file for reading if it is a regular one. It follows no
// link, and a FIFO put in its place does not make it wait.
func OpenRegular(path, rel string) (*os.File, fs.FileInfo, error) {
	f, err := disk.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, nil, refuse(rel, fs.ModeSymlink)
	}
	if errors.Is(err, unix.ENXIO) {
		return nil, nil, refuse(rel, fs.ModeIrregular)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil, &BadError{RuleUnreadable, rel, "cannot be read; its permissions forbid it"}
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		bad := refuse(rel, info.Mode())
		if bad == nil { // a folder took the file's place
			return nil, nil, errors.Join(ErrChanged, f.Close())
		}
		return nil, nil, errors.Join(bad, f.Close())
	}
	return f, info, nil
}

// CopyTree copies a file or folder, with its permissions and modification times,
// and gives the digest of what it read. It syncs nothing.
func CopyTree(ctx context.Context, from, to string) (Sum, error) {
	buf := Buffers.Get().(*[BufferSize]byte)
	defer Buffers.Put(buf)
	c := &copier{lines: &lines{}, buf: buf[:]}
	info, err := os.Lstat(from)
	if err != nil {
		return Sum{}, err
	}
	if info.Mode().IsRegular() {
		line, err := c.file(ctx, from, to, ".")
		return Sum{Digest: "sha256:" + line.hex, Files: 1, Bytes: line.size}, err
	}
	if err := c.folder(ctx, from, to, "."); err != nil {
		return Sum{}, err
	}
	return c.lines.sum(), nil
}

type copier struct {
	lines *lines
	buf   []byte
}

func (c *copier) folder(ctx context.Context, from, to, rel string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if bad := refuse(rel, info.Mode()); bad != nil {
		return bad
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if err := c.entry(ctx, e, from, to, rel); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod(to, info.Mode().Perm()|0o700), os.Chtimes(to, time.Time{}, info.ModTime()))
}

func (c *copier) entry(ctx context.Context, e fs.DirEntry, from, to, rel string) error {
	child := e.Name()
	if rel != "." {
		child = rel + "/" + child
	}
	from, to = filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
	if e.IsDir() {
		return c.folder(ctx, from, to, child)
	}
	line, err := c.file(ctx, from, to, child)
	if err != nil {
		return err
	}
	c.lines.add(line)
	return nil
}

func (c *copier) file(ctx context.Context, from, to, rel string) (l line, err error) {
	in, info, err := OpenRegular(from, rel)
	if err != nil {
		return line{}, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := disk.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return line{}, err
	}
	h := sha256.New()
	n, err := io.CopyBuffer(io.MultiWriter(out, h), ReaderOf(ctx, in), c.buf)
	if err == nil {
		err = out.Chmod(info.Mode().Perm() | 0o600)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return line{}, err
	}
	if err := os.Chtimes(to, time.Time{}, info.ModTime()); err != nil {
		return line{}, err
	}
	return line{rel: rel, size: n, hex: hex.EncodeToString(h.Sum(nil))}, nil
}

// ReaderOf reads from r until the context is done, and then gives its error.
func ReaderOf(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
