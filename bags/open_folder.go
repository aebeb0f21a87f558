package bags

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"bagpipe/bags/files"
)

// contents opens and hashes a bag's files, in a folder or in an archive.
type contents interface {
	// Open gives the bytes of a tag file of the specification.
	Open(path string) (io.ReadCloser, error)
	// Hash reads every planned file once and hands its digests on.
	Hash(ctx context.Context, plan []files.Planned, o files.HashOptions, each func(files.Hashed) error) error
	Close() error
}

// folderBag is a bag in a folder.
type folderBag struct {
	root *os.Root
	dir  string
}

func (b *folderBag) Open(p string) (io.ReadCloser, error) {
	f, err := b.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, files.ErrChanged, f.Close())
	}
	return f, nil
}

func (b *folderBag) Hash(ctx context.Context, plan []files.Planned, o files.HashOptions, each func(files.Hashed) error) error {
	return files.HashPlan(ctx, b.dir, plan, o, each)
}

func (b *folderBag) Close() error { return b.root.Close() }
