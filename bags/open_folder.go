package bags

import (
	"context"
	"io"
	"os"

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

// folderBag is a bag in a folder. Open is called by one goroutine.
type folderBag struct {
	root *os.Root
	open files.Opener
	dir  string
}

func newFolderBag(root *os.Root, dir string) *folderBag {
	return &folderBag{root: root, open: files.Opener{Root: root}, dir: dir}
}

func (b *folderBag) Open(p string) (io.ReadCloser, error) { return b.open.Regular(p) }

func (b *folderBag) Hash(ctx context.Context, plan []files.Planned, o files.HashOptions, each func(files.Hashed) error) error {
	return files.HashPlan(ctx, b.dir, plan, o, each)
}

func (b *folderBag) Close() error {
	b.open.Close()
	return b.root.Close()
}
