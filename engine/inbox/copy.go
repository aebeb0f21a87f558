package inbox

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

	"golang.org/x/sys/unix"
)

// openRegular opens a file for reading if it is a regular one. It follows no
// link, and a FIFO put in its place does not make it wait.
func openRegular(path, rel string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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

// copyTree copies a file or folder, with its permissions and modification times,
// and gives the digest of what it read. It syncs nothing.
func copyTree(ctx context.Context, from, to string) (Sum, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	c := &copier{ctx: ctx, lines: &lines{}, buf: buf[:]}
	info, err := os.Lstat(from)
	if err != nil {
		return Sum{}, err
	}
	if info.Mode().IsRegular() {
		line, err := c.file(from, to, ".")
		return Sum{Digest: "sha256:" + line.hex, Files: 1, Bytes: line.size}, err
	}
	if err := c.folder(from, to, "."); err != nil {
		return Sum{}, err
	}
	return c.lines.sum(), nil
}

type copier struct {
	ctx   context.Context
	lines *lines
	buf   []byte
}

func (c *copier) folder(from, to, rel string) error {
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
		if err := c.entry(e, from, to, rel); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod(to, info.Mode().Perm()|0o700), os.Chtimes(to, time.Time{}, info.ModTime()))
}

func (c *copier) entry(e fs.DirEntry, from, to, rel string) error {
	child := e.Name()
	if rel != "." {
		child = rel + "/" + child
	}
	from, to = filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
	if e.IsDir() {
		return c.folder(from, to, child)
	}
	line, err := c.file(from, to, child)
	if err != nil {
		return err
	}
	c.lines.add(line)
	return nil
}

func (c *copier) file(from, to, rel string) (l line, err error) {
	in, info, err := openRegular(from, rel)
	if err != nil {
		return line{}, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return line{}, err
	}
	h := sha256.New()
	n, err := io.CopyBuffer(io.MultiWriter(out, h), &reader{c.ctx, in}, c.buf)
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

// reader ends with the context's error once that is done.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
