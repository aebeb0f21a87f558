package archive

import (
	"context"
	"errors"
	"fmt"
	"os"

	"bagpipe/bags/files"
	"bagpipe/layout/disk"
)

// fewFiles is up to where a sync each is cheaper than one of the whole file
// system, which waits for everybody's writes.
const fewFiles = 64

// ExtractTo unpacks the archive into the new folder dest. It appears when all of it
// is there, and is on the disk when ExtractTo returns, unless o.NoSync is set; after an error, or a crash,
// there is no dest.
func ExtractTo(ctx context.Context, archive, dest string, o ExtractOptions) (_ Extracted, err error) {
	s, err := files.NewScratch(dest)
	if err != nil {
		return Extracted{}, fmt.Errorf("unpack %s: %w", archive, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := os.Mkdir(s.Made(), files.FolderPerm); err != nil {
		return Extracted{}, fmt.Errorf("unpack %s: %w", archive, err)
	}
	x, err := Extract(ctx, archive, s.Made(), o)
	if err != nil {
		return Extracted{}, err
	}
	sync := disk.SyncFS
	switch {
	case o.NoSync:
		sync = nil
	case x.Files+x.Folders <= fewFiles:
		sync = disk.SyncTree
	}
	if err := s.Publish(sync); err != nil {
		return Extracted{}, fmt.Errorf("unpack %s: %w", archive, err)
	}
	return x, nil
}
